"""Checks rows before they are handed out, and remembers which were sound.

A row is checked when it is first read, and again after any write to the file, by whatever program:
a write changes the time of the file's last change (``st_ctime``), which no program can set back.
Such times advance in steps, of up to two seconds on some file systems, and of two writes in one
step the second leaves no trace: only what is checked :data:`SETTLED_S` after the last change was
seen is remembered. Damage without a write, on the disk itself, is found :data:`HOLDS_S` after the
last check at the latest.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from featpipe.store.damage import damaged_rows
from featpipe.store.schema import KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.errors import DamagedRows
    from featpipe.store.checksum import AnyArray
    from featpipe.store.table_view import TableView

    Rows = NDArray[np.int64]

#: Time of the last change, in nanoseconds, and size; None for a file that was closed.
State: TypeAlias = "tuple[int, int] | None"

#: Looking at the file's state takes most of the time of a single row that is known.
_LOOK_EVERY_S = 0.001
SETTLED_S = 2.5
HOLDS_S = 600.0


class CheckedFile(Protocol):
    """The file whose rows are checked."""

    path: Path
    descriptor: int
    checks_rows: bool

    def documents_of(self, table: str, keys: Sequence[bytes]) -> Sequence[str]:
        """Documents that rows of these keys belong to, as far as they are known."""


class SoundRows:
    """The rows found sound in one state of the file. Threads may share it: rows are only added.

    Args:
        state: of the file, before the first of the rows is read.
        n_rows: of the table.

    """

    __slots__ = ("_is_settled", "_n_added", "_since", "_sound", "_state", "_whole", "n_rows")

    def __init__(self, state: State, n_rows: int) -> None:
        self._state = state
        self.n_rows = n_rows
        self._since = monotonic()
        self._is_settled = False
        self._sound: dict[str, NDArray[np.bool_]] = {}  # by what was checked, a byte a row
        self._n_added: dict[str, int] = {}
        self._whole: set[str] = set()  #: parts all of whose rows were found sound

    def as_of(self, state: State, n_rows: int) -> SoundRows:
        """What still holds: these rows, or none if the file has changed or much time has passed."""
        age = monotonic() - self._since
        if not self.holds_in(state) or n_rows != self.n_rows:
            return SoundRows(state, n_rows)
        self._is_settled = self._is_settled or age > SETTLED_S
        if age <= HOLDS_S:
            return self
        anew = SoundRows(state, n_rows)
        anew._is_settled = True  # it has been seen in this state for long
        return anew

    def flags(self, part: str) -> NDArray[np.bool_] | None:
        """Which rows were found sound in a part, a byte a row; None when none, or too long ago."""
        return self._sound.get(part) if monotonic() - self._since <= HOLDS_S else None

    def holds_in(self, state: State) -> bool:
        """Whether this is still the state of the file."""
        return state is not None and state == self._state

    def has(self, row: int, parts: Sequence[str]) -> bool:
        """Whether one row was found sound in all these parts."""
        return all(part in self._sound and self._sound[part][row] for part in parts)

    def have(self, rows: Rows, parts: Sequence[str]) -> NDArray[np.bool_]:
        """Which of these rows were found sound in all these parts: (n,) bool."""
        found = np.ones(len(rows), np.bool_)
        for part in parts:
            found &= self._sound[part].take(rows, mode="clip") if part in self._sound else False
        return found

    def have_all(self, rows: Rows, parts: Sequence[str]) -> bool:
        """Whether all these rows were found sound in all these parts."""
        return all(
            part in self._whole
            or (part in self._sound and bool(self._sound[part].take(rows, mode="clip").all()))
            for part in parts
        )

    def add(self, rows: Rows | int, parts: Sequence[str]) -> None:
        """Remember rows that were read after this object was asked for."""
        if not self._is_settled:
            return
        for part in parts:
            if part not in self._sound:
                self._n_added[part] = 0
                self._sound[part] = np.zeros(self.n_rows, np.bool_)
            self._sound[part][rows] = True
            self._n_added[part] += np.size(rows)
            if self._n_added[part] >= self.n_rows:  # counted again once they may be all
                self._n_added[part] = 0
                if self._sound[part].all():
                    self._whole.add(part)


class RowGuard:
    """Checks the rows of one table of an open file. Thread-safe.

    Its methods raise DamagedRows; they do nothing when the file's rows are not to be checked.
    """

    __slots__ = ("_file", "_look_at", "_sound")

    def __init__(self, file: CheckedFile) -> None:
        self._file = file
        self._sound = SoundRows(None, 0)
        self._look_at = 0.0

    def sound_rows(self, n_rows: int) -> SoundRows:
        """The rows known to be sound, to be asked for before rows are read."""
        if self._file.checks_rows:
            self._sound = self._sound.as_of(self._state(), n_rows)
            self._look_at = monotonic() + _LOOK_EVERY_S
        return self._sound

    @property
    def known(self) -> SoundRows:
        """The rows found sound so far, in the state of the file at that time."""
        return self._sound

    def is_unchanged(self, sound: SoundRows) -> bool:
        """Whether the file is as it was when these rows were found sound."""
        return sound.holds_in(self._state())

    def require(
        self,
        view: TableView,
        rows: Rows,
        sound: SoundRows,
        given: Mapping[str, AnyArray] | None = None,
        ragged: Sequence[str] = (),
    ) -> None:
        """Rows that were read: fixed columns, and the values of the named ragged ones.

        Args:
            view: the table.
            rows: (n,).
            sound: from before they were read.
            given: fixed columns at hand, (n, ...), with the bytes that will be handed out.
            ragged: names.
        """
        if not self._file.checks_rows:
            return
        parts = view.checks.parts(ragged)
        if sound.holds_in(self._state()):
            is_new = ~sound.have(rows, parts)
            if not is_new.all():
                rows = rows[is_new]
                given = {name: values[is_new] for name, values in (given or {}).items()}
        are_bad = view.checks.are_bad(rows, ragged, given)
        if are_bad.any():
            raise self.damage(view, rows[are_bad])
        sound.add(rows, parts)

    def require_one(self, view: TableView, row: int, n_rows: int, ragged: str = "") -> None:
        """One row that is handed out as it lies in the file; as :meth:`require`, in less time.

        A write is noticed a millisecond late: after that the view shows it as well.
        """
        if not self._file.checks_rows:
            return
        sound = self._sound
        if n_rows != sound.n_rows or monotonic() > self._look_at:
            sound = self.sound_rows(n_rows)
        parts = view.checks.parts((ragged,) if ragged else ())
        if sound.has(row, parts):
            return
        if view.checks.is_bad(row, ragged):
            raise self.damage(view, np.array([row]))
        sound.add(row, parts)

    def damage(self, view: TableView, rows: Rows) -> DamagedRows:
        """The error for these rows; those of a keyed table are named by their keys as stored."""
        numbers = np.unique(rows).tolist()
        names: Sequence[str] = ()
        if view.spec.keyed:
            keys = [view.fixed[KEYS].bytes_of(row) for row in numbers]
            names = self._file.documents_of(view.name, keys)
        return damaged_rows(str(self._file.path), view.name, numbers, names)

    def _state(self) -> State:
        try:
            status = os.fstat(self._file.descriptor)
        except OSError:
            return None
        return status.st_ctime_ns, status.st_size
