"""Connections whose clients do nothing are closed, and no others."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from service_watch import running, wait_for
from waiting import HANG_S

from featpipe.service.connections import QuietConnections

if TYPE_CHECKING:
    from service_watch import Service


@pytest.fixture(scope="module")
def impatient(built: Path, encoder_folder: Path) -> Iterator[Service]:
    with running(built, model=str(encoder_folder), quiet_s=0.5, unread_s=0.5) as (service, _):
        yield service


@pytest.mark.parametrize("head", [b"", b"GET /healthz HTTP/1.1\r\nHost: local"])
def test_a_connection_without_a_whole_request_is_closed(impatient: Service, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port), HANG_S) as client:
        client.sendall(head)
        assert client.recv(1) == b""


def test_a_client_that_does_not_read_its_answers_is_cut_off(impatient: Service) -> None:
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", impatient.port), HANG_S) as client:
        client.sendall(asked * 500)  # answers that no buffer of the kernel holds
        mine = client.getsockname()
        process = psutil.Process(impatient.pid)
        wait_for(lambda: mine in {one.raddr for one in process.net_connections()}, "connecting")
        wait_for(lambda: mine not in {one.raddr for one in process.net_connections()}, "the end")


class Cycle:
    def __init__(self, *, response_complete: bool) -> None:
        self.response_complete = response_complete


class Connection:
    def __init__(self, cycle: Cycle | None = None) -> None:
        self.cycle = cycle


def test_only_connections_that_stay_without_a_request_are_found() -> None:
    new, answering, used = Connection(), Connection(Cycle(response_complete=False)), Connection()
    quiet: QuietConnections[Connection] = QuietConnections(60.0)
    for now in range(0, 60, 20):
        used.cycle = Cycle(response_complete=True)  # one more was answered since the last look
        assert quiet.find({new, answering, used}, now) == []
    assert quiet.find({new, answering, used}, 60) == [new]
    assert quiet.find({answering, used}, 100) == [used]
    assert quiet.find({answering}, 10_000) == []
