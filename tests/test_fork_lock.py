"""A forked child goes on with what other threads of its parent were using."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from building import build
from waiting import HANG_S

#: Handlers that are registered last run first: the thread lets go when the fork has begun.
PREAMBLE = """
import os, signal, sys, threading, warnings
from featpipe import Cache
from featpipe.fork_lock import make_lock, make_rlock
warnings.filterwarnings("ignore", "This process .* multi-threaded", DeprecationWarning)

def fork_while(hold, check):
    holds, forks = threading.Event(), threading.Event()
    os.register_at_fork(before=forks.set)
    def run():
        with hold():
            holds.set()
            forks.wait()
            let_go()
    thread = threading.Thread(target=run)
    thread.start()
    holds.wait()
    pid = os.fork()
    if not pid:
        signal.alarm(60)
        os._exit(0 if check() else 1)
    thread.join()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, code

let_go = list
"""

PROGRAMS = {
    "two locks": """
        from contextlib import contextmanager
        a, b = make_lock(), make_rlock()
        state = []

        @contextmanager
        def both():
            with a, b:
                yield

        def let_go():
            state.append("whole")

        def is_free():
            return a.acquire(blocking=False) and b.acquire(blocking=False) and state == ["whole"]

        fork_while(both, is_free)
        assert a.acquire(blocking=False) and b.acquire(blocking=False)
    """,
    "a reader": """
        with Cache.open(sys.argv[1]) as cache:
            dictionary = cache.dictionary()
            fork_while(cache.reader.held, lambda: cache.refresh() or dictionary["合同"].any())
            assert dictionary["合同"].any()
    """,
    "the text of a document": """
        from contextlib import nullcontext
        from featpipe.cache.documents import CachedDocument
        lock = getattr(vars(CachedDocument)["text"], "lock", None) or nullcontext()
        forked = threading.Event()

        def let_go():
            forked.wait()

        with Cache.open(sys.argv[1]) as cache:
            (document,) = cache.documents()
            os.register_at_fork(after_in_parent=forked.set)
            fork_while(lambda: lock, lambda: document.text == "合同")
    """,
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("forked")
    (folder / "a.txt").write_text("合同", "utf-8")
    build(folder / "c.h5", folder / "a.txt", encoder_folder)
    return folder / "c.h5"


@pytest.mark.parametrize("used", PROGRAMS)
def test_a_child_may_use_what_a_thread_of_its_parent_used_at_the_fork(
    used: str, cache: Path
) -> None:
    program = PREAMBLE + textwrap.dedent(PROGRAMS[used])
    ended = subprocess.run(
        [sys.executable, "-c", program, str(cache)],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
