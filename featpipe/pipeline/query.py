"""Queries as vectors: by the very model and settings that made a space, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import UnknownSpace
from featpipe.features.checkpoint import describe_checkpoint
from featpipe.features.feature import (
    CUT_RULE,
    EncoderSettings,
    encoder_spec,
    explain_difference,
    fingerprint_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.features.feature import OnTruncate
    from featpipe.pipeline.lookup import Cache, Dictionary


def find_space(cache: Cache, model: Path | str) -> tuple[Dictionary, EncoderSettings]:
    """The space of the cache that ``model`` filled, with the settings it was filled with.

    Raises:
        UnknownSpace: no space of these weights; says in what the nearest one differs.
        CheckpointError: a model folder that cannot be used.

    """
    checkpoint = describe_checkpoint(model)
    differences: list[str] = []
    for name in cache.spaces():
        dictionary = cache.dictionary(name)
        spec = dictionary.spec
        if spec.get("feature") != "embedding":
            continue
        settings = _settings_of(spec)
        own = encoder_spec(checkpoint, settings)
        if fingerprint_of(own) == fingerprint_of(spec):
            return dictionary, settings
        differences.append(f"{name} differs in " + ", ".join(explain_difference(own, spec)))
    raise UnknownSpace(
        f"{cache.path} holds no vectors by {model}: {'; '.join(differences) or 'it has no space'}",
        hint="name the model that built it, or run build-cache with this one",
    )


def encode_query(model: Path | str, settings: EncoderSettings, text: str) -> NDArray[np.float32]:
    """The vector (dim,) of a text, computed in this process: torch is loaded here."""
    from featpipe.features.encoder import Encoder

    encoder = Encoder.load(model, settings)
    return np.asarray(encoder.encode([text]).vectors[0], np.float32)


def _settings_of(spec: dict[str, Any]) -> EncoderSettings:
    """What must be chosen to get this spec again, with the same weights."""
    names = ("pooling", "layer", "normalise", "max_length", "stride", "prompt", "precision")
    on_truncate: OnTruncate = "warn" if spec["window_rule"] == CUT_RULE else "window"
    return EncoderSettings(
        dtype=spec["dtype"], on_truncate=on_truncate, **{name: spec[name] for name in names}
    )
