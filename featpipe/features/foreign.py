"""Encoders that are not BERT's kin, run by transformers.

Sequences of equal length go through the model together, so that there is no padding and no mask,
and a sequence sees nothing of its neighbours. Slower than the packed forward, and said to be so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from featpipe.errors import UnsupportedModel

if TYPE_CHECKING:
    from featpipe.features.checkpoint import Checkpoint
    from featpipe.features.feature import EncoderSettings, Spec
    from featpipe.features.packing import Pack


class ForeignTrunk:
    """A transformers model behind the face of a trunk."""

    is_invariant = False

    def __init__(self, model: Any, *, width: int, device: torch.device, dtype: torch.dtype) -> None:  # noqa: ANN401 - untyped library
        self.width = width
        self.device = device
        self.n_words = int(model.get_input_embeddings().num_embeddings)
        self._model = model
        self._dtype = dtype

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """Hidden states of each group of equal lengths, in the pack's order."""
        ids = torch.from_numpy(pack.ids.astype(np.int64)).to(self.device)
        out = torch.empty(len(ids), self.width, device=self.device)
        for first, count, length in pack.groups:
            rows = slice(first, first + count * length)
            batch = ids[rows].view(count, length)
            with torch.autocast(
                self.device.type, self._dtype, enabled=self._dtype != torch.float32
            ):
                found = self._model(
                    input_ids=batch,
                    attention_mask=torch.ones_like(batch),
                    output_hidden_states=n_layers is not None,
                )
            states = found.last_hidden_state if n_layers is None else found.hidden_states[n_layers]
            out[rows] = states.reshape(count * length, self.width).float()
        return out


def load_foreign(
    checkpoint: Checkpoint, spec: Spec, *, device: torch.device, settings: EncoderSettings
) -> ForeignTrunk:
    """Load by transformers, in float32, and refuse weights that do not fit.

    Raises:
        UnsupportedModel: transformers cannot load it as an encoder.
    """
    from transformers import AutoModel

    try:
        model, report = AutoModel.from_pretrained(
            str(checkpoint.path),
            dtype=torch.float32,
            trust_remote_code=settings.trust_remote_code,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # a dozen kinds, one meaning
        raise UnsupportedModel(
            f"{checkpoint.path} ({checkpoint.architecture or 'no model_type'}) cannot be loaded"
            f" as an encoder: {error}"
        ) from error
    missing = [name for name in report["missing_keys"] if "pooler" not in name]
    if missing or report["mismatched_keys"]:
        raise UnsupportedModel(
            f"{checkpoint.path} lacks weights: {missing} {report['mismatched_keys']}"
        )
    half = torch.float16 if device.type == "cuda" else torch.bfloat16
    dtype = torch.float32 if spec["precision"] == "exact" else half
    width = int(getattr(model.config, "hidden_size", 0) or model.config.dim)
    return ForeignTrunk(model.eval().to(device), width=width, device=device, dtype=dtype)
