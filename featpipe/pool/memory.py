"""Whether the kernel has killed something for want of memory."""

from __future__ import annotations

from pathlib import Path

#: Files that count it, and the first word of their line: this control group in both versions of
#: control groups, and the whole machine.
_PLACES = (
    ("/sys/fs/cgroup/memory.events", "oom_kill"),
    ("/proc/vmstat", "oom_kill"),
)


def count_oom_kills() -> int:
    """A number that grows with every kill for want of memory in our control group or machine.

    A process that died by SIGKILL while it grew was most likely the victim.
    """
    return sum(_read(Path(path), word) for path, word in (*_PLACES, *_version_one()))


def _read(path: Path, word: str) -> int:
    try:
        text = path.read_text("ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == word and value.isdecimal():
            return int(value)
    return 0


def _version_one() -> list[tuple[str, str]]:
    try:
        groups = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return []
    places = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            places.append((f"/sys/fs/cgroup/memory{path}/memory.oom_control", "oom_kill"))
        elif not controllers:
            places.append((f"/sys/fs/cgroup{path.rstrip('/')}/memory.events", "oom_kill"))
    return places
