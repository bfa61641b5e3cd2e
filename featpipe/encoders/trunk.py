"""A loaded transformer: weights on a device, and what they came from.

One trunk may serve several features: an encoder and a tagger whose weights match share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from featpipe.encoders.bert import OWN, PackedBert, Shape
from featpipe.encoders.checkpoint import belongs_to_crf
from featpipe.encoders.fingerprint import digest_of
from featpipe.encoders.weights import (
    Parts,
    Weights,
    check_complete,
    is_unused,
    load_weights,
    split_trunk,
)
from featpipe.errors import UnsupportedModel

if TYPE_CHECKING:
    from featpipe.encoders.checkpoint import Checkpoint
    from featpipe.encoders.packing import Pack


class Trunk(Protocol):
    """Turns packs into hidden states."""

    width: int
    n_words: int
    """Rows of the word embeddings; a higher token id has no meaning."""
    device: torch.device

    def twin(
        self, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> Trunk:
        """The same weights again, elsewhere or in another precision."""
        ...

    @property
    def is_invariant(self) -> bool:
        """Whether a sequence's bits are promised not to depend on its neighbours."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how this model is run: fallbacks, lowered guarantees."""
        ...

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """Shapes: pack of t tokens -> (t, width) float32, after `n_layers` layers."""
        ...


def open_parts(checkpoint: Checkpoint) -> Parts:
    """The checkpoint's weights, mapped and split into trunk and head."""
    return split_trunk(load_weights(checkpoint), source=checkpoint.path)


def load_trunk(  # noqa: PLR0913 - one argument per part that a trunk is made of
    checkpoint: Checkpoint,
    parts: Parts,
    *,
    n_layers: int,
    precision: str,
    device: torch.device,
    known: frozenset[str] = frozenset(),
    share: PackedBert | None = None,
) -> PackedBert:
    """Check the weights and lay them out for `device`.

    Args:
        checkpoint: whose weights these are; named in errors.
        parts: its weights.
        n_layers: of the first layers that are needed.
        precision: ``exact``, ``mixed`` or ``approx``.
        device: where to.
        known: names outside the trunk that the caller uses, or knows that it does without; others
            must be of heads that nobody needs.
        share: a trunk to give back instead of a second copy, if it is the same.

    Raises:
        MissingWeights: missing, misshapen or left-over tensors, listed.
        UnsupportedModel: an architecture that `bert` does not compute.
    """
    shape = Shape.of(checkpoint.config, checkpoint.path / "config.json")
    check_complete(
        parts.trunk,
        shape.tensors(n_layers),
        leftover=_find_leftover(parts, shape, known),
        source=checkpoint.path,
    )
    dtype = choose_dtype(precision, device)
    if share is not None and share.matches(
        parts.trunk, shape, n_layers=n_layers, dtype=dtype, device=device
    ):
        return share
    trunk = PackedBert(parts.trunk, shape, n_layers=n_layers, dtype=dtype, device=device)
    trunk.origin = checkpoint.weight_files
    trunk.origin_digest = digest_of(checkpoint.weight_files)
    return trunk


def is_own(checkpoint: Checkpoint) -> bool:
    """Whether our packed forward computes this architecture."""
    if checkpoint.architecture not in OWN:
        return False
    try:
        Shape.of(checkpoint.config, checkpoint.path / "config.json")
    except UnsupportedModel:
        return False
    return True


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Of the linear layers and attention; everything else is float32."""
    if precision == "exact":
        return torch.float32
    if precision == "approx":
        return torch.int8
    return torch.float16 if device.type == "cuda" else torch.bfloat16


def _find_leftover(parts: Parts, shape: Shape, known: frozenset[str]) -> list[str]:
    every: Weights | dict[str, tuple[int, ...]] = shape.tensors(shape.n_layers)
    return [
        name
        for name in (*(n for n in parts.trunk if n not in every), *parts.head)
        if name not in known and (belongs_to_crf(name) or not is_unused(name))
    ]
