"""A service in a process of its own, as a client and as its operator see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import waiting
from waiting import HANG_S, free_port

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


def wait_for(holds: Callable[[], object], what: str) -> None:
    assert waiting.wait_for(holds), f"{what} did not happen"


class Service:
    """A running service, as a client and as its operator see it."""

    def __init__(self, port: int, pid: int, log: Path, home: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port, self.pid, self.log, self.home = port, pid, log, home
        self.client = httpx.Client(base_url=self.url, timeout=HANG_S, trust_env=False)

    def is_ready(self) -> bool:
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def extract(self, **body: object) -> httpx.Response:
        return self.client.post("/extract", json=body)

    def workers(self, name: str) -> dict[str, int]:
        """Resident bytes of the workers of a batcher, by name."""
        found = {}
        for line in self.client.get("/metrics").text.splitlines():
            if line.startswith(f'featpipe_resident_bytes{{process="{name}-'):
                found[line.split('"')[1]] = int(float(line.split()[-1]))
        return found

    def records(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]


#: Of the service that most tests share.
QUERY_PROMPT = "合同："


def program(home: Path, port: int, **settings: object) -> list[str]:
    given = {
        "cache": str(home / "c.h5"),
        "templates": str(home / "templates"),
        "port": port,
        "document_deadline_s": HANG_S,
        "deadline_s": HANG_S,
        "max_body_bytes": 1 << 20,
        **settings,
    }
    return [sys.executable, str(HERE / "service_program.py"), json.dumps(given)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(REPOSITORY)])}


@contextmanager
def running(home: Path, **settings: object) -> Iterator[tuple[Service, subprocess.Popen[bytes]]]:
    """A service that is a child of this process; killed at the end if it is still there."""
    port = free_port()
    log = home / f"service-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            program(home, port, **settings),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
    service = Service(port, process.pid, log, home)
    try:
        wait_for(lambda: process.poll() is not None or service.is_ready(), log.read_text())
        assert process.poll() is None, log.read_text()
        yield service, process
    finally:
        service.client.close()
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
