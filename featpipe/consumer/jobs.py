"""Jobs: what a message asks for, its content key, and the journal of answers by that key."""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

from featpipe.errors import UsageError, WriteFailed
from featpipe.extraction.messages import AUTO, Given, Inline, Stored, Upload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_KEYS = frozenset({"id", "text", "document", "data", "name", "template"})
_FORM = '{"id": ..., "text" or "document" or "data" (base64): ..., "template": ...}'


@dataclass(frozen=True, slots=True)
class Job:
    """The document and the template that a message names."""

    id: str | int
    """As the message has it; "" where it has none."""
    given: Given
    template: str

    def key(self, state: str) -> str:
        """Content key: equal for equal content under the same ``state`` of templates and cache."""
        kind = type(self.given).__name__
        content = self.given.data if isinstance(self.given, Upload) else b""
        words = self.given.text if isinstance(self.given, Inline) else ""
        stored = self.given.name if isinstance(self.given, Stored | Upload | Inline) else ""
        digest = blake2b(digest_size=16, person=b"featpipe-orders1")
        for part in (kind, words, stored, self.template, state):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        digest.update(content)
        return digest.hexdigest()


def read_job(body: object, templates: Mapping[str, object]) -> Job:
    """Read a message's body: text, bytes or parsed JSON.

    Raises:
        UsageError: it names no document, or has another form.

    """
    content = _parse(body)
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise UsageError(f"the message has unknown keys: {', '.join(unknown)}", hint=_FORM)
    given = _given_of(content)
    template = content.get("template")
    if template is None:
        template = next(iter(templates)) if len(templates) == 1 else AUTO
    if not isinstance(template, str):
        raise UsageError("the message's template is no name", hint=_FORM)
    return Job(_id_of(content), given, template)


def _parse(body: object) -> dict[str, object]:
    try:
        content = json.loads(body) if isinstance(body, str | bytes | bytearray) else body
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the message is no JSON: {error}", hint=_FORM) from error
    if not isinstance(content, dict):
        raise UsageError("the message is no JSON object", hint=_FORM)
    return content


def _id_of(content: Mapping[str, object]) -> str | int:
    name = content.get("id")
    if name is None:
        return ""
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise UsageError("the message's id is neither a string nor an integer", hint=_FORM)
    return name


def _given_of(content: Mapping[str, object]) -> Given:
    sources = {
        key: value
        for key in ("text", "document", "data")
        if isinstance(value := content.get(key), str)
    }
    if len(sources) != 1 or not all(sources.values()):
        raise UsageError("the message has not one of text, document and data", hint=_FORM)
    name = str(content.get("name") or "message")
    ((kind, value),) = sources.items()
    if kind == "text":
        return Inline(value, name)
    if kind == "document":
        return Stored(value)
    return _upload_of(value, name)


def _upload_of(data: str, name: str) -> Upload:
    try:
        return Upload(base64.b64decode(data, validate=True), name)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"the message's data is no base64: {error}", hint=_FORM) from error


class Journal:
    """Content key -> answer, in SQLite. Durable when `put` returns; one process at a time writes.

    Args:
        path: a file of its own; None keeps answers in memory, until the end of the program.
        most: answers kept; the oldest are deleted first.

    Raises:
        WriteFailed: the file cannot be opened or written.

    """

    def __init__(self, path: Path | None, most: int = 100_000) -> None:
        self._most = most
        self._name = str(path) if path is not None else ":memory:"
        with self._naming("opened"):
            self._file = sqlite3.connect(self._name, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS answers"
                " (number INTEGER PRIMARY KEY, key TEXT UNIQUE, answer TEXT)"
            )

    @contextmanager
    def _naming(self, done: str) -> Iterator[None]:
        """An error of SQLite names the file and the next step."""
        try:
            yield
        except sqlite3.Error as error:
            raise WriteFailed(
                f"the journal {self._name} cannot be {done}: {error}",
                hint="make room, or move a damaged one away: its answers are then computed again",
            ) from error

    def get(self, key: str) -> str | None:
        """The answer under this key, or None.

        Raises:
            WriteFailed: it cannot be read.

        """
        with self._naming("read"):
            found = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,))
            row = found.fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, answer: str) -> None:
        """Keep an answer; the first one under a key stays.

        Raises:
            WriteFailed: it could not be made durable.

        """
        with self._naming("written"):
            self._file.execute(
                "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, answer)
            )
            self._file.execute(
                "DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?",
                (self._most,),
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
