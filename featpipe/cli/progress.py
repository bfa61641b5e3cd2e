"""Progress of a run: bars on a terminal, plain lines or JSON elsewhere."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self

from featpipe.cli.main import discard_closed_outputs
from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as Bars

    from featpipe.build.progress import Progress

#: Seconds between two plain lines.
_LINE_EVERY_S = 5.0


class View(Protocol):
    """Shows snapshots of a run."""

    def show(self, progress: Progress) -> None:
        """Called a few times a second."""


@contextmanager
def open_view(*, as_json: bool) -> Iterator[View]:
    """The view for the kind of output."""
    if as_json:
        yield JsonView()
    elif sys.stderr.isatty():
        with LiveView() as view:
            yield view
    else:
        yield LineView()


class JsonView:
    """One JSON object per line on standard output."""

    def show(self, progress: Progress) -> None:
        """Print the snapshot."""
        _echo(json.dumps({"event": "progress", **progress.as_dict()}))


class LineView:
    """A plain line every few seconds on standard error."""

    def __init__(self) -> None:
        self._last = monotonic()

    def show(self, progress: Progress) -> None:
        """Print the snapshot if the last line is old enough."""
        if monotonic() - self._last >= _LINE_EVERY_S:
            self._last = monotonic()
            _echo(describe(progress), err=True)


def _echo(line: str, *, err: bool = False) -> None:
    """Print a line; where nobody reads it any more, the run goes on without."""
    try:
        echo(line, err=err)
    except BrokenPipeError:
        discard_closed_outputs()


class LiveView:
    """A bar on the terminal, by rich."""

    def __init__(self) -> None:
        self._bars = _make_bars()
        self._documents = self._bars.add_task("documents", total=0, note="")
        self._units = self._bars.add_task("vectors", total=0, note="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bars.stop()

    def show(self, progress: Progress) -> None:
        """Move the bars."""
        lost = f"{progress.n_quarantined} quarantined" if progress.n_quarantined else ""
        self._bars.update(
            self._documents, completed=progress.n_sources_done, total=progress.n_sources, note=lost
        )
        done = progress.n_hits + progress.n_encoded
        note = f"hits {progress.hit_rate:.0%} of {progress.n_units:,} units"
        note += _eta(progress) + _others(progress)
        self._bars.update(self._units, completed=done, total=progress.n_unique, note=note)


def _make_bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description:>10}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        refresh_per_second=4,
    )


def describe(progress: Progress) -> str:
    """One line for a log."""
    return (
        f"documents {progress.n_sources_done}/{progress.n_sources}, "
        f"{progress.n_quarantined} quarantined; units {progress.n_units}, "
        f"unique {progress.n_unique}, hits {progress.n_hits}, encoded {progress.n_encoded}, "
        f"waiting {progress.n_waiting}{_eta(progress)}{_others(progress)}"
    )


def _others(progress: Progress) -> str:
    """Texts whose entities and terms are missing."""
    left = progress.n_waiting_others
    return f"; entities and terms of {left} texts to come" if left else ""


def _eta(progress: Progress) -> str:
    """The estimated time left, if there is one."""
    if not progress.seconds_left:
        return ""
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    return f", {minutes} min {seconds} s left" if minutes else f", {seconds} s left"
