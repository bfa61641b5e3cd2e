"""Live: vectors and entities of texts that the cache does not hold, by the same checkpoints.

Guarantee: a checkpoint whose fingerprint is not that of the cache's space is refused, so that a
live vector is the one that ``build-cache`` would have stored. Models are loaded when first needed,
once, and stay loaded whatever becomes of the templates.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.tagger import Tagger


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Which models to load, as they were given to ``build-cache``. Small and picklable."""

    model: str | None = None
    """Encoder by folder or hub name; None: unknown texts have no vectors."""
    ner: str | None = None
    """Tagger; None: unknown texts have no entities."""
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    tagger: TaggerSettings = field(default_factory=TaggerSettings)
    device: str = "cpu"
    threads: int = 1


class Live:
    """The models of :class:`Checkpoints`, loaded at first use. Any thread may call; one runs.

    Args:
        checkpoints: which.
        space: fingerprint of the vectors that the encoder must give.
        tagger: fingerprint of the entities that the tagger must find.

    """

    def __init__(self, checkpoints: Checkpoints, space: str | None, tagger: str | None) -> None:
        self._checkpoints = checkpoints
        self._space, self._tagger_print = space, tagger
        self._lock = threading.Lock()
        self._encoder: Encoder | None = None
        self._tagger: Tagger | None = None

    @property
    def has_encoder(self) -> bool:
        """Whether unknown texts get vectors."""
        return self._checkpoints.model is not None and self._space is not None

    @property
    def has_tagger(self) -> bool:
        """Whether unknown texts get entities."""
        return self._checkpoints.ner is not None and self._tagger_print is not None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) as they would be stored; zeros for a text that cannot be encoded.

        Raises:
            CheckpointError: the checkpoint is not the one the cache was built with.

        """
        from featpipe.store.schema import from_bfloat16

        with self._lock:
            if self._encoder is None:
                self._encoder = self._load_encoder()
            vectors = self._encoder.encode(list(texts), on_fault="report").vectors
            is_narrow = self._encoder.spec["dtype"] == "bfloat16"
        if is_narrow:
            vectors = from_bfloat16(vectors.view(np.uint16))
        return np.asarray(vectors, np.float32)

    def tag(self, texts: Sequence[str]) -> list[list[tuple[int, int, str, float]]]:
        """Entities of each text: (start, end, label, score)."""
        with self._lock:
            if self._tagger is None:
                self._tagger = self._load_tagger()
            found, labels = self._tagger.find_entities(list(texts)), self._tagger.labels
        kinds = [labels[number] for number in found.label.tolist()]
        whole = list(
            zip(found.start.tolist(), found.end.tolist(), kinds, found.score.tolist(), strict=True)
        )
        ends = np.cumsum(found.lengths).tolist()
        return [whole[end - n : end] for end, n in zip(ends, found.lengths.tolist(), strict=True)]

    def _load_encoder(self) -> Encoder:
        from featpipe.encoders.encoder import Encoder

        chosen = self._checkpoints
        encoder = Encoder.load(
            str(chosen.model), chosen.encoder, device=chosen.device, threads=chosen.threads
        )
        _refuse_other(str(chosen.model), encoder.fingerprint, str(self._space))
        return encoder

    def _load_tagger(self) -> Tagger:
        from featpipe.encoders.tagger import Tagger

        chosen = self._checkpoints
        tagger = Tagger.load(
            str(chosen.ner), chosen.tagger, device=chosen.device, threads=chosen.threads
        )
        _refuse_other(str(chosen.ner), tagger.fingerprint, str(self._tagger_print))
        return tagger


def _refuse_other(model: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise CheckpointError(
            f"{model} has the fingerprint {found[:12]}, and the cache was built with {wanted[:12]}",
            hint="name the model and settings that build-cache was given",
        )
