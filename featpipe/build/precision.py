"""Which precision ``auto`` means for a run: what the cache holds decides, then the machine.

Guarantee: vectors of two precisions never meet in one space, as the precision is part of the
fingerprint; and a cache that was begun in one precision goes on in it on every machine, instead of
being encoded a second time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from featpipe.encoders.precision import find_precision, resolve_precision
from featpipe.pool import Pool, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.encoders.precision import Resolved

    #: Whether the cache holds rows of this model and these settings, computed in a precision on
    #: such a device.
    IsHeld = Callable[[Resolved, str], bool]

_LOWER = "their linear layers multiply bfloat16 (float16 on a card)"


@dataclass(frozen=True, slots=True)
class Choice:
    """A precision, and what the run's notes say of rows in it; empty for what was asked for."""

    precision: Resolved
    note: str = ""


def choose_precision(asked: str, devices: Sequence[str], is_held: IsHeld) -> Choice:
    """Settle ``asked`` for a run on ``devices``.

    Args:
        asked: a precision, or ``auto``: what the cache holds already; else ``mixed`` where
            `featpipe.encoders.precision` finds it worthwhile, and ``exact`` elsewhere and where
            processors and cards work together.
        devices: of this run.
        is_held: looks into the cache.

    Raises:
        UsageError: another word.

    """
    if asked != "auto":
        return Choice(resolve_precision(asked))
    held = [precision for precision in _AUTOMATIC if is_held(precision, devices[0])]
    if len(held) == 1:
        return Choice(held[0], _note_held(held[0], devices))
    if len({device == "cpu" for device in devices}) > 1:
        return Choice("exact")
    if probe(devices[0]) == "exact":
        return Choice("exact")
    other, kind = ("cuda:0", "a card") if devices[0] == "cpu" else ("cpu", "a processor")
    beside = ""
    if not held and is_held("mixed", other):
        beside = f"; those that the cache holds were made on {kind} and stay beside them"
    return Choice(
        "mixed",
        f"in mixed precision, worthwhile here: {_LOWER}; --precision exact for float32" + beside,
    )


def probe(device: str) -> Resolved:
    """The faster worthwhile precision of ``device``; measured once per machine, then remembered.

    The measurement needs torch, so a child makes it.
    """
    known = find_precision("auto", device=device)
    if known is not None:
        return known
    with Pool([Role("probe", "featpipe.build.precision:ProbeRole", threads=1)]) as pool:
        return cast("Resolved", pool.call("probe", device))


class ProbeRole:
    """Measures what bf16 is worth on this processor."""

    def run(self, device: str) -> Resolved:
        """Measure, or recall."""
        return resolve_precision("auto", device=device)


#: What ``auto`` may become.
_AUTOMATIC: tuple[Resolved, ...] = ("exact", "mixed")


def _note_held(held: Resolved, devices: Sequence[str]) -> str:
    if held == "mixed":
        return f"in mixed precision, as the cache holds them: {_LOWER}"
    if find_precision("auto", device=devices[0]) == "mixed":
        return "in precision exact, as the cache holds them; mixed would be faster here"
    return ""
