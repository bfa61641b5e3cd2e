"""Roles whose tasks start processes, in every way a library may."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SLEEP = ("sleep", "3600")


class Starter:
    """Does what the payload's name says."""

    def run(self, payload: tuple[str, object]) -> object:
        what, argument = payload
        return getattr(self, what)(argument)

    def uses_a_pool(self, method: str) -> list[int]:
        with multiprocessing.get_context(method).Pool(2) as pool:
            return pool.map(abs, [-1, -2, -3])

    def limits_a_sleep(self, _: object) -> int:
        return subprocess.run(["timeout", "0.2", *SLEEP], check=False).returncode

    def ends_a_process(self, how: str) -> int:
        async def main() -> int:
            process = await asyncio.create_subprocess_exec(*SLEEP)
            getattr(process, how)() if how != "interrupt" else process.send_signal(signal.SIGINT)
            return await process.wait()

        return asyncio.run(main())

    def ends_a_fork(self, _: object) -> int:
        pid = os.fork()
        if not pid:
            time.sleep(3600)
        os.kill(pid, signal.SIGTERM)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def exit_code_of_a_program(self, code: int) -> int:
        return subprocess.run([sys.executable, "-c", f"exit({code})"], check=False).returncode

    def shows_signals(self, _: object) -> str:
        command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def leaves_children(self, note: str) -> int:
        """In the group, in one of its own, in a session of its own, and a child of a child."""
        started = [
            subprocess.Popen(SLEEP),
            subprocess.Popen(SLEEP, process_group=0),
            subprocess.Popen(SLEEP, start_new_session=True),
            subprocess.Popen(["sh", "-c", "sleep 3600 & wait"], start_new_session=True),
        ]
        self.started = started
        # Whole or not there: whoever waits for it may read it at any instant.
        written = Path(f"{note}.new")
        written.write_text(" ".join(str(process.pid) for process in started))
        written.replace(note)
        return len(started)

    def leaves_children_and_hangs(self, note: str) -> None:
        self.leaves_children(note)
        time.sleep(3600)

    def leaves_children_and_dies(self, note: str) -> None:
        self.leaves_children(note)
        os.kill(os.getpid(), signal.SIGKILL)

    def returns_twice(self, _: object) -> int:
        os.fork()
        return os.getpid()

    def logs_in_a_fork(self, n_records: int) -> int:
        import logging

        pid = os.fork()
        for number in range(n_records):
            logging.getLogger("both").warning("%d %s", number, "x" * 5000)
        if not pid:
            os._exit(0)
        return os.waitpid(pid, 0)[0] - pid

    def signals_itself(self, _: object) -> str:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        return "went on"

    def holds_the_socket_in_a_fork_and_dies(self, _: object) -> None:
        if not os.fork():
            time.sleep(3600)
        os.kill(os.getpid(), signal.SIGKILL)

    def holds_the_socket_in_a_session_and_dies(self, _: object) -> None:
        """Out of reach of the group's end; alive for longer than any wait of the pool."""
        if not os.fork():
            os.setsid()
            time.sleep(30)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
