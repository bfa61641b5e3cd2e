"""Partial results: what a run of extraction has finished, in a file beside its output.

``OUT.partial`` is in JSON Lines: the conditions of the run, then one line per finished document, in
the order of the documents. Guarantees:

- A line is whole or the last one: a run that is killed leaves whole lines up to some document, and
  the next run cuts off the rest. Lines are synced once a second, against the loss of power.
- A run goes on only under equal conditions, and only as far as its documents are those in the file,
  in their order and unchanged. A file of other conditions is refused, and stays as it is.
- One run at a time uses a file; the kernel releases its lock however the run ends.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, cast

from featpipe.documents.own_files import PARTIAL_RESULTS
from featpipe.errors import UsageError, WriteFailed
from featpipe.extraction.results import ExtractedValue, Extraction, FieldResult, Provenance
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from featpipe.extraction.messages import Done

    Record = dict[str, Any]  # Any: the values of a JSON object
    #: Equal values, equal results: names of a run's conditions.
    Conditions = Mapping[str, object]

_FORMAT = f"{PARTIAL_RESULTS} 1"
_SYNC_S = 1.0


class PartialResults:
    """The partial results of one output.

    Args:
        out: the output.
        conditions: of the run, as plain JSON; under equal ones a document has equal results.
        documents: what identifies each document and its state, in order.
        is_new: begin anew, whatever the file holds.

    Raises:
        UsageError: the file is of a run under other conditions, of another program, or in use.
        WriteFailed: it cannot be written.

    """

    def __init__(
        self, out: Path, conditions: Conditions, documents: Sequence[str], *, is_new: bool = False
    ) -> None:
        place = out.resolve()
        self.path = place.with_name(f"{place.name}.partial")
        self._documents = documents
        self.n_done = 0
        """Documents in the file."""
        self.changed: str = ""
        """The first document that is not as it was in the interrupted run, "" for none."""
        self._synced = monotonic()
        self._fd = _open_locked(self.path)
        try:
            end = 0 if is_new else self._take_over(conditions)
            self._cut(end)
            if end == 0:
                self._append({"format": _FORMAT, "conditions": conditions})
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, done: Done) -> None:
        """Keep the outcome of the next document. It survives the end of this process.

        Raises:
            WriteFailed: it cannot be written.

        """
        lost = done.quarantined
        self._append(
            {
                "document": self._documents[self.n_done],
                "quarantined": asdict(lost) if lost is not None else None,
                "extractions": [_plain(extraction) for extraction in done.extractions],
            }
        )
        self.n_done += 1
        if monotonic() - self._synced >= _SYNC_S:
            self.sync()

    def extractions(self) -> Iterator[Extraction]:
        """Of all documents in the file, in order."""
        for record in self._records():
            yield from map(_restore, record["extractions"])

    def quarantined(self) -> list[Quarantined]:
        """Of all documents in the file, in order."""
        lost = (record["quarantined"] for record in self._records())
        return [Quarantined(**one) for one in lost if one is not None]

    def sync(self) -> None:
        """Return when all lines survive the loss of power."""
        os.fsync(self._fd)
        self._synced = monotonic()

    def remove(self) -> None:
        """Remove the file, once the output is in its place for good."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.sync()
        os.close(self._fd)

    def _take_over(self, conditions: Conditions) -> int:
        """Count the documents that need not be done again; returns the end of their lines."""
        end = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                record = _read_line(line)
                if number == 0:
                    if record is None and (len(line) == 0 or _is_torn_head(line)):
                        return 0
                    self._check(record or {}, conditions)
                elif not self._is_next(record):
                    return end
                end += len(line)
                self.n_done += number > 0
        return end

    def _is_next(self, record: Record | None) -> bool:
        if record is None:
            return False
        if self.n_done < len(self._documents):
            if record["document"] == self._documents[self.n_done]:
                return True
            self.changed = str(json.loads(self._documents[self.n_done])[0])
        return False

    def _check(self, head: Record, conditions: Conditions) -> None:
        if head.get("format") != _FORMAT:
            raise UsageError(
                f"{self.path} is in the way and holds no results of an interrupted run",
                hint="move it away, or give another -o",
            )
        differences = list(_differences(head["conditions"], conditions))
        if differences:
            raise UsageError(
                f"{self.path} holds what an interrupted run finished, under other conditions: "
                f"{'; '.join(differences)}",
                hint="give that run's command to finish it; --restart drops what it finished and "
                "begins anew; another -o leaves it alone",
            )

    def _append(self, record: Mapping[str, object]) -> None:
        """One line. A write that fails midway leaves a line that the next run cuts off."""
        line = memoryview(json.dumps(record).encode() + b"\n")
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError as error:
            raise WriteFailed(
                f"{self.path} cannot be written: {error.strerror}",
                hint=f"it keeps {self.n_done} finished documents: make room, and give the same "
                "command again",
            ) from error

    def _cut(self, end: int) -> None:
        os.ftruncate(self._fd, end)
        os.lseek(self._fd, end, os.SEEK_SET)

    def _records(self) -> Iterator[Record]:
        with self.path.open("rb") as file:
            next(file)
            for line in file:
                yield json.loads(line)


def _open_locked(path: Path) -> int:
    """Open a file for this process alone, and make it if needed.

    Raises:
        UsageError: another process has it.
        WriteFailed: it cannot be opened.

    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise WriteFailed(f"{path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another run may have finished, and removed it, between the two lines.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BlockingIOError as error:
            os.close(descriptor)
            raise UsageError(
                f"{path} is in use: another run of extract writes the same output",
                hint="wait for it, or give another -o",
            ) from error
        except FileNotFoundError:
            pass
        os.close(descriptor)


def _read_line(line: bytes) -> Record | None:
    """None for a line that was not written to its end."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _is_torn_head(line: bytes) -> bool:
    """Whether the first line is the beginning of a head: its run was killed in that instant."""
    head = json.dumps({"format": _FORMAT})[:-1].encode()
    return not line.endswith(b"\n") and line[: len(head)] == head[: len(line)]


def _differences(old: Conditions, new: Conditions) -> Iterator[str]:
    for name in dict.fromkeys((*old, *new)):
        one, other = old.get(name), new.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            changed = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            if changed:
                yield f"{name} {', '.join(map(str, changed))} changed"
        elif one != other:
            yield f"{name} was {one!r}, is {other!r}"


def _plain(extraction: Extraction) -> Record:
    """As plain JSON. A record names each value by its place in the field."""
    return {
        "document": extraction.document,
        "fields": {
            name: [value.as_dict() for value in result.values]
            for name, result in extraction.fields.items()
        },
        "records": [
            {name: extraction.fields[name].values.index(value) for name, value in record.items()}
            for record in extraction.records
        ],
        "provenance": asdict(extraction.provenance),
    }


def _restore(content: Record) -> Extraction:
    fields = {
        name: FieldResult(tuple(map(ExtractedValue.from_dict, values)))
        for name, values in content["fields"].items()
    }
    records = cast("list[dict[str, int]]", content["records"])
    return Extraction(
        content["document"],
        fields,
        tuple({name: fields[name].values[at] for name, at in one.items()} for one in records),
        Provenance(**content["provenance"]),
    )
