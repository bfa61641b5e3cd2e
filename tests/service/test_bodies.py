"""Bodies that do not come whole, as the middleware and the routes meet them."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from featpipe.extraction.messages import Done
from featpipe.service.app import create_app
from featpipe.service.engine import Engine
from featpipe.service.settings import ServiceSettings

PATHS = ("/extract", "/extract/batch", "/v1/embeddings", "/search")
PART = {"type": "http.request", "body": b'{"text": "', "more_body": True}


@pytest.fixture
def engine(built: Path, encoder_folder: Path) -> Engine:
    """Never started: no body here reaches a worker."""
    settings = ServiceSettings(
        built / "c.h5", built / "templates", str(encoder_folder), "none",
        devices=("cpu",), deadline_s=0.01,
    )  # fmt: skip
    return Engine(settings)


def post(engine: Engine, path: str, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What is sent to a client whose body comes as these messages, and then no more."""
    coming, sent = iter(messages), []

    async def receive() -> dict[str, Any]:
        for message in coming:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip
    asyncio.run(create_app(engine)(scope, receive, send))  # type: ignore[arg-type]
    return sent


def statuses(engine: Engine) -> dict[str, float]:
    """Requests counted so far, by status."""
    samples = [s for family in engine.metrics.requests.collect() for s in family.samples]
    return {s.labels["status"]: s.value for s in samples if s.name.endswith("_total")}


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_leaves_within_its_body_is_no_error_of_the_service(
    engine: Engine, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert post(engine, path, PART, {"type": "http.disconnect"}) == []
    assert statuses(engine) == {"499": 1}
    assert [(one.name, one.levelname) for one in caplog.records] == [("featpipe.access", "INFO")]


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_stays_out_is_refused_and_its_connection_closed(
    engine: Engine, path: str
) -> None:
    start, body = post(engine, path, PART)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert json.loads(body["body"])["error"]["code"] == "body_too_slow"
    assert statuses(engine) == {"408": 1}


def answer(engine: Engine, path: str, data: bytes) -> tuple[int, dict[str, Any]]:
    start, body = post(engine, path, {"type": "http.request", "body": data})[:2]
    return start["status"], json.loads(body["body"].splitlines()[0])["error"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            '{"text": "违约责任"}'.encode("gbk"),
            "not UTF-8, at byte 14: invalid continuation byte",
        ),
        (b'{"text": ' + b"[" * 100_000, "nested too deeply|recursion limit exceeded"),
        (b'{"text": }', "expected value at line 1 column 10|Expecting value at character 9"),
    ],
)
def test_a_body_that_is_no_json_says_why(
    engine: Engine, path: str, data: bytes, message: str
) -> None:
    status, error = answer(engine, path, data)
    assert re.search(f"Invalid JSON: .*({message})", error["message"])
    if path != "/extract/batch":  # whose lines fail each alone
        assert (status, error["code"]) == (422, "invalid_request")
        assert error["hint"]


@pytest.mark.parametrize("path", PATHS)
def test_a_byte_order_mark_before_a_body_is_passed_over(engine: Engine, path: str) -> None:
    _, error = answer(engine, path, b"\xef\xbb\xbf" + b'{"nothing": 1}')
    assert re.search("Extra inputs are not permitted|Field required", error["message"])


@pytest.mark.parametrize("path", ["/extract", "/extract/batch"])
def test_half_of_a_surrogate_pair_is_answered_as_in_files_of_results(
    engine: Engine, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def submit(*_: object, **__: object) -> Done:
        return Done("\udcff.txt", text="北京天\ud83d地")

    monkeypatch.setattr(engine.extract, "submit", submit)
    data = b'{"document": "a.txt"}'
    _, body, *_ = post(engine, path, {"type": "http.request", "body": data})
    found = json.loads(body["body"])
    answer = found.get("result", found)
    assert (answer["document"], answer["text"]) == ("\udcff.txt", "北京天\ud83d地")
