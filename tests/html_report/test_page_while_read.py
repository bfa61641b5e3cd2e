"""The page while the browser is still reading it."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from waiting import HANG_S

from featpipe import Cache
from featpipe.html_report import ReportSettings, write_report


class HalfServer(ThreadingHTTPServer):
    """Sends a page up to some byte, and the rest when ``go`` is set."""

    daemon_threads = True

    def __init__(self, page: bytes, cut: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.page, self.cut, self.go = page, cut, Event()


class Handler(BaseHTTPRequestHandler):
    """Of a half server."""

    server: HalfServer

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.page)))
        self.end_headers()
        self.wfile.write(self.server.page[: self.server.cut])
        self.wfile.flush()
        self.server.go.wait(HANG_S)
        self.wfile.write(self.server.page[self.server.cut :])

    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
def half_read(shown_cache: Path, results: Path, tmp_path: Path) -> Iterator[HalfServer]:
    """A report that ends for now in the middle of its second document."""
    with Cache.open(shown_cache) as cache:
        write_report(cache, tmp_path / "page.html", ReportSettings(results=results))
    page = (tmp_path / "page.html").read_bytes()
    server = HalfServer(page, page.index(b'id="d1"') + 40)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.go.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_document_that_is_opened_half_read_is_shown_when_it_is_read(
    half_read: HalfServer, browser: object
) -> None:
    page = browser.new_page()  # type: ignore[attr-defined]  # optional
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"http://127.0.0.1:{half_read.server_port}/", wait_until="commit")
    page.wait_for_function("document.getElementById('d1')?.textContent")
    page.click('.item[data-document="1"]')
    page.wait_for_selector("#document .empty")
    assert page.evaluate("new Promise(done => setTimeout(() => done(true)))")
    assert faults == []
    half_read.go.set()
    page.wait_for_load_state("load")
    page.wait_for_selector("#document .text")
    page.context.close()
