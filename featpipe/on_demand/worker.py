"""Embed: a worker that turns the texts of many requests into vectors at one go.

A text whose vector the cache holds is not encoded again: it is found by (fingerprint, text), so it
has the bytes that the encoder would give. Only where the settings name another precision than the
space's, because this machine cannot compute in that one, do the two differ, by that rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache.cache import Cache
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import CheckpointError, EncodingError
from featpipe.on_demand.messages import Embedded
from featpipe.on_demand.space import is_comparable
from featpipe.store.schema import from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary
    from featpipe.encoders.spec import EncoderSettings
    from featpipe.on_demand.messages import EmbedQuery


class EmbedRole:
    """Loads its checkpoint at the start.

    Args:
        model: checkpoint folder.
        settings: those of the space, so that answers can be compared with what it holds.
        cache: path of the file whose vectors may be used; None: encode everything.
        space: name of the space in it, which these settings of this model fill.
        threads, device: given by the engine.

    Raises:
        CheckpointError: the folder holds another model than the one that filled the space.

    """

    def __init__(
        self,
        model: str,
        settings: EncoderSettings,
        cache: str | None,
        space: str | None,
        threads: int,
        device: str,
    ) -> None:
        self._encoder = Encoder.load(model, settings, device=device, threads=threads)
        self._cache = Cache.open(cache) if cache is not None and space is not None else None
        self._dictionary: Dictionary | None = None
        if self._cache is not None:
            self._dictionary = self._cache.dictionary(space)
            _refuse_other(self._encoder, self._dictionary, model)

    def run(self, queries: Sequence[EmbedQuery]) -> list[Embedded | EncodingError]:
        """One answer per query; a text that cannot be encoded costs its own query."""
        texts = [text for query in queries for text in query.texts]
        sequences = [ids for query in queries for ids in query.tokens]
        vectors, n_tokens, faults = self._encode(texts)
        answers: list[Embedded | EncodingError] = []
        ids = self._encode_tokens(sequences) if sequences else {}
        at = 0
        for query in queries:
            if query.tokens:
                answers.append(_gather(ids, query.tokens))
                continue
            rows = slice(at, at + len(query.texts))
            at = rows.stop
            fault = next((faults[row] for row in range(rows.start, rows.stop) if row in faults), "")
            answers.append(
                EncodingError(f"a text cannot be encoded: {fault}")
                if fault
                else Embedded(vectors[rows], n_tokens[rows])
            )
        return answers

    def close(self) -> None:
        """Let go of the cache."""
        if self._cache is not None:
            self._cache.close()

    def _encode(
        self, texts: list[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], dict[int, str]]:
        vectors = np.zeros((len(texts), self._encoder.dim), np.float32)
        n_tokens = np.zeros(len(texts), np.int32)
        if not texts:
            return vectors, n_tokens, {}
        found = self._look_up(texts, vectors)
        known = np.flatnonzero(found)
        if len(known):
            n_tokens[known] = self._encoder.count_tokens([texts[row] for row in known])
        missing = np.flatnonzero(~found)
        faults: dict[int, str] = {}
        if len(missing):
            encoded = self._encoder.encode([texts[row] for row in missing], on_fault="report")
            vectors[missing] = self._widen(encoded.vectors)
            n_tokens[missing] = encoded.n_tokens
            faults = {int(missing[row]): why for row, why in encoded.faults.items()}
        return vectors, n_tokens, faults

    def _look_up(self, texts: list[str], vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
        if self._cache is None or self._dictionary is None:
            return np.zeros(len(texts), np.bool_)
        self._cache.refresh()
        stored, found = self._dictionary.lookup(texts)
        vectors[found] = stored[found]
        return found

    def _encode_tokens(
        self, sequences: list[tuple[int, ...]]
    ) -> dict[tuple[int, ...], Embedded | EncodingError]:
        """Answers by sequence; all at once, and one by one only where that fails."""
        distinct = list(dict.fromkeys(sequences))
        try:
            encoded = self._encoder.encode_tokens(distinct)
        except EncodingError as error:
            if len(distinct) == 1:
                return {distinct[0]: EncodingError(f"token ids cannot be encoded: {error.message}")}
            return {ids: self._encode_tokens([ids])[ids] for ids in distinct}
        wide = self._widen(encoded.vectors)
        return {
            ids: Embedded(wide[row : row + 1], encoded.n_tokens[row : row + 1])
            for row, ids in enumerate(distinct)
        }

    def _widen(self, vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        is_bits = self._encoder.spec["dtype"] == "bfloat16"
        wide = from_bfloat16(vectors.astype(np.uint16)) if is_bits else vectors
        return np.asarray(wide, np.float32)


def _refuse_other(encoder: Encoder, dictionary: Dictionary, model: str) -> None:
    """Weights may change under a path between the choice of a space and now."""
    spec = dictionary.spec
    is_other_precision = encoder.spec["precision"] != spec["precision"]
    if is_other_precision and is_comparable(encoder.spec, spec):
        return  # whoever chose these settings knew
    if encoder.fingerprint != fingerprint_of(spec):
        raise CheckpointError(
            f"{model} is not the model that filled {dictionary.name}",
            hint="build a cache with the model as it is now, or bring the former one back",
        )


def _gather(
    answers: dict[tuple[int, ...], Embedded | EncodingError], tokens: Sequence[tuple[int, ...]]
) -> Embedded | EncodingError:
    parts = []
    for ids in tokens:
        answer = answers[ids]
        if isinstance(answer, EncodingError):
            return answer
        parts.append(answer)
    return Embedded(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.n_tokens for part in parts]),
    )
