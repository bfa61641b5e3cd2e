"""Progress of a run: bars on a terminal, plain lines or JSON elsewhere."""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self

from featpipe.cli.main import discard_closed_outputs
from featpipe.cli.terminal import echo, printable
from featpipe.pool.interrupt import STOPPING_LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from featpipe.build.progress import Progress
    from featpipe.extraction.extract_run import ExtractProgress

#: Seconds between two plain lines.
_LINE_EVERY_S = 5.0


#: Terminals that cannot move their cursor.
_DUMB = ("", "dumb", "unknown")
#: Columns of names, and of bars.
_LABEL, _SHORTEST_BAR, _LONGEST_BAR = 9, 6, 40


class View(Protocol):
    """Shows snapshots of a run."""

    def show(self, progress: Progress) -> None:
        """Called a few times a second."""


@contextmanager
def open_view(*, as_json: bool) -> Iterator[View]:
    """The view for the kind of output; warnings that are logged meanwhile do not tear it."""
    is_live = sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB
    if is_live and not as_json:
        with LiveView() as view, _logging_to(view.print_above):
            yield view
    else:
        with _logging_to(lambda line: _echo(line, err=True)):
            yield JsonView() if as_json else LineView()


@contextmanager
def _logging_to(show: Callable[[str], None]) -> Iterator[None]:
    """Warnings go to ``show``, also after an interrupt, while the workers are being ended."""
    log, handler = logging.getLogger("featpipe"), _Warnings(show)
    log.addHandler(handler)
    yield
    log.removeHandler(handler)


class _Warnings(logging.Handler):
    """Shows warnings; once the run is being stopped, no more of workers that end."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._show = show
        self._is_stopping = False

    def emit(self, record: logging.LogRecord) -> None:
        """Show the message on lines of its own."""
        if self._is_stopping and record.name.startswith("featpipe.pool"):
            return
        self._is_stopping |= record.name == STOPPING_LOG
        self._show(record.getMessage())


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
    """Bars on the terminal, redrawn in place by rich; log lines are printed above them."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def print_above(self, line: str) -> None:
        """Print a line that stays, above the bars."""
        self._console.print(printable(line), soft_wrap=True)

    def show(self, progress: Progress) -> None:
        """Draw the bars anew."""
        from rich.text import Text

        is_plain = not self._console.encoding.lower().startswith("utf")
        # One column stays free: terminals differ in what they do once the last one is written.
        lines = draw(progress, self._console.width - 1, is_ascii=is_plain)
        self._live.update(Text("\n".join(lines), no_wrap=True), refresh=True)


def draw(progress: Progress, width: int, *, is_ascii: bool = False) -> list[str]:
    """The bars and a line of facts, none longer than ``width``; no number is ever cut.

    Where the width is small the bars shrink and go first, and then the last facts.
    """
    rows = [("documents", progress.n_sources_done, progress.n_sources)]
    if progress.n_unique:
        rows.append(("vectors", progress.n_hits + progress.n_encoded, progress.n_unique))
    if progress.n_others:
        done = progress.n_others - progress.n_waiting_others
        rows.append(("entities", done, progress.n_others))
    counts = [f"{done:,}/{total:,}" for _, done, total in rows]
    longest = max(map(len, counts))
    n_bar = min(width - _LABEL - longest - 4, _LONGEST_BAR)
    lines = []
    for (name, done, total), count in zip(rows, counts, strict=True):
        bar = _bar(done, total, n_bar, "#." if is_ascii else "━┄") if n_bar >= _SHORTEST_BAR else ""
        lines.append("  ".join(part for part in (name.rjust(_LABEL), bar, count) if part))
    return [*lines, _facts(progress, width, " | " if is_ascii else " · ")]


def _bar(done: int, total: int, length: int, marks: str) -> str:
    n = length * min(done, total) // total if total else 0
    return marks[0] * n + marks[1] * (length - n)


def _facts(progress: Progress, width: int, between: str) -> str:
    """What fits of: time, time left, losses, hits; whole facts only."""
    facts = [f"{_clock(progress.seconds)} elapsed"]
    if progress.seconds_left:
        facts.append(f"about {_clock(progress.seconds_left)} left")
    if progress.n_quarantined:
        facts.append(f"{progress.n_quarantined:,} quarantined")
    if progress.n_units:
        facts.append(f"{progress.hit_rate:.0%} of {progress.n_units:,} units known")
    line = " " * (_LABEL - len(facts[0].split()[0])) + facts[0]
    for fact in facts[1:]:
        longer = line + between + fact
        line = longer if len(longer) <= width else line
    return line


def _clock(seconds: float) -> str:
    """Such as 0:07 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
    return _spell_time(progress.seconds_left) if progress.seconds_left else ""


def _spell_time(seconds_left: float) -> str:
    minutes, seconds = divmod(round(seconds_left), 60)
    return f", {minutes} min {seconds} s left" if minutes else f", {seconds} s left"


# ---- extraction


class ExtractView(Protocol):
    """Shows snapshots of an extraction."""

    def show(self, progress: ExtractProgress) -> None:
        """Called after each document."""


@contextmanager
def open_extract_view(*, is_quiet: bool = False) -> Iterator[ExtractView]:
    """The view for the kind of standard error; nothing is drawn where results are on a screen."""
    is_live = sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB
    if is_quiet or not is_live:
        yield ExtractLines(is_quiet=is_quiet)
        return
    with LiveView() as view, _logging_to(view.print_above):
        yield ExtractBar(view)


class ExtractLines:
    """A plain line every few seconds on standard error."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._pace, self._is_quiet = _Pace(), is_quiet
        self._last = monotonic()

    def show(self, progress: ExtractProgress) -> None:
        """Print the snapshot if the last line is old enough, or if a run is gone on with."""
        seconds_left = self._pace.seconds_left(progress)
        left = _spell_time(seconds_left) if seconds_left else ""
        is_first = progress.n_kept > 0 and progress.n_done == progress.n_kept
        if (is_first or monotonic() - self._last >= _LINE_EVERY_S) and not self._is_quiet:
            self._last = monotonic()
            note = f" ({progress.n_kept} kept by an interrupted run)" if is_first else ""
            _echo(
                f"documents {progress.n_done}/{progress.n_documents}{note}, "
                f"{progress.n_quarantined} quarantined{left}",
                err=True,
            )


class ExtractBar:
    """A bar on the terminal, drawn as those of a build."""

    def __init__(self, view: LiveView) -> None:
        self._view, self._pace = view, _Pace()

    def show(self, progress: ExtractProgress) -> None:
        """Move the bar."""
        from featpipe.build.progress import Progress

        self._view.show(
            Progress(
                n_sources=progress.n_documents,
                n_sources_done=progress.n_done,
                n_quarantined=progress.n_quarantined,
                n_units=0,
                n_unique=0,
                n_hits=0,
                n_encoded=0,
                n_waiting=0,
                n_others=0,
                n_waiting_others=0,
                seconds=self._pace.seconds(),
                seconds_left=self._pace.seconds_left(progress),
            )
        )


class _Pace:
    """The time left, by the documents that this run has done."""

    def __init__(self) -> None:
        self._started = monotonic()

    def seconds(self) -> float:
        """Since this run began."""
        return monotonic() - self._started

    def seconds_left(self, progress: ExtractProgress) -> float | None:
        """None until a document is done, and at the end."""
        n_new = progress.n_done - progress.n_kept
        n_left = progress.n_documents - progress.n_done
        return self.seconds() / n_new * n_left if n_new and n_left else None
