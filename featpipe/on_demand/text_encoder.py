"""Text encoder: vectors of any text in one space, from the cache or from a worker process.

Guarantees: every vector is of the space's model and settings, and of its fingerprint unless
`TextEncoder.note` states that this machine cannot compute in its precision; a text that the cache
holds, or that was encoded here before and is remembered, is not encoded again; a query under a
prompt of its own and a stored text never get one another's vector; this process never imports
torch. It works in a script without a ``__main__`` guard, a notebook, a thread and a web worker.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from cachetools import LRUCache

from featpipe.cache.cache import Cache
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.memory import SMALL_KERNEL_CACHES
from featpipe.encoders.prompts import find_query_prompt
from featpipe.encoders.query_backend import check_query_backend
from featpipe.encoders.spec import encoder_spec, fingerprint_of
from featpipe.errors import EncodingError, PoolBroken, raise_original
from featpipe.fork_lock import make_lock
from featpipe.on_demand.messages import EmbedQuery, TagQuery
from featpipe.on_demand.space import Checkpoints, choose_model, find_query_space
from featpipe.pool import Pool, Role
from featpipe.pool.devices import check_devices
from featpipe.pool.role import HALVE_SEQUENCE
from featpipe.store import keys_of, list_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary
    from featpipe.encoders.query_backend import QueryBackend
    from featpipe.on_demand.messages import Answer, Entity
    from featpipe.on_demand.space import QuerySpace

logger = getLogger(__name__)

#: Texts of one task: the worker packs them by length itself.
_TASK_TEXTS = 512
#: Vectors kept by default, and seconds for the texts of one task.
_REMEMBERED, _DEADLINE_S = 100_000, 600.0


class TextEncoder:
    """Texts in, vectors (n, dim) float32 out. Any number of threads may use one.

    New texts are remembered in memory and never stored: a reader takes no write lock, so it
    neither waits for a build nor holds one up. To store texts, run ``build-cache`` over a file with
    one text per line.

    ::

        with TextEncoder("c.h5") as encoder:
            vectors = encoder.encode(["违约责任", "a text the cache has never seen"])
            queries = encoder.encode_queries(["违约金是多少？"])

    Args:
        cache: the file; its space gives the settings of encoding.
        model: the encoder that filled the space, by folder or hub name; by default the built-in if
            it did, else the one that the cache knows where to find.
        device: where to encode what is missing.
        query_prompt: put before every text of `encode_queries`; None: the model's own, see
            ``query_prompt_source``.
        query_backend: what computes new texts of `encode_queries`: ``torch``, or ``onnx`` for
            onnxruntime in float32, which answers one short text sooner where nothing else runs
            (extra ``onnx``; BERT-like models on processors, others stay with torch, and the log
            tells why).
        n_remembered: newly encoded texts whose vectors are kept in memory.
        deadline_s: for the encoding of one portion of texts.

    Raises:
        UnknownSpace: the cache holds no vectors by this very model.
        CheckpointError, UnreadableDictionary, UnknownDevice: of the arguments.
        UsageError: an unknown query backend, or one that does not compute on ``device``.
        MissingExtra: the packages of the query backend are not installed.

    """

    def __init__(  # noqa: PLR0913  # one argument per choice of the caller
        self,
        cache: str | Path,
        model: str | Path | None = None,
        *,
        device: str = "cpu",
        query_prompt: str | None = None,
        query_backend: QueryBackend = "torch",
        n_remembered: int = _REMEMBERED,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self.path, self.device = Path(cache).absolute(), device
        self._n_remembered, self._deadline_s = n_remembered, deadline_s
        check_devices([device])
        check_query_backend(query_backend, device)
        self._query_backend: QueryBackend = query_backend
        self._cache = Cache.open(self.path)
        try:
            self._model, found = _find_model(self._cache, model, device)
            self.dictionary, settings, self.note = found
            checkpoint = describe_checkpoint(self._model)
            spec = encoder_spec(checkpoint, settings, device)
        except BaseException:
            self._cache.close()
            raise
        self._given_prompt = query_prompt
        self._query_prompt = find_query_prompt(checkpoint, str(spec["prompt"]), query_prompt)
        self._passage_prompt = str(spec["prompt"])
        if self.note:
            logger.warning("%s", self.note)
        self._models = ModelsInWorker(
            Checkpoints(self._model, encoder=settings, device=device, query_backend=query_backend),
            self._cache,
            self.space,
            fingerprint=fingerprint_of(spec),
            n_remembered=n_remembered,
            deadline_s=deadline_s,
        )

    dictionary: Dictionary
    """The space, for look-ups that never encode."""

    note: str
    """That this machine cannot encode in the precision of the space; else empty."""

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.dictionary.dim

    @property
    def space(self) -> str:
        """Such as ``zh-small@3f2a9c71b0de``."""
        return self.dictionary.name

    @property
    def n_encoded(self) -> int:
        """Texts that were encoded so far."""
        return self._models.n_encoded

    @property
    def query_prompt(self) -> str:
        """Put before every text of `encode_queries`; may be empty."""
        return self._query_prompt.text

    @property
    def query_prompt_source(self) -> str:
        """Where ``query_prompt`` is from, in words."""
        return self._query_prompt.source

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) of questions, to be compared with those of the space.

        They are those of ``query_prompt`` and the text. Where that is the prompt of the space, the
        vectors are those of `encode`; with ``query_backend`` ``onnx`` those of new texts are
        computed anew in float32, and remembered apart.

        Raises:
            UsageError, EncodingError, CheckpointError, PoolBroken, WorkerDied, TaskTimedOut: as
                `encode`.

        """
        texts = list_texts(texts)
        if self.query_prompt == self._passage_prompt:
            # Under a prompt, though it is the same one, remembered vectors are kept apart.
            prompt = None if self._query_backend == "torch" else self.query_prompt
            return self._complete(texts, prompt)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for row, answer in enumerate(self._models.encode(texts, self.query_prompt)):
            vectors[row] = _require(answer, texts[row])
        return vectors

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) in the order of the texts; the same bytes as ``build-cache`` stores.

        With a ``note``, new texts get the vectors of precision ``exact``.

        Raises:
            UsageError: one text, or something among them that is none.
            EncodingError: a text that cannot be encoded.
            CheckpointError: the model folder holds another model by now.
            PoolBroken, WorkerDied, TaskTimedOut: of the worker.

        """
        return self._complete(list_texts(texts), None)

    def _complete(self, texts: list[str], prompt: str | None) -> NDArray[np.float32]:
        """Stored vectors, and those of a worker for texts that the cache does not hold."""
        self._cache.refresh()
        stored, found = self.dictionary.lookup_keys(keys_of(texts))
        vectors = np.array(stored, np.float32)
        missing = np.flatnonzero(~found)
        answers = self._models.encode([texts[row] for row in missing], prompt)
        for row, answer in zip(missing, answers, strict=True):
            vectors[row] = _require(answer, texts[row])
        return vectors

    def __repr__(self) -> str:
        return f"<TextEncoder of {self.space} in {self.path}, on {self.device}>"

    def close(self) -> None:
        """Stop the worker, if one was started, and let go of the cache."""
        self._models.close()
        self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as the arguments; the other process opens the cache and starts its own worker."""
        rebuild = partial(
            type(self),
            device=self.device,
            query_prompt=self._given_prompt,
            query_backend=self._query_backend,
            n_remembered=self._n_remembered,
            deadline_s=self._deadline_s,
        )
        return rebuild, (self.path, self._model)


