"""No child outlives its parent, none hangs it, and nothing is used while there is nothing to do."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from waiting import HANG_S, descendants, has_ended, wait_for

from featpipe.pool import Pool, Role, stopping_in_two_steps

HERE = Path(__file__).parent
PHASES = ("starting", "asleep", "in a loop", "in C", "idle", "forked")


class Program:
    """A running pool_program.py."""

    def __init__(self, phase: str, report: Path) -> None:
        self.report = report
        self._said = report.with_name("said")
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "pool_program.py"), phase, str(report)],
                env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        assert wait_for(lambda: self.workers), self.output

    @property
    def lines(self) -> list[str]:
        return self.report.read_text().splitlines() if self.report.exists() else []

    @property
    def workers(self) -> list[psutil.Process]:
        pids = [line.split()[1:] for line in self.lines if line.startswith("pids")]
        return [psutil.Process(int(pid)) for pid in pids[0]] if pids else []

    @property
    def output(self) -> str:
        return self._said.read_text("utf-8")

    def has_heard(self) -> bool:
        """A second signal that comes before the first was handled is one with it."""
        return wait_for(lambda: "finishing what is in flight" in self.output)

    def ends(self) -> str:
        self.process.wait(timeout=HANG_S)
        return self.output


Runs = Callable[[str], Program]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    programs: list[Program] = []

    def start(phase: str) -> Program:
        programs.append(Program(phase, tmp_path / "report"))
        return programs[-1]

    yield start
    for program in programs:
        program.process.kill()
        program.process.wait()


@pytest.mark.parametrize("phase", PHASES)
def test_no_child_outlives_a_killed_parent(phase: str, runs: Runs) -> None:
    program = runs(phase)
    workers = psutil.Process(program.process.pid).children(recursive=True)
    assert {worker.pid for worker in program.workers} <= {worker.pid for worker in workers}
    program.process.kill()
    assert wait_for(lambda: all(map(has_ended, workers)))


@pytest.mark.parametrize("phase", ["starting", "asleep", "in a loop", "in C", "forked"])
def test_a_second_interrupt_stops_at_once(phase: str, runs: Runs) -> None:
    program = runs(phase)
    workers = program.workers
    # To the whole group, as a terminal does.
    os.killpg(program.process.pid, signal.SIGINT)
    assert program.has_heard()
    with pytest.raises(subprocess.TimeoutExpired):
        program.process.wait(0.5)
    os.killpg(program.process.pid, signal.SIGINT)
    output = program.ends()
    assert program.lines[-1] == "interrupted"
    assert "Traceback" not in output, "children say nothing about it"
    assert wait_for(lambda: all(map(has_ended, workers)))  # another process collects forks


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_interrupt_finishes_what_is_in_flight(number: signal.Signals, runs: Runs) -> None:
    program = runs("short tasks")
    assert wait_for(lambda: "done" in program.lines)
    os.killpg(program.process.pid, number)
    output = program.ends()
    assert program.process.returncode == 0, output
    assert program.lines[-1] == "stopped"
    assert "finishing what is in flight" in output
    assert "Traceback" not in output


def test_an_idle_program_with_a_pool_is_stopped_by_the_first_interrupt(runs: Runs) -> None:
    program = runs("idle")
    os.killpg(program.process.pid, signal.SIGINT)
    program.ends()
    assert program.lines[-1] == "stopped"


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with (
        Pool([Role("echo", "pool_roles:Echo")]) as pool,
        stopping_in_two_steps(pool.stop_after_current),
    ):
        assert signal.getsignal(signal.SIGINT) != before[0]
        signal.raise_signal(signal.SIGINT)
        assert pool.is_stopping
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_first_interrupt_with_nothing_in_flight_stops_at_once() -> None:
    with stopping_in_two_steps(lambda: False), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_a_second_interrupt_during_the_announcement_waits_for_its_end() -> None:
    lines: list[str] = []

    class Terminal(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            signal.raise_signal(signal.SIGINT)
            lines.append(record.getMessage())

    log, terminal = logging.getLogger("featpipe.pool.interrupt"), Terminal()
    log.addHandler(terminal)
    try:
        with stopping_in_two_steps(lambda: True), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        log.removeHandler(terminal)
    assert lines == ["SIGINT: finishing what is in flight; once more to stop at once"]


def test_another_thread_installs_no_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def use() -> None:
        with (
            Pool([Role("echo", "pool_roles:Echo")]) as pool,
            stopping_in_two_steps(pool.stop_after_current),
        ):
            seen.append(signal.getsignal(signal.SIGINT))
            assert pool.call("echo", 1) == 1

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_program_may_end_with_tasks_open(tmp_path: Path) -> None:
    program = (
        "from featpipe.pool import Pool, Role\n"
        "pool = Pool([Role('t', 'pool_roles:Trouble', devices=('cpu', 'cpu'))])\n"
        "for _ in range(9): pool.submit('t', ('sleeps', 3600))\n"
    )
    path = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_pool_with_nothing_to_do_uses_no_processor_time() -> None:
    role = Role("echo", "pool_roles:Echo", devices=("cpu", "cpu"), is_lazy=False)
    with Pool([role]) as pool:
        list(pool.map("echo", range(10)))
        # Of this process the pool's own threads: others are other tests' and libraries'.
        own = [t.native_id for t in threading.enumerate() if t.name.startswith("featpipe-")]
        statuses = [Path(f"/proc/self/task/{number}/status") for number in own]
        for child in descendants():
            statuses += Path(f"/proc/{child.pid}/task").glob("*/status")
        assert len(statuses) > 3

        def n_switches() -> int:
            return sum(
                int(re.findall(r"\nvoluntary_ctxt_switches:\s+(\d+)", status.read_text())[0])
                for status in statuses
            )

        # The claim is about doing nothing: the wait is its subject. On a busy machine the last
        # answer may still be under way in the first of the seconds; what polls does so in each.
        for _ in range(10):
            first = n_switches()
            threading.Event().wait(1.0)
            if n_switches() - first <= 5:
                return
    pytest.fail("something polls")


MODES = {
    "a tiny /dev/shm": "mount -t tmpfs -o size=16m none /dev/shm",
    "a read-only /dev/shm": "mount -t tmpfs -o ro none /dev/shm",
    "no /dev/shm": "mount --bind /proc/sys /dev/shm",
}

BIG = """
import numpy, sys
from featpipe.pool import Pool, Role
with Pool([Role("maker", "pool_array_roles:Maker"), Role("sum", "pool_array_roles:Sum")]) as pool:
    array = pool.call("maker", (8_000_000, 2.0))
    assert pool.call("sum", {"array": array}) == 16_000_000.0
    assert pool.call("sum", {"array": numpy.ones(8_000_000)}) == 8_000_000.0
