"""A child's process, whoever started it: ourselves, or a template that forked it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess


class FreshProcess:
    """An interpreter that we started and wait for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid: int | None = process.pid
        self.pidfd = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else -1

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still lives."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def collect(self, timeout_s: float) -> int | None:
        """The exit code, had by force after ``timeout_s``; None when somebody else took it."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def forget(self) -> None:
        """It is not ours to wait for: we are a forked child."""
        self._process.returncode = 0


class ForkedProcess:
    """A fork of a template, which tells us its pid when it has forked and its exit code after.

    Signals go by the process descriptor the template took before it could collect the process:
    they can never hit another that was given the same pid.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        self.pidfd = -1
        self.exit_code: int | None = None
        self._waiting: list[signal.Signals] = []

    @property
    def is_given_up(self) -> bool:
        """Whether it is to be killed as soon as it lives."""
        return signal.SIGKILL in self._waiting

    def learn(self, pid: int, pidfd: int) -> None:
        """It lives."""
        self.pid, self.pidfd = pid, pidfd
        for number in self._waiting:
            self.signal(number)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal as soon as it lives."""
        if self.pidfd < 0:
            self._waiting.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def collect(self, timeout_s: float) -> int | None:  # noqa: ARG002  # the other kind needs it
        """The exit code, if the template told it."""
        return self.exit_code

    def forget(self) -> None:
        """Nothing to do: it was never ours to wait for."""


Process = FreshProcess | ForkedProcess
