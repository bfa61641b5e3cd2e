"""LangChain: a cache as ``Embeddings`` and as a ``ByteStore``.

::

    embeddings = FeatpipeEmbeddings("c.h5")
    store = CacheByteStore("c.h5", namespace="answers")
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from featpipe.cache.cache import Cache
from featpipe.cache.texts import Texts
from featpipe.cache.write import CacheWriter
from featpipe.errors import FeatpipeError, MissingExtra, UsageError
from featpipe.on_demand.text_encoder import TextEncoder
from featpipe.store import Column, Ragged, TableSpec

try:
    from langchain_core.embeddings import Embeddings
    from langchain_core.stores import BaseStore
except ImportError as error:
    raise MissingExtra(
        "this needs langchain-core", hint="pip install 'featpipe[langchain]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.write import Rows

_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SPEC = TableSpec(
    columns=(Column("is_kept", "uint8"), Ragged("name", "uint8"), Ragged("value", "uint8")),
    keyed=False,
    attributes={},
)


class FeatpipeEmbeddings(Embeddings):
    """Vectors of one space, read from the cache; what it lacks is encoded in a worker.

    Args:
        cache: the file.
        model: the encoder that filled the space, by folder or hub name; by default the built-in.
        device: where to encode what is missing.

    Raises:
        UnknownSpace: the cache holds no vectors by this very model.

    """

    def __init__(
        self, cache: str | Path, model: str | Path | None = None, *, device: str = "cpu"
    ) -> None:
        self.encoder = TextEncoder(cache, model, device=device)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        return [list(map(float, vector)) for vector in self.encoder.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text; the same as of a document."""
        return self.embed_documents([text])[0]

    def close(self) -> None:
        """Stop the worker and let go of the cache."""
        self.encoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class CacheByteStore(BaseStore[str, bytes]):
    """Bytes by name, in a table of their own in the cache; what was set is durable.

    A log in which the last row wins: nothing is overwritten, and what other processes set is seen.
    Writing takes the cache's one write lock: for the call, or inside ``with store:`` until its end.

    Args:
        cache: the file; made when it does not exist.
        namespace: letters, digits, ``.``, ``_`` and ``-``.
        wait_s: how long to wait for another writer of this cache.

    Raises:
        UsageError: no such namespace can be.
        DictionaryLocked: another process went on writing for longer than ``wait_s``.

    """

    def __init__(
        self, cache: str | Path, namespace: str = "default", *, wait_s: float = 60
    ) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise UsageError(
                f"no namespace can be called {namespace!r}",
                hint="1 to 64 letters, digits, dots, underscores and hyphens",
            )
        self.path, self.namespace = Path(cache).absolute(), namespace
        self._table, self._wait_s = f"bytes/{namespace}", wait_s
        self._lock = threading.RLock()
        self._cache: Cache | None = None
        self._writer: CacheWriter | None = None
        self._rows: dict[str, int] = {}
        self._n_read = 0
        self._depth = 0

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Values in the order of the keys, None for what is not there."""
        with self._lock:
            self._update()
            return [self._value(key) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set all of them; durable when this returns."""
        self._append([(key, value, True) for key, value in key_value_pairs])

    def mdelete(self, keys: Sequence[str]) -> None:
        """Forget these; a name that is not there is none to forget."""
        with self._lock:
            self._update()
            known = [key for key in dict.fromkeys(keys) if key in self._rows]
            self._append([(key, b"", False) for key in known])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Every name, in the order in which they were last set."""
        with self._lock:
            self._update()
            names = sorted(self._rows, key=self._rows.__getitem__)
        yield from (name for name in names if name.startswith(prefix or ""))

    def close(self) -> None:
        """Let go of the cache."""
        with self._lock:
            self._stop_writing()
            if self._cache is not None:
                self._cache.close()
                self._cache = None

    def __enter__(self) -> Self:
        with self._lock:
            self._depth += 1
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as the path."""
        return _rebuild, (type(self), self.path, self.namespace, self._wait_s)

    # ---- reading

    def _update(self) -> None:
        """Take in the rows that were written since."""
        if self._cache is None:
            if not self.path.exists():
                return
            self._cache = Cache.open(self.path)
            self._rows, self._n_read = {}, 0
        self._cache.refresh()
        if self._table not in self._cache.reader:
            return
        table = self._cache.reader.table(self._table)
        if table.n_rows < self._n_read:  # another file stands there now
            self._rows, self._n_read = {}, 0
        new = np.arange(self._n_read, table.n_rows)
        names = Texts(*table.ragged_many("name", new)).strings()
        kept = np.asarray(table.gather("is_kept", new)).tolist()
        for row, name, is_kept in zip(new.tolist(), names, kept, strict=True):
            self._rows.pop(name, None)
            if is_kept:
                self._rows[name] = row
        self._n_read = table.n_rows

    def _value(self, key: str) -> bytes | None:
        row = self._rows.get(key)
        if row is None or self._cache is None:
            return None
        table = self._cache.reader.table(self._table)
        if _decoded(table.ragged("name", row)) != key:
            # The file was rewritten without its damaged rows: the others have other numbers.
            self._rows, self._n_read = {}, 0
            self._update()
            return self._value(key)
        return bytes(np.asarray(table.ragged("value", row)))

    # ---- writing

    def _append(self, rows: Sequence[tuple[str, bytes, bool]]) -> None:
        if not rows:
            return
        values = [bytes(value) for _, value, _ in rows]
        columns: Rows = {
            "is_kept": np.array([is_kept for *_, is_kept in rows], np.uint8),
            "name": Texts.from_strings([name for name, *_ in rows]).ragged,
            "value": (
                np.frombuffer(b"".join(values), np.uint8),
                np.array([len(value) for value in values], np.int64),
            ),
        }
        with self._lock:
            try:
                if self._writer is None:
                    specs = {self._table: _SPEC}
                    self._writer = CacheWriter.open(self.path, specs, wait_s=self._wait_s)
                self._writer.append({self._table: columns})
                self._writer.settle()
            except FeatpipeError:
                self._stop_writing()
                raise
            if not self._depth:
                self._stop_writing()

    def _stop_writing(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _decoded(values: NDArray[Any]) -> str:
    return bytes(np.asarray(values)).decode("utf-8", "surrogatepass")


def _rebuild(
    kind: type[CacheByteStore], path: Path, namespace: str, wait_s: float
) -> CacheByteStore:
    return kind(path, namespace, wait_s=wait_s)
