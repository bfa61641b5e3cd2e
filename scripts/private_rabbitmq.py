"""A RabbitMQ node of one's own on free ports, with everything it writes in one folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import kombu
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WAIT_S = 300


def server_program() -> str | None:
    """The server's start script; None when it is not installed."""
    # The one behind the packages' wrapper, which would change the user.
    return shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin:" + os.environ["PATH"])


@contextmanager
def private_rabbitmq(folder: Path) -> Iterator[str]:
    """The URL of a new node; it is ended, with all it started, on leaving."""
    program = server_program()
    if program is None:
        raise FileNotFoundError("rabbitmq-server is not installed")
    port, epmd = free_port(), free_port()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [program],
            env=_environment(folder, port, epmd),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    url = f"amqp://guest:guest@127.0.0.1:{port}//"
    try:
        _wait_for(process, url, folder / "output")
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run(["epmd", "-port", str(epmd), "-kill"], check=False, capture_output=True)


def _environment(folder: Path, port: int, epmd: int) -> dict[str, str]:
    (folder / "plugins").write_text("[].\n")
    return {
        **os.environ,
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"featpipe{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
    }


def _wait_for(process: subprocess.Popen[bytes], url: str, output: Path) -> None:
    until = time.monotonic() + _WAIT_S
    while True:
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the broker does not start: {output.read_text()}")
        try:
            with kombu.Connection(url, connect_timeout=5) as connection:
                connection.ensure_connection(max_retries=1)
                return
        except (kombu.exceptions.OperationalError, OSError):
            time.sleep(0.2)
