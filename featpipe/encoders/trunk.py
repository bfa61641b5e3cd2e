"""A loaded transformer without its head: weights on a device.

One trunk may serve an encoder and a tagger whose weights are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from featpipe.encoders.bert import ARCHITECTURES, PackedBert, Placement, Shape
from featpipe.encoders.checkpoint import belongs_to_crf
from featpipe.encoders.weights import Parts, check_complete, is_unused, load_weights, split_trunk
from featpipe.errors import UnsupportedModel

if TYPE_CHECKING:
    from featpipe.encoders.checkpoint import Checkpoint
    from featpipe.encoders.packing import Pack


class Trunk(Protocol):
    """Turns packs into hidden states."""

    width: int
    n_words: int
    """Rows of the word embeddings; a higher token id has no embedding."""
    device: torch.device

    @property
    def is_invariant(self) -> bool:
        """Whether a sequence's bits do not depend on the other sequences in its pack."""
        ...

    @property
    def needs_one_thread(self) -> bool:
        """Whether that holds where one thread alone computes a pack."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Fallbacks and lowered guarantees, in words for the user."""
        ...

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """Hidden states after `n_layers` layers (all by default).

        Shapes: pack of t tokens -> (t, width) float32.
        """
        ...

    def copy_to(
        self, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> Trunk:
        """A second trunk of the same weights, on another device or in another dtype."""
        ...


def open_parts(checkpoint: Checkpoint) -> Parts:
    """The checkpoint's weights, mapped and split into trunk and head."""
    return split_trunk(load_weights(checkpoint), source=checkpoint.path)


def load_trunk(
    checkpoint: Checkpoint,
    parts: Parts,
    placement: Placement,
    *,
    known: frozenset[str] = frozenset(),
    share: PackedBert | None = None,
) -> PackedBert:
    """Check the weights and lay them out.

    Args:
        checkpoint: where the weights are from.
        parts: its weights.
        placement: layers, dtype and device.
        known: names outside the trunk that the caller uses or ignores on purpose; any other must
            belong to a head that is known to be unneeded.
        share: a trunk to return instead of a second copy, if it is the same.

    Raises:
        MissingWeights: missing, misshapen or left-over tensors, listed.
        UnsupportedModel: an architecture that `bert` does not compute.
    """
    shape = Shape.of(checkpoint)
    check_complete(
        parts.trunk,
        shape.tensors(placement.n_layers),
        leftover=_find_leftover(parts, shape, known),
        source=checkpoint.path,
    )
    if share is not None and share.matches(parts.trunk, shape, placement):
        return share
    return PackedBert(parts.trunk, shape, placement, checkpoint.weight_files)


def has_packed_forward(checkpoint: Checkpoint) -> bool:
    """Whether `bert` computes this architecture with its options."""
    if checkpoint.architecture not in ARCHITECTURES:
        return False
    try:
        Shape.of(checkpoint)
    except UnsupportedModel:
        return False
    return True


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Dtype of the linear layers and attention; everything else is float32."""
    if precision == "exact":
        return torch.float32
    if precision == "approx":
        return torch.int8
    return torch.float16 if device.type == "cuda" else torch.bfloat16


def _find_leftover(parts: Parts, shape: Shape, known: frozenset[str]) -> list[str]:
    in_trunk = shape.tensors(shape.n_layers)
    return [
        name
        for name in (*(n for n in parts.trunk if n not in in_trunk), *parts.head)
        if name not in known and (belongs_to_crf(name) or not is_unused(name))
    ]
