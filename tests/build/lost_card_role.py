"""The encode role, with a text that the card is lost on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from featpipe.build.encode_worker import EncodeRole
from featpipe.encoders import lost_card

if TYPE_CHECKING:
    from featpipe.build.messages import FeatureBatch, FeatureTask

POISON = "此文不可计算"


class LosingRole(EncodeRole):
    """An index beyond a table is an assertion that fails on a card; a processor stands in for it.

    From then on nothing succeeds in this process.
    """

    is_lost = False

    def _run(self, task: FeatureTask) -> FeatureBatch:
        self.is_lost = self.is_lost or POISON in task.units.texts.strings()
        if self._device == "cpu":
            lost_card.is_lost = lambda _device: self.is_lost
            if self.is_lost:
                raise RuntimeError("CUDA error: device-side assert triggered")
        elif self.is_lost:
            here = torch.device(self._device)
            torch.arange(4, device=here)[torch.tensor([9], device=here)].cpu()
        return super()._run(task)
