"""A library call works, unchanged and without a guard, wherever a program may make it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from waiting import HANG_S, free_port, wait_for

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]

CALL = "import pool_host; pool_host.check({path!r})"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    return tmp_path / "note"


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(REPOSITORY)])}


def succeeds(note: Path) -> bool:
    return note.exists() and note.read_text("utf-8") == "[0, 1, 4, 9]"


def run(
    arguments: list[str], environment: dict[str, str], *, stdin: str | None = None, cwd: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        input=stdin,
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )


PROGRAMS = {
    "a script without a guard": CALL,
    "a thread of a script": """
        import threading, pool_host
        thread = threading.Thread(target=pool_host.check, args=({path!r},))
        thread.start()
        thread.join()
    """,
    "a thread that ends before the pool is used": """
        import threading, pool_host
        from featpipe.pool import Pool, Role
        pools = []
        role = Role("square", "pool_roles:Square", is_lazy=False)
        thread = threading.Thread(target=lambda: pools.append(Pool([role])))
        thread.start()
        thread.join()
        values = [outcome.value for outcome in pools[0].map("square", range(4), ordered=True)]
        pools[0].close()
        open({path!r}, "w").write(repr(values))
    """,
    "a daemonic process of multiprocessing": """
        import multiprocessing, pool_host
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            process = context.Process(target=pool_host.check, args=({path!r},), daemon=True)
            process.start()
            process.join()
    """,
    "a forked child": """
        import os, sys, pool_host
        pid = os.fork()
        if not pid:
            pool_host.check({path!r})
            sys.exit(0)
        os.waitpid(pid, 0)
    """,
    "a forked child of a process that has a pool": """
        import os, sys, warnings, pool_host
        # Python 3.12 and later say this to any program that has threads and forks.
        warnings.filterwarnings("ignore", "This process .* multi-threaded", DeprecationWarning)
        from featpipe.errors import PoolClosed
        from featpipe.pool import Pool, Role
        with Pool([Role("square", "pool_roles:Square")]) as pool:
            assert pool.call("square", 3) == 9
            pid = os.fork()
            if not pid:
                try:
                    pool.call("square", 3)
                except PoolClosed as error:
                    assert "forked" in str(error)
                    pool_host.check({path!r})
                pool.close()
                sys.exit(0)
            os.waitpid(pid, 0)
            assert pool.call("square", 4) == 16
    """,
    "a forked child of a process that had a pool": """
        import os, sys, pool_host
        from featpipe.pool import Pool, Role
        pool = Pool([Role("square", "pool_roles:Square")])
        assert pool.call("square", 3) == 9
        pool.close()
        mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]  # with the pool's numbers
        pid = os.fork()
        if not pid:
            for descriptor in mine:
                os.fstat(descriptor)
            pool_host.check({path!r})
            sys.exit(0)
        assert not os.waitpid(pid, 0)[1]
    """,
    "a process without standard streams": """
        import os
        os.closerange(0, 3)
        import pool_host
        pool_host.check({path!r})
    """,
    "a program that ignores the end of its children": """
        import signal, pool_host
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        pool_host.check({path!r})
    """,
    "a program that changes its directory": """
        import os, pool_host
        os.chdir("/")
        pool_host.check({path!r})
    """,
    "a program whose directory is removed": """
        import os, tempfile, pool_host
        os.chdir(tempfile.mkdtemp())
        os.rmdir(os.getcwd())
        pool_host.check({path!r})
    """,
    "an exit handler": """
        import atexit, pool_host
        atexit.register(pool_host.check, {path!r})
    """,
    "an event loop": """
        import asyncio, pool_host
        async def main():
            await asyncio.to_thread(pool_host.check, {path!r})
        asyncio.run(main())
    """,
}


THREAD_AT_EXIT = "import atexit, threading; atexit.register(threading.Thread(target=int).start)"


@pytest.mark.parametrize("situation", PROGRAMS)
def test_a_call_works_from(
    situation: str, note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    if (
        situation == "an exit handler"
        and run(["-c", THREAD_AT_EXIT], environment, cwd=tmp_path).stderr
    ):
        pytest.skip("this Python (3.12) starts no thread in an exit handler")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAMS[situation]).format(path=str(note), method="spawn"))
    ended = run([str(program)], environment, cwd=tmp_path)
    assert succeeds(note), ended.stderr
    assert ended.returncode == 0
    assert ended.stderr == ""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_call_works_from_a_daemonic_process_started_by(
    method: str, note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    program = tmp_path / "program.py"
    text = PROGRAMS["a daemonic process of multiprocessing"]
    program.write_text(textwrap.dedent(text).format(path=str(note), method=method))
    ended = run([str(program)], environment, cwd=tmp_path)
    assert succeeds(note), ended.stderr


def test_a_call_works_from_a_command_line(
    note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    ended = run(["-c", CALL.format(path=str(note))], environment, cwd=tmp_path)
    assert succeeds(note), ended.stderr


def test_a_call_works_from_stdin(note: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    ended = run(["-"], environment, stdin=CALL.format(path=str(note)), cwd=tmp_path)
    assert succeeds(note), ended.stderr


def test_a_call_works_from_an_interactive_session(
    note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    ended = run(["-i", "-q"], environment, stdin=CALL.format(path=str(note)) + "\n", cwd=tmp_path)
    assert succeeds(note), ended.stderr


def test_a_call_works_from_a_module(
    note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(CALL.format(path=str(note)))
    ended = run(["-m", "package"], environment, cwd=tmp_path)
    assert succeeds(note), ended.stderr


def test_a_call_works_with_warnings_as_errors_and_optimised(
    note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    program = ["-W", "error", "-X", "dev", "-O", "-c", CALL.format(path=str(note))]
    ended = run(program, environment, cwd=tmp_path)
    assert succeeds(note), ended.stderr
    assert ended.stderr == ""


NOTEBOOK = """
from jupyter_client.manager import start_new_kernel
manager, kernel = start_new_kernel(kernel_name="python3", startup_timeout={hang_s})
try:
    reply = kernel.execute_interactive({cell!r}, timeout={hang_s})
    assert reply["content"]["status"] == "ok"
