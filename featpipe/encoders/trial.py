"""A trial of a checkpoint: it is loaded as every worker loads it, and computes a few texts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.spec import EncoderSettings

if TYPE_CHECKING:
    from collections.abc import Callable

#: Different texts, in two languages, of usual words and as many characters.
_TEXTS = ("违约责任", "合同金额", "contract", "payments")


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a trial."""

    same: tuple[str, ...] = ()
    """Two different texts with equal vectors: the model does not know their characters. Else
    empty."""


def make_trial() -> Callable[[str], Trial]:
    """The role of a child that tries checkpoints by folder or hub name."""
    return try_checkpoint


def try_checkpoint(name: str) -> Trial:
    """Load a checkpoint, as encoder and, where it is one, as tagger, and compute texts.

    Raises:
        CheckpointError, EncodingError: as a build with this model would.
    """
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.tagger import Tagger

    encoder = Encoder.load(name, EncoderSettings(precision="exact"))
    vectors = encoder.encode(_TEXTS).vectors
    if describe_checkpoint(name).kind == "tagger":
        Tagger.load(name).find_entities(_TEXTS)
    pairs = combinations(range(len(_TEXTS)), 2)
    equal = next((pair for pair in pairs if (vectors[pair[0]] == vectors[pair[1]]).all()), ())
    return Trial(tuple(_TEXTS[row] for row in equal))
