"""Queries as vectors: by the very model and settings that made a space, or not at all.

The precision alone may differ, where the machine that asks cannot compute in that of the space: a
card multiplies float16, a processor bfloat16 if at all. Float32 is as near to either (cosine .9999
and more) as they are to themselves, and whoever asks is told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.precision import can_compute
from featpipe.encoders.spec import (
    CUT_RULE,
    EncoderSettings,
    encoder_spec,
    explain_difference,
    fingerprint_of,
)
from featpipe.errors import UnknownSpace, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.encoders.checkpoint import Checkpoint
    from featpipe.encoders.spec import OnTruncate, Spec


#: Parts of a spec that say in which numbers was computed, and nothing else.
_PRECISION_PARTS = ("precision", "arithmetic")


class QuerySpace(NamedTuple):
    """A space, and how a query is encoded so that it can be compared with what the space holds."""

    dictionary: Dictionary
    settings: EncoderSettings
    note: str = ""
    """What the user should know: that the precision is not the space's."""


def find_query_space(cache: Cache, model: Path | str, device: str = "cpu") -> QuerySpace:
    """The space that ``model`` filled, on whatever machine, for queries encoded on ``device``.

    Raises:
        UnknownSpace: no space of these weights; says in what the nearest one differs.
        CheckpointError: a model folder that cannot be used.

    """
    checkpoint = describe_checkpoint(model)
    near: list[QuerySpace] = []
    for dictionary, settings in _embeddings(cache):
        own = _spec_on(device, checkpoint, settings)
        if own == dictionary.spec and can_compute(settings.precision, device):
            return QuerySpace(dictionary, settings)
        exact = replace(settings, precision="exact")
        if is_comparable(encoder_spec(checkpoint, exact, device), dictionary.spec):
            near.append(QuerySpace(dictionary, exact, _note_precision(dictionary, device)))
    if near:
        return near[0]
    return QuerySpace(*find_space(cache, model))


def is_comparable(own: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether vectors of two specs differ by the rounding of ``exact`` and ``mixed`` alone."""
    if not {own["precision"], other["precision"]} <= {"exact", "mixed"}:
        return False
    rest_of_own, rest_of_other = (
        {part: spec[part] for part in spec if part not in _PRECISION_PARTS} for spec in (own, other)
    )
    return rest_of_own == rest_of_other


def find_space(cache: Cache, model: Path | str) -> tuple[Dictionary, EncoderSettings]:
    """The space of the cache that ``model`` filled on a processor, with its settings.

    Raises:
        UnknownSpace: no space of these weights; says in what the nearest one differs.
        CheckpointError: a model folder that cannot be used.

    """
    checkpoint = describe_checkpoint(model)
    differences: list[str] = []
    for dictionary, settings in _embeddings(cache):
        own = encoder_spec(checkpoint, settings)
        if fingerprint_of(own) == fingerprint_of(dictionary.spec):
            return dictionary, settings
        lines = explain_difference(own, dictionary.spec)
        differences.append(f"{dictionary.name} differs in " + ", ".join(lines))
    raise UnknownSpace(
        f"{cache.path} holds no vectors by {model}: {'; '.join(differences) or 'it has no space'}",
        hint="name the model that built it, or run build-cache with this one",
    )


def encode_query(model: Path | str, settings: EncoderSettings, text: str) -> NDArray[np.float32]:
    """The vector (dim,) of a text, computed in this process: torch is loaded here."""
    from featpipe.encoders.encoder import Encoder

    encoder = Encoder.load(model, settings)
    return np.asarray(encoder.encode([text]).vectors[0], np.float32)


def _embeddings(cache: Cache) -> Iterator[tuple[Dictionary, EncoderSettings]]:
    """Every space of vectors, with the settings that it was filled with."""
    for name in cache.spaces():
        dictionary = cache.dictionary(name)
        if dictionary.spec.get("feature") == "embedding":
            yield dictionary, _settings_of(dictionary.spec)


def _spec_on(device: str, checkpoint: Checkpoint, settings: EncoderSettings) -> Spec | None:
    """The spec of these settings there; None for those that are for another kind of device."""
    try:
        return encoder_spec(checkpoint, settings, device)
    except UsageError:
        return None


def _note_precision(dictionary: Dictionary, device: str) -> str:
    held = dictionary.spec["arithmetic"]
    return (
        f"{dictionary.name} was computed in {held}, as {device} of this machine does not compute;"
        " what is asked is encoded in float32, and cosines differ from the fourth digit on"
    )


def _settings_of(spec: dict[str, Any]) -> EncoderSettings:
    """What must be chosen to get this spec again, with the same weights."""
    names = ("pooling", "layer", "normalise", "max_length", "stride", "prompt", "precision")
    on_truncate: OnTruncate = "warn" if spec["window_rule"] == CUT_RULE else "window"
    return EncoderSettings(
        dtype=spec["dtype"], on_truncate=on_truncate, **{name: spec[name] for name in names}
    )