print("fine")
"""


def run_big(prefix: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    return subprocess.run(
        [*prefix, sys.executable, "-c", BIG],
        env={**os.environ, "PYTHONPATH": path, **variables},
        text=True,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.parametrize("mode", MODES)
def test_large_arrays_do_not_need_shared_memory_of_the_system(mode: str) -> None:
    if shutil.which("unshare") is None or os.geteuid():
        pytest.skip("needs a mount namespace")
    command = f'{MODES[mode]} && exec "$0" "$@"'
    ended = run_big(["unshare", "-m", "sh", "-c", command])
    if "mount" in ended.stderr or "unshare" in ended.stderr:
        pytest.skip("mounting is not permitted here")
    assert ended.stdout == "fine\n", ended.stderr


def test_without_memfd_an_unlinked_file_does(tmp_path: Path) -> None:
    ended = run_big([], FEATPIPE_NO_MEMFD="1", TMPDIR=str(tmp_path))
    assert ended.stdout == "fine\n", ended.stderr
    assert not list(tmp_path.iterdir())


def test_without_room_for_segments_arrays_ride_in_the_frames() -> None:
    """A full disk is found out when space is reserved, not by a SIGBUS."""
    if shutil.which("unshare") is None or os.geteuid():
        pytest.skip("needs a mount namespace")
    command = 'mount -t tmpfs -o size=8m none /mnt && exec "$0" "$@"'
    prefix = ["unshare", "-m", "sh", "-c", command]
    ended = run_big(prefix, FEATPIPE_NO_MEMFD="1", TMPDIR="/mnt")
    if "mount" in ended.stderr or "unshare" in ended.stderr:
        pytest.skip("mounting is not permitted here")
    assert ended.stdout == "fine\n", ended.stderr


STARVED = """
from featpipe.errors import WorkerDied
from featpipe.pool import Pool, Role
with Pool([Role("t", "pool_roles:Trouble", devices=("cpu", "cpu"), max_losses=2)]) as pool:
    for number in range(7):
        pool.submit("t", ("fine", number), tag=number)
    pool.submit("t", ("eats_memory", 1 << 30), tag="bad")
    ended = {}
    while outcomes := pool.completed():
        ended.update({outcome.tag: outcome for outcome in outcomes})
error = ended.pop("bad").error
assert isinstance(error, WorkerDied), error
assert "out of memory" in str(error), error
assert {tag: outcome.value for tag, outcome in ended.items()} == {n: n for n in range(7)}
print("fine")
"""


@pytest.fixture
def starved_group() -> Iterator[Path]:
    """A control group with little memory, where we may make one."""
    groups = Path("/proc/self/cgroup").read_text().splitlines()
    mine = {kind: path for _, kind, path in (line.split(":", 2) for line in groups)}
    if "memory" in mine:
        parent, limit = Path(f"/sys/fs/cgroup/memory{mine['memory']}"), "memory.limit_in_bytes"
    else:
        parent, limit = Path(f"/sys/fs/cgroup{mine.get('', '/')}"), "memory.max"
    group = parent / f"featpipe-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(300 << 20))
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    assert wait_for(lambda: is_removed(group), 60)  # empty: its processes were waited for


def is_removed(group: Path) -> bool:
    """The kernel may count an ended process for a moment."""
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


def test_a_child_the_kernel_kills_for_memory_is_said_to_have_been_out_of_it(
    starved_group: Path,
) -> None:
    command = f'echo $$ > {starved_group}/cgroup.procs && exec "$0" "$@"'
    path = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    ended = subprocess.run(
        ["sh", "-c", command, sys.executable, "-c", STARVED],
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert ended.stdout == "fine\n", ended.stderr
