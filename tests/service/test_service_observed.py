"""Metrics, logs, spans, the page, and who may come in."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from service_watch import running, wait_for
from waiting import HANG_S

from featpipe.errors import FeatpipeError, UsageError
from featpipe.service.errors import failure_of
from featpipe.service.keys import ApiKey
from featpipe.service.metrics import ServiceMetrics
from featpipe.service.middleware import RequestMiddleware
from featpipe.service.settings import ServiceSettings
from featpipe.service.tracing import Tracer

if TYPE_CHECKING:
    from service_watch import Service

KEY = "a key of the service that is long enough"


def test_head_is_answered_by_the_head_of_what_get_answers(service: Service) -> None:
    for path in ("/healthz", "/docs", "/openapi.json", "/templates/lease"):
        asked, got = service.client.head(path), service.client.get(path)
        assert (asked.status_code, asked.content) == (200, b"")
        for name in ("content-type", "content-length"):
            assert asked.headers[name] == got.headers[name]
    assert service.client.head("/extract").status_code == 405
    counted = service.client.get("/metrics").text
    assert 'featpipe_requests_total{route="/templates/{name}",status="200"}' in counted
    heads = [one for one in service.records() if one.get("method") == "HEAD"]
    assert [one["route"] for one in heads[-2:]] == ["/templates/{name}", "/extract"]


def test_metrics_are_what_prometheus_reads(service: Service) -> None:
    service.extract(text="甲方：某公司。", template="lease")
    response = service.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    counted = {
        tuple(sorted(sample.labels.items())): sample.value
        for sample in families["featpipe_requests"].samples
    }
    assert counted[("route", "/extract"), ("status", "200")] >= 1
    assert families["featpipe_request_seconds"].type == "histogram"
    assert {s.labels["lane"] for s in families["featpipe_ready"].samples} >= {"extract", "embed"}


def test_no_label_value_breaks_a_line_and_each_registry_counts_alone() -> None:
    metrics, other = ServiceMetrics(), ServiceMetrics()
    nasty = 'a"b\\c\nd} 1\nc_total 99'
    metrics.refused.labels("extract", nasty).inc(2)
    for value in (0.5, 1, 2, 9):
        metrics.batch_items.labels("extract").observe(value)
    text = generate_latest(metrics.registry).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    refused = [s for s in families["featpipe_refused"].samples if s.name.endswith("_total")]
    assert [(s.labels["reason"], s.value) for s in refused] == [(nasty, 2.0)]
    buckets = {s.labels.get("le"): s.value for s in families["featpipe_batch_items"].samples[:4]}
    assert buckets == {"1.0": 2.0, "2.0": 3.0, "4.0": 3.0, "8.0": 3.0}
    assert b"extract" not in generate_latest(other.registry)
    assert not [name for name in families if name.endswith("_created")]


def test_every_line_of_the_log_is_an_object_with_the_request_in_it(service: Service) -> None:
    service.client.get("/templates", headers={"X-Request-Id": "find-me"})
    found: list[dict[str, object]] = []

    def is_told() -> bool:  # the line is written when the answer is on its way
        found[:] = [one for one in service.records() if one.get("request_id") == "find-me"]
        return bool(found)

    wait_for(is_told, "the line of the request")
    assert len(found) == 1
    assert found[0]["route"] == "/templates"
    assert found[0]["status"] == 200
    assert {"time", "level", "logger", "message", "seconds"} <= set(found[0])


def test_spans_name_the_route_and_continue_the_callers_trace(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with running(built, is_traced=True) as (service, _):
        headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        assert service.client.get("/templates/lease", headers=headers).status_code == 200
        name = '"name": "GET /templates/{name}"'  # its span ends when the answer is on its way
        wait_for(lambda: name in service.log.read_text("utf-8"), "the span of the request")
        log = service.log.read_text("utf-8")
    assert f"0x{trace}" in log


def test_the_time_in_the_queue_and_with_workers_is_told_below_the_request(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    with running(built, is_traced=True) as (service, process):
        assert service.extract(text="甲方：某公司。", template="lease").status_code == 200
        process.terminate()  # what is told when the answer is on its way is told by then
        assert process.wait(HANG_S) == 0
        spans = {span["name"]: span for span in spans_in(service.log.read_text("utf-8"))}
    request, queue, run = (spans[n] for n in ("POST /extract", "extract queue", "extract run"))
    for span in (queue, run):
        assert span["parent_id"] == request["context"]["span_id"]
        assert request["start_time"] <= span["start_time"] <= span["end_time"]
    assert run["start_time"] == queue["end_time"]
    assert run["attributes"]["featpipe.worker"].startswith("extract-")
    assert run["attributes"]["featpipe.batch_items"] == 1
    assert run["attributes"]["featpipe.worker_seconds"] > 0


def spans_in(log: str) -> list[dict[str, Any]]:
    """The objects among the lines of a log whose first lines are braces."""
    found = []
    decoder = json.JSONDecoder()
    at = log.find("{\n")
    while at >= 0:
        span, end = decoder.raw_decode(log, at)
        found.append(span)
        at = log.find("{\n", end)
    return found


def test_the_page_is_one_file_that_may_talk_to_this_service_only(service: Service) -> None:
    page = service.client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert "http://" not in page.text.replace("http://www.w3.org/", "")


# ---- who may come in


def ask(settings: ServiceSettings, path: str, headers: dict[str, str]) -> httpx.Response:
    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401, ARG001  # ASGI's own
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    guarded = RequestMiddleware(app, settings, ServiceMetrics(), Tracer(is_on=False), bool)

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=guarded)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {KEY}"}, 200),
        ({"X-API-Key": KEY}, 200),
        ({"Authorization": f"bearer {KEY}"}, 200),
        ({"Authorization": f"Bearer {KEY}x"}, 401),
        ({"Authorization": f"Basic {KEY}"}, 401),
        ({"X-API-Key": KEY[:-1]}, 401),
        ({"X-API-Key": "\xe4" * 20}, 401),
    ],
)
def test_a_key_is_asked_for(headers: dict[str, str], status: int) -> None:
    settings = ServiceSettings(Path("c.h5"), keys=(ApiKey("key", KEY),), host="0.0.0.0")  # noqa: S104  # never bound here
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    response = ask(settings, "/templates", encoded)  # type: ignore[arg-type]
    assert response.status_code == status
    assert (response.headers.get("www-authenticate") == "Bearer") == (status == 401)
    assert ask(settings, "/healthz", {}).status_code == 200
    assert KEY not in repr(settings)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200), ("localhost", 200), ("[::1]:80", 200), ("127.9.9.9", 200),
        ("evil.example", 403), ("localhost.evil.example", 403), ("my.name", 200), ("", 403),
        ("My.Name:80", 200), ("OTHER.name", 200),
    ],
)  # fmt: skip
def test_without_a_key_no_foreign_name_leads_here(host: str, status: int) -> None:
    settings = ServiceSettings(Path("c.h5"), allowed_hosts=("my.name", "Other.Name"))
    assert ask(settings, "/templates", {"Host": host}).status_code == status


def test_a_service_for_everybody_needs_a_key_or_the_word() -> None:
    for host in ("0.0.0.0", "10.0.0.1", "example.com", "::"):  # noqa: S104  # never bound here
        with pytest.raises(UsageError, match="no key"):
            ServiceSettings(Path("c.h5"), host=host)
        assert ServiceSettings(Path("c.h5"), host=host, is_insecure=True).host == host
    for host in ("127.0.0.1", "::1", "localhost"):
        assert ServiceSettings(Path("c.h5"), host=host).is_local


def test_the_command_refuses_what_cannot_work(built: Path) -> None:
    def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "featpipe", "serve", *arguments],
            capture_output=True, text=True, check=False,
            env={k: v for k, v in os.environ.items() if k != "FEATPIPE_API_KEY"},
        )  # fmt: skip

    cache = str(built / "c.h5")
    open_to_all = serve("--cache", cache, "--host", "0.0.0.0")  # noqa: S104  # it is refused
    assert open_to_all.returncode == 2
    assert "--insecure" in open_to_all.stderr
    missing = serve("--cache", str(built / "none.h5"))
    assert missing.returncode == 3
    assert "Traceback" not in missing.stderr
    bad = serve("--cache", cache, "--templates", str(built / "nowhere"))
    assert bad.returncode == 2


def kinds(kind: type[FeatpipeError]) -> list[type[FeatpipeError]]:
    return [kind, *(k for child in kind.__subclasses__() for k in kinds(child))]


@pytest.mark.parametrize("kind", kinds(FeatpipeError), ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_has_a_status_and_tells_no_path(kind: type[FeatpipeError]) -> None:
    failure = failure_of(kind("what\n--- last words ---\n/home/secret/stack.py"))
    assert 400 <= failure.status < 600
    content = json.dumps(failure.content("id"))
    assert "secret" not in content
    assert failure.content("id")["error"]["code"]  # type: ignore[index]
