"""The journal: answers by content key, so that what comes again is not computed again."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Self

from featpipe.errors import WriteFailed

if TYPE_CHECKING:
    from pathlib import Path


class Journal:
    """Content key -> answer. Durable when `put` returns; one process at a time writes.

    Args:
        path: a file of its own; None keeps answers in memory, until the end of the program.
        most: answers kept; the oldest go first.

    Raises:
        WriteFailed: the file cannot be opened or written.

    """

    def __init__(self, path: Path | None, most: int = 100_000) -> None:
        self._most = most
        self._name = str(path) if path is not None else ":memory:"
        try:
            self._file = sqlite3.connect(self._name, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS answers"
                " (number INTEGER PRIMARY KEY, key TEXT UNIQUE, answer TEXT)"
            )
        except sqlite3.Error as error:
            raise WriteFailed(f"the journal {self._name} cannot be opened: {error}") from error

    def get(self, key: str) -> str | None:
        """The answer that was put under this key, or None."""
        row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, answer: str) -> None:
        """Keep an answer; the first one under a key stays.

        Raises:
            WriteFailed: it could not be made durable.

        """
        try:
            self._file.execute(
                "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, answer)
            )
            self._file.execute(
                "DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?",
                (self._most,),
            )
        except sqlite3.Error as error:
            raise WriteFailed(f"the journal {self._name} cannot be written: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
