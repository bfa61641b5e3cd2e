"""Devices, cores and cards: what workers run on, seen from the parent without torch.

Loading torch in the parent would cost a second and a half, and touching CUDA there would spoil it
for the workers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import UnknownDevice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.pool.role import Role

#: More CPU workers than this share one memory bus without getting faster.
_MOST_CPU_WORKERS = 8


def check_devices(names: Sequence[str]) -> tuple[str, ...]:
    """The names in their long form: ``cuda`` is ``cuda:0``.

    Raises:
        UnknownDevice: not ``cpu`` or ``cuda:i``, or a card this machine does not have.
    """
    return tuple(_check(name.strip().lower()) for name in names)


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


def visible_cards(device: str, mask: str | None) -> str | None:
    """CUDA_VISIBLE_DEVICES for a child: none on a cpu, one card on ``cuda:i``, None: leave it.

    ``mask`` is the parent's own; its i-th entry is the parent's ``cuda:i``.
    """
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return ""
    if kind != "cuda":
        return None
    if not (index or "0").isdecimal():
        raise UnknownDevice(f"{device!r} is not a device", hint="cpu, cuda, cuda:0, cuda:1 ...")
    number = int(index or "0")
    if mask is None:
        return str(number)
    cards = [card.strip() for card in mask.split(",") if card.strip()]
    if number >= len(cards):
        raise UnknownDevice(
            f"{device} is not visible to this process: CUDA_VISIBLE_DEVICES is {mask!r}",
            hint=f"it shows {len(cards)} cards, cuda:0 being the first of them",
        )
    return cards[number]


def device_in_child(device: str) -> str:
    """The child's name for its device: its only card is always the first."""
    return "cuda:0" if device.partition(":")[0] == "cuda" else device


def threads_of(role: Role) -> int:
    """Threads per worker, so that workers x threads do not exceed the usable cores."""
    if role.threads is not None:
        return role.threads
    n_cpu = sum(device == "cpu" for device in role.devices)
    return max(1, usable_cores() // max(1, n_cpu))


def usable_cores() -> int:
    """Cores this process may use: affinity, and the quota of its control group if smaller."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux only
    n_cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(n_cores, _quota_cores()))


def _quota_cores() -> int:
    """Whole cores of the control group's quota, rounded up; a large number when there is none."""
    for read in (_read_quota_v2, _read_quota_v1):
        try:
            quota, period = read(Path("/sys/fs/cgroup"))
        except (OSError, ValueError, IndexError):
            continue
        if quota > 0:
            return max(1, -(-quota // period))
    return 1 << 16


def _read_quota_v2(groups: Path) -> tuple[int, int]:
    quota, period = (groups / "cpu.max").read_text("ascii").split()
    return (0, 1) if quota == "max" else (int(quota), int(period))


def _read_quota_v1(groups: Path) -> tuple[int, int]:
    quota, period = (groups / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
    return int(quota.read_text("ascii")), int(period.read_text("ascii"))
