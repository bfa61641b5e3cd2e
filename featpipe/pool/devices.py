"""Device names, checked in the parent without torch.

Loading torch there would cost a second and a half, and touching CUDA there would spoil it for the
workers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import UnknownDevice
from featpipe.pool.role import usable_cores

if TYPE_CHECKING:
    from collections.abc import Sequence

#: More CPU workers than this share one memory bus without getting faster.
_MOST_CPU_WORKERS = 8


def check_devices(names: Sequence[str]) -> tuple[str, ...]:
    """The names in their long form: ``cuda`` is ``cuda:0``.

    Raises:
        UnknownDevice: not ``cpu`` or ``cuda:i``, or a card this machine does not have.

    """
    return tuple(_check(name.strip().lower()) for name in names)


def default_devices() -> tuple[str, ...]:
    """Every visible card, else one CPU worker per usable core, eight at most."""
    cards = tuple(f"cuda:{number}" for number in range(count_cards()))
    return cards or ("cpu",) * min(usable_cores(), _MOST_CPU_WORKERS)


def count_cards() -> int:
    """NVIDIA cards that this process may use, by the driver's device files and the usual mask."""
    here = sum(1 for path in Path("/dev").glob("nvidia*") if path.name[6:].isdigit())
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if mask is None:
        return here
    named = [part for part in mask.split(",") if part.strip() not in {"", "-1"}]
    return min(here, len(named))


def _check(name: str) -> str:
    if name == "cpu":
        return name
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise UnknownDevice(
            f"device {name!r} is not understood", hint="use cpu, cuda:0, cuda:1 ..."
        )
    number, n_cards = int(match[1] or 0), count_cards()
    if number >= n_cards:
        found = f"has {n_cards} CUDA device{'s' * (n_cards != 1)}" if n_cards else "has none"
        raise UnknownDevice(
            f"device {name!r} does not exist: this machine {found}", hint="use --device cpu"
        )
    return f"cuda:{number}"
