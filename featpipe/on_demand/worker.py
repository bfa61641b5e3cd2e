"""Text worker: vectors and entities of texts, by models loaded in this process.

Guarantees: a model whose fingerprint is not that of the cache's vectors or entities is refused, so
a vector is the one that ``build-cache`` would store; a text that the cache holds is not encoded; a
query under a prompt of its own is never taken from the cache; a text that cannot be encoded costs
itself alone. Another backend than torch computes queries alone, and only where its vectors were
found to be those of torch (`featpipe.encoders.query_backend`); else the log tells why not.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from logging import getLogger
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache.cache import Cache
from featpipe.encoders.lost_card import ending_with_card
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import CheckpointError, EncodingError, UnsupportedModel
from featpipe.on_demand.messages import Embedded, EmbedQuery, TagQuery
from featpipe.store.schema import from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.tagger import Tagger
    from featpipe.on_demand.messages import Answer, Entity
    from featpipe.on_demand.space import Checkpoints

logger = getLogger(__name__)


class LoadedModels:
    """The models of ``checkpoints`` in this process, each loaded at its first use.

    Not for several threads at once.

    Args:
        checkpoints: which.
        cache: open, kept by the caller; None: encode everything.
        space: name of the space whose vectors may be used; None: none may.
        tagger: name of the tagger's table in the cache.
        fingerprint: of the encoder; by default that of the space.

    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        cache: Cache | None,
        space: str | None,
        tagger: str | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._checkpoints, self._cache = checkpoints, cache
        self._dictionary: Dictionary | None = None
        self._space_print, self._tagger_print = fingerprint, ""
        if cache is not None and space is not None:
            self._dictionary = cache.dictionary(space)
            self._space_print = fingerprint or fingerprint_of(self._dictionary.spec)
        if cache is not None and tagger is not None:
            table = cache.reader.table(f"entities/{tagger}")
            self._tagger_print = table.attributes["fingerprint"]
        self._encoder: Encoder | None = None
        self._query_encoder: Encoder | None = None
        self._tagger: Tagger | None = None

    @property
    def has_encoder(self) -> bool:
        """Whether texts get vectors."""
        return self._checkpoints.model is not None

    @property
    def has_tagger(self) -> bool:
        """Whether texts get entities."""
        return self._checkpoints.ner is not None and bool(self._tagger_print)

    def load(self) -> None:
        """Load the models now.

        Raises:
            CheckpointError: a folder that cannot be used, or that holds another model.

        """
        if self.has_encoder:
            self._load_query_encoder()
        if self.has_tagger:
            self._load_tagger()

    def encode(self, texts: Sequence[str], prompt: str | None = None) -> list[Answer]:
        """Vector (1, dim) and number of tokens of each text, or why there is none.

        Args:
            texts: as passages of the space, or with ``prompt`` before each.
            prompt: of queries, which the query backend computes; None: the space's.

        Raises:
            CheckpointError: as `load`.

        """
        encoder = self._choose_encoder(prompt)
        if prompt not in {None, encoder.spec["prompt"]}:
            encoded = encoder.encode(texts, on_fault="report", prompt=prompt)
            return _answers(_widen(encoder, encoded.vectors), encoded.n_tokens, encoded.faults)
        stored, found = self._look_up(texts)
        known, missing = np.flatnonzero(found), np.flatnonzero(~found)
        vectors = np.zeros((len(texts), encoder.dim), np.float32)
        vectors[known] = stored
        n_tokens = np.zeros(len(texts), np.int32)
        if len(known):
            n_tokens[known] = encoder.count_tokens([texts[row] for row in known.tolist()])
        faults: dict[int, str] = {}
        if len(missing):
            encoded = encoder.encode([texts[row] for row in missing.tolist()], on_fault="report")
            vectors[missing] = _widen(encoder, encoded.vectors)
            n_tokens[missing] = encoded.n_tokens
            faults = {int(missing[row]): why for row, why in encoded.faults.items()}
        return _answers(vectors, n_tokens, faults)

    def encode_tokens(
        self, sequences: Sequence[tuple[int, ...]], prompt: str | None = None
    ) -> list[Answer]:
        """As `encode`, of texts given as token ids; encoded one by one only where some fail."""
        encoder = self._choose_encoder(prompt)
        distinct = list(dict.fromkeys(sequences))
        try:
            encoded = encoder.encode_tokens(distinct, prompt=prompt)
        except EncodingError as error:
            if len(distinct) == 1:
                why = EncodingError(f"token ids cannot be encoded: {error.message}")
                return [why] * len(sequences)
            answers = [self.encode_tokens([ids], prompt)[0] for ids in distinct]
        else:
            answers = _answers(_widen(encoder, encoded.vectors), encoded.n_tokens, {})
        by_ids = dict(zip(distinct, answers, strict=True))
        return [by_ids[ids] for ids in sequences]

    def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) as stored ones are; zeros for a text that cannot be encoded."""
        return stack_vectors(self.encode(texts), self._load_encoder().dim)

    def entities_of(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Entities of each text; none for a text that cannot be tagged."""
        tagger = self._load_tagger()
        try:
            found = tagger.find_entities(list(texts))
        except EncodingError:
            return [] if not texts else self._tag_alone(texts)
        labels = [tagger.labels[number] for number in found.label.tolist()]
        whole = list(
            zip(found.start.tolist(), found.end.tolist(), labels, found.score.tolist(), strict=True)
        )
        ends = accumulate(found.lengths.tolist(), initial=0)
        return [whole[start:end] for start, end in pairwise(ends)]

    def close(self) -> None:
        """Forget the models."""
        self._encoder = self._query_encoder = self._tagger = None

    def _tag_alone(self, texts: Sequence[str]) -> list[list[Entity]]:
        if len(texts) == 1:
            return [[]]
        return [self.entities_of([text])[0] for text in texts]

    def _look_up(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Vectors (n found, dim) of the texts that the cache holds, and which (n,) it holds."""
        if self._cache is None or self._dictionary is None:
            return np.zeros((0, 1), np.float32), np.zeros(len(texts), np.bool_)
        self._cache.refresh()
        stored, found = self._dictionary.lookup(texts)
        return np.asarray(stored[found], np.float32), found

    def _choose_encoder(self, prompt: str | None) -> Encoder:
        """That of passages, or with a prompt that of queries."""
        return self._load_encoder() if prompt is None else self._load_query_encoder()

    def _load_query_encoder(self) -> Encoder:
        if self._query_encoder is None:
            encoder = self._load_encoder()
            is_other = self._checkpoints.query_backend != "torch"
            self._query_encoder = _by_onnx(encoder) if is_other else encoder
        return self._query_encoder

    def _load_encoder(self) -> Encoder:
        if self._encoder is None:
            from featpipe.encoders.encoder import Encoder

            chosen = self._checkpoints
            encoder = Encoder.load(
                str(chosen.model),
                chosen.encoder,
                device=chosen.device,
                threads=chosen.threads or 1,
            )
            _refuse_other(str(chosen.model), encoder.fingerprint, self._space_print)
            self._encoder = encoder
        return self._encoder

    def _load_tagger(self) -> Tagger:
        if self._tagger is None:
            from featpipe.encoders.tagger import Tagger

            chosen = self._checkpoints
            tagger = Tagger.load(
                str(chosen.ner), chosen.tagger, device=chosen.device, threads=chosen.threads or 1
            )
            _refuse_other(str(chosen.ner), tagger.fingerprint, self._tagger_print)
            self._tagger = tagger
        return self._tagger


class TextRole:
    """The worker: loads its models at the start, and answers queries of many requests together.

    Args:
        checkpoints: which models.
        cache: path of the file whose vectors may be used; None: encode everything.
        space, tagger, fingerprint: as for `LoadedModels`.
        threads, device: given by the pool; they win over those of ``checkpoints``.

    Raises:
        CheckpointError: a folder holds another model than the one that filled the cache.

    """

    def __init__(  # noqa: PLR0913  # the pool passes arguments by name
        self,
        *,
        checkpoints: Checkpoints,
        cache: str | None,
        space: str | None,
        tagger: str | None,
        fingerprint: str | None,
        threads: int,
        device: str,
    ) -> None:
        from dataclasses import replace

        here = replace(checkpoints, device=device, threads=threads)
        self._device = device
        self._cache = None if cache is None else Cache.open(cache)
        self._models = LoadedModels(here, self._cache, space, tagger, fingerprint)
        self._models.load()

    def run(self, queries: Sequence[EmbedQuery | TagQuery]) -> list[Answer | list[Entity]]:
        """One answer per query; a text that cannot be encoded costs its own query."""
        with ending_with_card(self._device):
            return self._answer(queries)

    def _answer(self, queries: Sequence[EmbedQuery | TagQuery]) -> list[Answer | list[Entity]]:
        embed = [query for query in queries if isinstance(query, EmbedQuery)]
        prompts = dict.fromkeys(query.prompt for query in embed)
        by_prompt = {prompt: self._embed(embed, prompt) for prompt in prompts}
        tagged = [query.text for query in queries if isinstance(query, TagQuery)]
        entities = iter(self._models.entities_of(tagged) if tagged else [])
        return [
            next(entities) if isinstance(query, TagQuery) else next(by_prompt[query.prompt])
            for query in queries
        ]

    def _embed(self, queries: Sequence[EmbedQuery], prompt: str | None) -> Iterator[Answer]:
        """The answers to the queries that have this prompt, computed together."""
        asked = [query for query in queries if query.prompt == prompt]
        texts = [text for query in asked for text in query.texts]
        sequences = [ids for query in asked for ids in query.tokens]
        by_text = iter(self._models.encode(texts, prompt) if texts else [])
        by_ids = iter(self._models.encode_tokens(sequences, prompt) if sequences else [])
        for query in asked:
            yield _gather([next(by_ids if query.tokens else by_text) for _ in range(len(query))])

    def close(self) -> None:
        """Let go of the cache."""
        if self._cache is not None:
            self._cache.close()


def stack_vectors(answers: Sequence[Answer], dim: int) -> NDArray[np.float32]:
    """Vectors (n, dim) of single texts; zeros for an error."""
    vectors = np.zeros((len(answers), dim), np.float32)
    for row, answer in enumerate(answers):
        if isinstance(answer, Embedded):
            vectors[row] = answer.vectors[0]
    return vectors


def _gather(answers: Sequence[Answer]) -> Answer:
    """One answer for the inputs of a query: the first error, else all vectors."""
    found = [answer for answer in answers if isinstance(answer, Embedded)]
    error = next((answer for answer in answers if isinstance(answer, EncodingError)), None)
    if error is not None:
        return error
    return Embedded(
        np.concatenate([one.vectors for one in found]),
        np.concatenate([one.n_tokens for one in found]),
    )


def _answers(
    vectors: NDArray[np.float32], n_tokens: NDArray[np.int32], faults: Mapping[int, str]
) -> list[Answer]:
    """One answer per row of ``vectors``; ``faults`` are by row."""
    return [
        EncodingError(f"a text cannot be encoded: {faults[row]}")
        if row in faults
        else Embedded(vectors[row : row + 1], n_tokens[row : row + 1])
        for row in range(len(vectors))
    ]


def _widen(encoder: Encoder, vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    """Vectors in the stored dtype as float32; bfloat16 comes as its bits."""
    is_bits = encoder.spec["dtype"] == "bfloat16"
    wide = from_bfloat16(vectors.astype(np.uint16)) if is_bits else vectors
    return np.asarray(wide, np.float32)


def _by_onnx(encoder: Encoder) -> Encoder:
    """The encoder on onnxruntime, or as it is where that does not give the same vectors."""
    from featpipe.encoders.query_backend import onnx_encoder

    try:
        found = onnx_encoder(encoder)
    except UnsupportedModel as error:
        logger.warning("queries are computed by torch: %s", error.message)
        return encoder
    logger.info("queries are computed in %s", found.spec["arithmetic"])
    return found


def _refuse_other(model: str, found: str, wanted: str | None) -> None:
    """Weights may change under a path between the choice of a model and now."""
    if wanted is not None and found != wanted:
        raise CheckpointError(
            f"{model} is not the model that filled the cache: it has the fingerprint {found[:12]},"
            f" and the cache was built with {wanted[:12]}",
            hint="name the model and settings that build-cache was given, or build a cache with"
            " the model as it is now",
        )
