"""Results in the cache: values by (field state, document), and a log of extractions.

::

    /results/values    keyed    one field of one document: its values as JSON
    /results/log       log      (template, document) -> the keys of its fields; the last row wins
    /results/facts     log      template -> the facts of its fields; the last row wins

Values are found only by key, so that no extraction is made twice, also when a template returns to
an earlier state.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from featpipe.cache.tables import FACTS, LOG, VALUES
from featpipe.cache.texts import Texts
from featpipe.cache.write import CacheWriter
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.store import Ragged, TableSpec
from featpipe.store.folder_layout import results_file_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from featpipe.cache.tables import Rows
    from featpipe.store import Reader

    Record = dict[str, Any]  # Any: the values of a JSON object

_SPECS = {
    VALUES: TableSpec(columns=(Ragged("record", "uint8"),), keyed=True, attributes={}),
    LOG: TableSpec(columns=(Ragged("record", "uint8"),), keyed=False, attributes={}),
    FACTS: TableSpec(columns=(Ragged("record", "uint8"),), keyed=False, attributes={}),
}
_BLOCK = 4096
#: Commits that may be under way: a run that is killed loses these at the most.
_AHEAD = 4


class ResultsReader:
    """The results of earlier runs.

    Args:
        reader: of the cache.

    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def known(self, keys: Sequence[bytes]) -> list[bool]:
        """For each key whether its values are stored."""
        if VALUES not in self._reader or not keys:
            return [False] * len(keys)
        whole = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
        return [bool(row >= 0) for row in self._reader.table(VALUES).find(whole).tolist()]

    def field(self, key: bytes) -> FieldResult | None:
        """The values under a key, None if there are none stored."""
        if VALUES not in self._reader:
            return None
        table = self._reader.table(VALUES)
        row = table.find_one(key)
        if row < 0:
            return None
        content = json.loads(bytes(np.asarray(table.ragged("record", row))).decode())
        return FieldResult(tuple(ExtractedValue.from_dict(value) for value in content))

    def last_rows(self) -> dict[tuple[str, str], Record]:
        """(template, document path) -> its row of the log, as last written."""
        return {(str(row["template"]), str(row["path"])): row for row in self.log()}

    def log(self) -> list[Record]:
        """Every row, oldest first.

        A row is: run, template, path, document (its id), fields (name: key), content (key of
        the document) and gaps (hash of the vectors and entities it lacked); the first caches have
        neither of the last two.
        """
        return self._records(LOG)

    def last_facts(self) -> dict[str, dict[str, Mapping[str, object]]]:
        """Template -> field -> facts, as last logged."""
        return {str(record["template"]): record["facts"] for record in self._records(FACTS)}

    def last_sample_keys(self) -> dict[str, dict[str, list[str]]]:
        """Template -> field -> keys of the cached documents of its samples, as last logged."""
        return {str(record["template"]): record.get("keys", {}) for record in self._records(FACTS)}

    def _records(self, name: str) -> list[Record]:
        if name not in self._reader:
            return []
        table = self._reader.table(name)
        rows = np.arange(table.n_rows)
        found: list[Record] = []
        for start in range(0, len(rows), _BLOCK):
            texts = Texts(*table.ragged_many("record", rows[start : start + _BLOCK]))
            found.extend(json.loads(text) for text in texts.strings())
        return found


class ResultsWriter:
    """Writes through the process that owns the cache, while the caller works on.

    Writes are durable when :meth:`settle`, or the ``with`` block, has ended without an error. Each
    call is one commit: the values that a log row names are stored with it.

    Raises:
        DictionaryLocked: by any call, another process writes this cache for longer than ``wait_s``.

    """

    def __init__(self, cache: Path, wait_s: float = 0.0) -> None:
        self._writer = CacheWriter.open(results_file_of(cache), _SPECS, wait_s=wait_s)

    def write(
        self,
        values: Mapping[bytes, FieldResult],
        log: Sequence[Mapping[str, object]] = (),
        facts: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Hand one commit over; waits only when several are under way."""
        self._writer.settle(most_open=_AHEAD - 1)
        rows: dict[str, Rows] = {}
        if values:
            rows[VALUES] = {
                "keys": np.frombuffer(b"".join(values), np.uint8).reshape(-1, 16),
                "record": _packed([_plain(result) for result in values.values()]),
            }
        if log:
            rows[LOG] = {"record": _packed(log)}
        if facts:
            rows[FACTS] = {"record": _packed(facts)}
        if rows:
            self._writer.append(rows)

    def settle(self) -> None:
        """Return when all writes are durable."""
        self._writer.settle()

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)


def _plain(result: FieldResult) -> list[dict[str, object]]:
    return [value.as_dict() for value in result.values]


def _packed(records: Sequence[object]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return Texts.from_strings([json.dumps(r, ensure_ascii=False) for r in records]).ragged
