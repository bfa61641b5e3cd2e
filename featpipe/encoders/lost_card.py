"""A process whose card computes no more for it ends, so that its pool starts another.

After an access to foreign memory, a failed assertion in a kernel or an error of the card, whatever
a process asks of its card fails, task after task, for as long as it lives. Imports torch only then.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from featpipe.interpreter import EXIT_CARD_LOST

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


@contextmanager
def ending_with_card(device: str) -> Iterator[None]:
    """End this process where the block fails and `device` is a card that is lost to it."""
    try:
        yield
    except RuntimeError:  # of torch and of Triton
        if is_lost(device):
            log.exception("%s computes no more for this process", device)
            os._exit(EXIT_CARD_LOST)
        raise


def is_lost(device: str) -> bool:
    """Whether `device` is a card that computes no more for this process."""
    if device == "cpu":
        return False
    import torch

    try:
        torch.cuda.synchronize(device)
    except RuntimeError:  # of torch, about whatever was asked last
        return True
    return False