class ModelsInWorker:
    """The models of ``checkpoints`` in one worker process, started at the first text.

    Any thread may call. The process ends with `close`, with this object, or with this program. In a
    forked process (``gunicorn --preload``) it is another one, started at the first text there.

    Args:
        checkpoints, cache, space, tagger, fingerprint: as for
            :class:`featpipe.on_demand.worker.LoadedModels`.
        n_remembered: vectors kept in memory.
        deadline_s: for one task.

    """

    def __init__(  # noqa: PLR0913  # one argument per fact that the worker needs
        self,
        checkpoints: Checkpoints,
        cache: Cache,
        space: str | None,
        tagger: str | None = None,
        *,
        fingerprint: str | None = None,
        n_remembered: int = _REMEMBERED,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self.has_encoder = checkpoints.model is not None and space is not None
        self.has_tagger = checkpoints.ner is not None and tagger is not None
        self.n_encoded = 0
        self._dim = cache.dictionary(space).dim if space is not None else 0
        role = text_role(checkpoints, cache.path.absolute(), space, tagger, fingerprint)
        self._role = replace(role, deadline_s=deadline_s)
        self._remembered: LRUCache[tuple[str | None, str], NDArray[np.float32]] = LRUCache(
            max(1, n_remembered)
        )
        self._remembered_lock = make_lock()
        self._lock = make_lock()
        self._pool: Pool | None = None

    def encode(
        self, texts: Sequence[str], prompt: str | None = None
    ) -> list[NDArray[np.float32] | EncodingError]:
        """The vector (dim,) of each text, or why there is none.

        Args:
            texts: as passages of the space, or queries with ``prompt`` before each.
            prompt: None: the space's.

        Raises:
            CheckpointError: a folder that cannot be used, or that holds another model.
            PoolBroken, WorkerDied, TaskTimedOut: of the worker.

        """
        distinct = dict.fromkeys(texts)
        with self._remembered_lock:
            found: dict[str, NDArray[np.float32] | EncodingError] = {
                text: self._remembered[prompt, text]
                for text in distinct
                if (prompt, text) in self._remembered
            }
        missing = [text for text in distinct if text not in found]
        found.update(self._encode_missing(missing, prompt))
        return [found[text] for text in texts]

    def _encode_missing(
        self, texts: Sequence[str], prompt: str | None
    ) -> Iterator[tuple[str, NDArray[np.float32] | EncodingError]]:
        # One query per text: a text that cannot be encoded is named, and costs itself.
        answers = self._ask([EmbedQuery((text,), prompt=prompt) for text in texts])
        for text, answer in zip(texts, cast("list[Answer]", answers), strict=True):
            if isinstance(answer, EncodingError):
                yield text, answer
                continue
            vector = np.array(answer.vectors[0])
            with self._remembered_lock:
                self._remembered[prompt, text] = vector
            self.n_encoded += 1
            yield text, vector

    def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) as stored ones are; zeros for a text that cannot be encoded."""
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, answer in enumerate(self.encode(texts)):
            if not isinstance(answer, EncodingError):
                vectors[row] = answer
        return vectors

    def entities_of(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Entities of each text; none for a text that cannot be tagged."""
        return cast("list[list[Entity]]", self._ask([TagQuery(text) for text in texts]))

    def close(self) -> None:
        """Stop the worker, if one was started."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _ask(self, queries: Sequence[EmbedQuery | TagQuery]) -> list[object]:
        if not queries:
            return []
        with self._lock:
            if self._pool is None or self._pool.is_of_a_parent:
                self._pool = Pool([self._role])
            pool = self._pool
        tasks = (queries[at : at + _TASK_TEXTS] for at in range(0, len(queries), _TASK_TEXTS))
        answers: list[object] = []
        try:
            for outcome in pool.map(self._role.name, tasks, ordered=True):
                if outcome.error is not None:
                    raise outcome.error
                answers += cast("list[object]", outcome.value)
        except PoolBroken as error:
            # No worker can start in this pool any more; the next call opens another.
            self.close()
            raise_original(error)
        return answers


def _find_model(cache: Cache, model: str | Path | None, device: str) -> tuple[str, QuerySpace]:
    """The folder of the encoder, and its space."""
    if model is None:
        return choose_model(cache, partial(find_query_space, device=device))
    return str(model), find_query_space(cache, model, device)


def text_role(
    checkpoints: Checkpoints,
    cache: Path | None,
    space: str | None,
    tagger: str | None = None,
    fingerprint: str | None = None,
) -> Role:
    """The role ``embed``: tasks are sequences of `EmbedQuery` and `TagQuery`, one answer each.

    The arguments are those of :class:`featpipe.on_demand.worker.TextRole`.
    """
    return Role(
        name="embed",
        target="featpipe.on_demand.worker:TextRole",
        arguments={
            "checkpoints": checkpoints,
            "cache": None if cache is None else str(cache),
            "space": space,
            "tagger": tagger,
            "fingerprint": fingerprint,
        },
        devices=(checkpoints.device,),
        threads=checkpoints.threads,
        deadline_s=_DEADLINE_S,
        bisect=HALVE_SEQUENCE,
        environment=SMALL_KERNEL_CACHES,
    )


def _require(answer: NDArray[np.float32] | EncodingError, text: str) -> NDArray[np.float32]:
    if isinstance(answer, EncodingError):
        raise EncodingError(f"{answer.message}: {text[:80]!r}")
    return answer