finally:
    kernel.stop_channels()
    manager.shutdown_kernel(now=True)
"""


def test_a_call_works_from_a_notebook(
    note: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("jupyter_client", exc_type=ImportError)
    pytest.importorskip("ipykernel", exc_type=ImportError)
    cell = CALL.format(path=str(note))
    ended = run(["-c", NOTEBOOK.format(cell=cell, hang_s=HANG_S)], environment, cwd=tmp_path)
    assert succeeds(note), ended.stderr


@pytest.fixture
def server(
    request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]
) -> Iterator[int]:
    """A web server that makes the call for each request; stopped, with all its children, after."""
    module, *options = request.param
    pytest.importorskip(module, exc_type=ImportError)
    port = free_port()
    places = {"port": port, "watched": tmp_path}
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *(o.format_map(places) for o in options)],
            cwd=HERE,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        yield port
        left = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_S)
        _, alive = psutil.wait_procs(left, timeout=HANG_S)
        assert not alive
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=HANG_S) as reply:
            return bool(json.load(reply) == [0, 1, 4, 9])
    except OSError:
        return False


@pytest.mark.parametrize(
    "server",
    [
        ("gunicorn", "-t", "0", "-b", "127.0.0.1:{port}", "pool_web:wsgi"),
        ("gunicorn", "-t", "0", "--preload", "-w", "2", "-b", "127.0.0.1:{port}", "pool_web:wsgi"),
        (
            "gunicorn",
            "-t",
            "0",
            "-k",
            "gthread",
            "--threads",
            "2",
            "-b",
            "127.0.0.1:{port}",
            "pool_web:wsgi",
        ),
        ("uvicorn", "--port", "{port}", "pool_web:asgi"),
        ("uvicorn", "--port", "{port}", "--workers", "2", "pool_web:asgi"),
        ("uvicorn", "--port", "{port}", "--reload", "--reload-dir", "{watched}", "pool_web:asgi"),
    ],
    indirect=True,
    ids=[
        "gunicorn",
        "gunicorn-preload",
        "gunicorn-threads",
        "uvicorn",
        "uvicorn-workers",
        "uvicorn-reload",
    ],
)
def test_a_call_works_in_a_web_server(server: int) -> None:
    assert wait_for(lambda: answers(server), HANG_S)
    assert answers(server)


def test_a_call_works_inside_a_running_event_loop(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    import pool_host

    async def main() -> None:
        pool_host.check(str(note))

    asyncio.run(main())
    assert succeeds(note)
