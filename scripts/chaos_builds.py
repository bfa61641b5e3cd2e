"""Rounds of chaos.py with builds and cache files."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING

from cache_contents import contents
from chaos_faults import Disturbance, flip_bits, run_disturbed, small_disk
from chaos_home import Home, Tally, build_command, featpipe, run_quiet

from featpipe import Cache
from featpipe.errors import FeatpipeError
from featpipe.store.verify import verify_dictionary

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

#: Disturbed builds of one cache before the quiet one that must complete it.
_MOST_ATTEMPTS = 4
#: Exit codes that a fault may lead to: something left out, a fatal error, interrupted.
_HONEST = {0, 1, 3, 130}


def build_under(how: Callable[[Home, random.Random], Disturbance | None], home: Home,
                dice: random.Random) -> Tally:  # fmt: skip
    """Build under a disturbance until it ends well, then once without, and compare."""
    cache = home.fresh("disturbed") / "c.h5"
    tally = Tally()
    for _ in range(_MOST_ATTEMPTS):
        disturbance = how(home, dice)
        if disturbance is None:
            tally.words.append("not possible here")
            return tally
        ended = run_disturbed(build_command(home.documents, cache), disturbance, dice, home.limit_s)
        # A fault of the machine counts as a blow where it ended the build.
        tally.kills += ended.n_blows or int(bool(ended.code))
        _judge(ended.code, ended.errors, disturbance, tally)
        if ended.n_left:
            tally.add("hung", f"{ended.n_left} processes outlived the build")
        if ended.code == 0:
            break
    _complete(home, cache, tally)
    return tally


def _judge(code: int | None, errors: str, how: Disturbance, tally: Tally) -> None:
    if code is None:
        tally.add("hung", "a build had to be ended")
    elif "Traceback" in errors:
        tally.add("wrong", f"a traceback: {errors[-300:]}")
    elif code not in _HONEST and not (how.ends_parent and code == -9):
        tally.add("wrong", f"exit code {code}: {errors[-300:]}")


def _complete(home: Home, cache: Path, tally: Tally) -> None:
    """The quiet build after the faults must end well, and give the quiet cache."""
    try:
        run_quiet(build_command(home.documents, cache), home.limit_s)
    except subprocess.TimeoutExpired:
        tally.add("hung", "the build after the faults")
        return
    except subprocess.CalledProcessError as error:
        tally.add("wrong", f"the build after the faults: exit code {error.returncode}")
        return
    tally.compare(home.quiet, contents(cache))
    found = verify_dictionary(cache, is_deep=True)
    if not found.is_good:
        tally.add("wrong", f"verify: {found}")


def _kills(home: Home, dice: random.Random) -> Disturbance:
    # By the speed of the machine: where no worker lives until it is ready, a build cannot end.
    return Disturbance(kills=True, every_s=home.quiet_s * dice.choice([0.02, 0.05, 0.15]))


def _stops(home: Home, dice: random.Random) -> Disturbance:  # noqa: ARG001
    return Disturbance(stops=True, kills=dice.random() < 0.5, every_s=1.0)


def _ends_parent(home: Home, dice: random.Random) -> Disturbance:
    return Disturbance(ends_parent=True, every_s=dice.uniform(0.05, home.quiet_s / 6))


def _bad_disk(home: Home, dice: random.Random) -> Disturbance | None:
    if home.shim is None:
        return None
    every = dice.choice([20, 100, 400])
    variables = {"CHAOS_EIO": str(every), "CHAOS_FOLDER": str(home.folder / "disturbed")}
    return Disturbance(environment=variables | {"LD_PRELOAD": str(home.shim)})


def _clock(home: Home, dice: random.Random) -> Disturbance | None:
    if home.shim is None:
        return None
    variables = {"CHAOS_CLOCK": str(dice.choice([60, 86_400, 10_000_000]))}
    return Disturbance(environment=variables | {"LD_PRELOAD": str(home.shim)})


def _little_memory(home: Home, dice: random.Random) -> Disturbance:  # noqa: ARG001
    return Disturbance(memory_bytes=int(2 ** dice.uniform(28, 31.5)))


def full_disk(home: Home, dice: random.Random) -> Tally:
    """A cache on a disk that is too small at first, and grows."""
    folder = home.fresh("full")
    needed = home.cache.stat().st_size
    tally = Tally()
    with small_disk(folder, int(needed * dice.uniform(0.05, 0.9))) as resize:
        if resize is None:
            tally.words.append("not possible here")
            return tally
        cache = folder / "c.h5"
        command = build_command(home.documents, cache)
        ended = run_disturbed(command, Disturbance(every_s=1.0), dice, home.limit_s)
        tally.kills += 1
        _judge(ended.code, ended.errors, Disturbance(), tally)
        if cache.exists():
            before = contents(cache)
            resize(needed * 3)
            _complete(home, cache, tally)
            after = contents(cache)
            for name, rows in before.items():
                n_gone = len(rows.keys() - after[name].keys())
                if n_gone:
                    tally.add("lost", f"{n_gone} rows that were there before", n_gone)
        else:
            resize(needed * 3)
            _complete(home, cache, tally)
    return tally


def flips(home: Home, dice: random.Random) -> Tally:
    """Bits of a copy flipped: no wrong vector, damage named, and mended by repair and a build."""
    cache = home.fresh("flips") / "c.h5"
    cache.write_bytes(home.cache.read_bytes())
    offsets = flip_bits(cache, dice, dice.choice([1, 1, 2, 10]))
    tally = Tally(kills=len(offsets))
    is_named = not verify_dictionary(cache, is_deep=True).is_good
    is_refused = _read_all(home, cache, tally)
    if is_refused and not is_named:
        tally.add("wrong", f"damage at {offsets} is refused by readers, and verify says good")
    if is_named:
        repaired = subprocess.run(featpipe("repair", cache), capture_output=True, check=False)
        if repaired.returncode not in {0, 1}:
            errors = repaired.stderr.decode(errors="replace")[-300:]
            tally.add("wrong", f"repair after {offsets}: {errors}")
            return tally
    _complete(home, cache, tally)
    return tally


def _read_all(home: Home, cache: Path, tally: Tally) -> bool:
    """Read every vector; whether the file or some of its rows were refused."""
    is_refused = False
    try:
        with Cache.open(home.cache) as quiet, Cache.open(cache) as flipped:
            for space in quiet.spaces():
                expected, found = quiet.dictionary(space), flipped.dictionary(space)
                for text in expected.texts():
                    try:
                        vector = found.get(text)
                    except FeatpipeError:
                        is_refused = True
                        continue
                    if vector is not None and vector.tobytes() != expected[text].tobytes():
                        tally.add("wrong", f"the vector of {text[:20]!r}")
    except FeatpipeError:
        return True
    except Exception as error:  # whichever: it is what is looked for
        tally.add("wrong", f"a raw {type(error).__name__}: {error}")
    return is_refused


def backup(home: Home, dice: random.Random) -> Tally:
    """Backups while a build writes are whole."""
    folder = home.fresh("backup")
    tally = Tally()
    with subprocess.Popen(
        build_command(home.documents, folder / "c.h5"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as build:
        while build.poll() is None:
            try:
                build.wait(dice.uniform(0.2, 2.0))
            except subprocess.TimeoutExpired:
                _back_up(home, folder, tally)
    if build.returncode:
        tally.add("wrong", f"the build beside backups: exit code {build.returncode}")
    return tally


def _back_up(home: Home, folder: Path, tally: Tally) -> None:
    if not (folder / "c.h5").exists():
        return
    run_quiet(featpipe("backup", folder / "c.h5", folder / "copy.h5"), home.limit_s)
    tally.kills += 1
    found = verify_dictionary(folder / "copy.h5", is_deep=True)
    if not found.is_good:
        tally.add("wrong", f"a backup: {found}")
    for name, rows in contents(folder / "copy.h5").items():
        n_other = sum(home.quiet.get(name, {}).get(key) != row for key, row in rows.items())
        if n_other:
            tally.add("wrong", f"{n_other} rows of {name} in a backup", n_other)


BUILDS: dict[str, Callable[[Home, random.Random], Tally]] = {
    "kill": partial(build_under, _kills),
    "stop": partial(build_under, _stops),
    "parent": partial(build_under, _ends_parent),
    "eio": partial(build_under, _bad_disk),
    "clock": partial(build_under, _clock),
    "memory": partial(build_under, _little_memory),
    "full": full_disk,
    "flips": flips,
    "backup": backup,
}
