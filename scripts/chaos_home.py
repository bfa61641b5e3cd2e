"""What the rounds of chaos.py share: documents, the quiet cache, commands and counts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cache_contents import contents
from chaos_faults import build_shim
from harness import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = ROOT / "data" / "templates"

Contents = dict[str, dict[bytes, tuple[bytes, ...]]]


@dataclass
class Tally:
    """Counts of one round, or of many; ``words`` say what was not as it should be."""

    kills: int = 0
    lost: int = 0
    wrong: int = 0
    hung: int = 0
    words: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.kills + other.kills,
            self.lost + other.lost,
            self.wrong + other.wrong,
            self.hung + other.hung,
            self.words + other.words,
        )

    def add(self, kind: str, word: str, count: int = 1) -> None:
        """Count something ``lost``, ``wrong`` or ``hung``."""
        setattr(self, kind, getattr(self, kind) + count)
        self.words.append(f"{kind.upper()}: {word}")

    def compare(self, quiet: Contents, found: Contents) -> None:
        """Count the rows that another cache lacks or holds otherwise."""
        for name, expected in quiet.items():
            rows = found.get(name, {})
            n_missing = len(expected.keys() - rows.keys())
            n_other = len(rows.keys() - expected.keys())
            n_other += sum(rows[key] != expected[key] for key in rows.keys() & expected.keys())
            if n_missing:
                self.add("lost", f"{n_missing} rows of {name}", n_missing)
            if n_other:
                self.add("wrong", f"{n_other} rows of {name}", n_other)


@dataclass(frozen=True)
class Home:
    """The folder of a run of chaos.py."""

    folder: Path
    documents: Path
    cache: Path
    quiet: Contents
    quiet_s: float
    shim: Path | None

    @classmethod
    def make(cls, folder: Path, documents: Path) -> Self:
        """Build the quiet cache."""
        cache = folder / "quiet.h5"
        started = time.monotonic()
        run_quiet(build_command(documents, cache))
        seconds = time.monotonic() - started
        quiet = contents(cache)
        print(f"quiet build: {seconds:.1f} s, {sum(map(len, quiet.values()))} rows", flush=True)
        return cls(folder, documents, cache, quiet, seconds, build_shim(folder))

    @property
    def limit_s(self) -> float:
        """A build that takes longer is taken to hang."""
        return 40 * self.quiet_s + 120

    def fresh(self, name: str) -> Path:
        """An empty folder of this name."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        return folder


def featpipe(*arguments: object) -> list[str]:
    """A command of featpipe, as a user types it."""
    return [sys.executable, "-m", "featpipe", *map(str, arguments)]


def build_command(documents: Path, cache: Path) -> list[str]:
    """Build the cache of the documents."""
    return featpipe("build-cache", documents, "--cache", cache, "--json")


def run_quiet(command: list[str], timeout_s: float = 900.0) -> subprocess.CompletedProcess[bytes]:
    """Run without faults. Raises CalledProcessError with the errors printed."""
    done = subprocess.run(
        command, capture_output=True, timeout=timeout_s, check=False, env=dict(os.environ)
    )
    if done.returncode:
        print(done.stderr.decode(errors="replace")[-2000:], flush=True)
        done.check_returncode()
    return done
