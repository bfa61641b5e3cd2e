"""Vectors of any text in one space: from the cache where it has them, else from a worker.

Guarantees: every vector is of the space's model and settings, or there is none, and of its very
fingerprint, unless `TextEncoder.note` says that this machine cannot compute in its precision; what
the cache holds is never encoded again, nor what this encoder has encoded before, as long as it
remembers; this process never imports torch. Works in a script without a guard, a notebook, a thread
or a web worker.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from featpipe.cache.cache import Cache
from featpipe.encoders.builtin import find_builtin_model
from featpipe.encoders.memory import SMALL_KERNEL_CACHES
from featpipe.errors import EncodingError, PoolBroken, raise_original
from featpipe.on_demand.messages import Embedded, EmbedQuery
from featpipe.on_demand.space import find_query_space
from featpipe.pool import Pool, Role
from featpipe.pool.devices import check_devices
from featpipe.store import keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary

logger = getLogger(__name__)

#: Texts that go to the worker together, and a query: the worker packs them by length itself.
_TASK_TEXTS = 512


class TextEncoder:
    """Texts in, vectors (n, dim) float32 out. Any number of threads may use one.

    New texts are remembered in memory and never stored: a cache holds the units of documents, and
    its one write lock belongs to whoever builds; a reader neither waits for it nor holds up a
    build. What shall stay is built: ``build-cache`` over a file of these texts, a line each.

    ::

        with TextEncoder("c.h5") as encoder:
            vectors = encoder.encode(["违约责任", "a text the cache has never seen"])

    Args:
        cache: the file; its space says with which settings to encode.
        model: the encoder that filled the space, by folder or hub name; by default the built-in.
        device: where to encode what is missing.
        n_remembered: newly encoded texts whose vectors are kept in memory.
        deadline_s: for the encoding of one portion of texts.

    Raises:
        UnknownSpace: the cache holds no vectors by this very model.
        CheckpointError, UnreadableDictionary, UnknownDevice: of the arguments.

    """

    def __init__(
        self,
        cache: str | Path,
        model: str | Path | None = None,
        *,
        device: str = "cpu",
        n_remembered: int = 100_000,
        deadline_s: float = 600.0,
    ) -> None:
        self.path, self.device = Path(cache).absolute(), device
        self.n_encoded = 0
        self._model = str(model or find_builtin_model())
        self._n_remembered, self._deadline_s = n_remembered, deadline_s
        check_devices([device])
        self._cache = Cache.open(self.path)
        try:
            found = find_query_space(self._cache, self._model, device)
        except BaseException:
            self._cache.close()
            raise
        self.dictionary, self._settings, self.note = found
        if self.note:
            logger.warning("%s", self.note)
        self._pool: Pool | None = None
        self._lock = threading.Lock()
        self._remembered: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()

    dictionary: Dictionary
    """The space, for look-ups that shall never encode."""

    note: str
    """Says so where this machine cannot encode in the precision of the space; else empty."""

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.dictionary.dim

    @property
    def space(self) -> str:
        """Such as ``zh-small@3f2a9c71b0de``."""
        return self.dictionary.name

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) in the order of the texts; the same bytes as ``build-cache`` stores.

        Where ``note`` speaks, new texts get the vectors of precision ``exact``.

        Raises:
            EncodingError: a text that cannot be encoded.
            CheckpointError: the model folder is another one by now.
            PoolBroken, WorkerDied, TaskTimedOut: of the worker.

        """
        texts = list(texts)
        keys = keys_of(texts)
        self._cache.refresh()
        stored, found = self.dictionary.lookup_keys(keys)
        vectors = np.array(stored, np.float32)
        for row in np.flatnonzero(~found):
            known = self._recall(keys[row].tobytes())
            if known is not None:
                vectors[row], found[row] = known, True
        missing = np.flatnonzero(~found)
        if len(missing):
            # Each distinct text once, in the order of first sight.
            distinct = dict.fromkeys(texts[row] for row in missing)
            fresh = dict(zip(distinct, self._encode_new(list(distinct)), strict=True))
            for row in missing:
                vectors[row] = fresh[texts[row]]
                self._remember(keys[row].tobytes(), fresh[texts[row]])
        return vectors

    def close(self) -> None:
        """Stop the worker, if one was started, and let go of the cache."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as the arguments; the other process opens the cache and starts its own worker."""
        return _rebuild, (
            type(self), self.path, self._model, self.device, self._n_remembered, self._deadline_s,
        )  # fmt: skip

    def _encode_new(self, texts: list[str]) -> NDArray[np.float32]:
        pool = self._open_pool()
        parts = [texts[at : at + _TASK_TEXTS] for at in range(0, len(texts), _TASK_TEXTS)]
        try:
            # One query per text: a text that cannot be encoded is named, and costs itself.
            outcomes = list(
                pool.map("embed", ([EmbedQuery((t,)) for t in p] for p in parts), ordered=True)
            )
        except PoolBroken as error:
            self._forget_pool(pool)
            raise_original(error)
        answers: list[Embedded | EncodingError] = []
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            answers += cast("list[Embedded | EncodingError]", outcome.value)
        for text, answer in zip(texts, answers, strict=True):
            if isinstance(answer, EncodingError):
                raise EncodingError(f"{answer.message}: {text[:80]!r}")
        self.n_encoded += len(texts)
        return np.concatenate([cast("Embedded", answer).vectors for answer in answers])

    def _open_pool(self) -> Pool:
        with self._lock:
            if self._pool is None:
                self._pool = Pool([self._role()])
            return self._pool

    def _forget_pool(self, pool: Pool) -> None:
        """After a worker failed to start a pool is of no use; the next call makes another."""
        with self._lock:
            if self._pool is pool:
                self._pool = None
        pool.close()

    def _role(self) -> Role:
        return Role(
            name="embed",
            target="featpipe.on_demand.worker:EmbedRole",
            arguments={
                "model": self._model,
                "settings": self._settings,
                "cache": str(self.path),
                "space": self.space,
            },
            devices=(self.device,),
            deadline_s=self._deadline_s,
            bisect="featpipe.pool.role:halve_sequence",
            environment=SMALL_KERNEL_CACHES,
        )

    def _recall(self, key: bytes) -> NDArray[np.float32] | None:
        with self._lock:
            vector = self._remembered.get(key)
            if vector is not None:
                self._remembered.move_to_end(key)
            return vector

    def _remember(self, key: bytes, vector: NDArray[np.float32]) -> None:
        with self._lock:
            self._remembered[key] = vector
            while len(self._remembered) > self._n_remembered:
                self._remembered.popitem(last=False)


def _rebuild(
    kind: type[TextEncoder],
    cache: Path,
    model: str,
    device: str,
    n_remembered: int,
    deadline_s: float,
) -> TextEncoder:
    return kind(cache, model, device=device, n_remembered=n_remembered, deadline_s=deadline_s)
