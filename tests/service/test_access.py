"""Who may call what, from which pages, and over TLS; the page of the API."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import ssl
import subprocess
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from service_watch import wait_for
from waiting import HANG_S, free_port

from featpipe.cli.main import featpipe as featpipe_command
from featpipe.errors import UsageError
from featpipe.service.app import create_app
from featpipe.service.engine import Engine
from featpipe.service.keys import RIGHTS, ApiKey, Right, load_keys, needed_right
from featpipe.service.server import Server
from featpipe.service.settings import ServiceSettings

SECRET = "0123456789abcdef"  # noqa: S105  # of these tests
KEYS = tuple(ApiKey(right, f"{right}-{SECRET}", frozenset({right})) for right in RIGHTS)


@pytest.fixture(scope="module")
def engine(built: Path, encoder_folder: Path) -> Engine:
    """Never started: what it answers needs no worker."""
    settings = ServiceSettings(
        built / "c.h5", built / "templates", str(encoder_folder), "none",
        keys=KEYS, cors_origins=("https://app.example",), is_review=True, devices=("cpu",),
    )  # fmt: skip
    return Engine(settings)


def ask(engine: Engine, method: str, path: str, **options: object) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **options)  # type: ignore[arg-type]

    return asyncio.run(call())


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}-{SECRET}"}


#: Of everything that needs more than ``read``.
MORE: dict[str, Right] = {
    "/extract": "extract", "/extract/batch": "extract",
    "/templates/validate": "extract", "/templates/reload": "extract",
    **dict.fromkeys([f"/review/{name}" for name in (
        "queue", "document", "candidates", "corrections", "changes", "accept")], "review"),
}  # fmt: skip


def test_every_route_needs_one_right(engine: Engine) -> None:
    schema = ask(engine, "GET", "/openapi.json", headers=bearer("read")).json()
    for path, item in schema["paths"].items():
        needed = needed_right(path)
        assert needed == MORE.get(path, "read"), path
        if path in {"/healthz", "/readyz"}:
            continue
        for method in item:
            for right in RIGHTS:
                asked = path.replace("{name}", "lease").replace("{model}", "tiny")
                if right == needed:
                    continue
                refused = ask(engine, method, asked, headers=bearer(right), json={})
                assert (refused.status_code, refused.json()["error"]["code"]) == (
                    403, "missing_right",
                )  # fmt: skip
                assert needed in refused.json()["error"]["message"]
            assert ask(engine, method, asked, json={}).status_code == 401
    assert ask(engine, "GET", "/v1/models", headers=bearer("read")).status_code == 200
    invalid = ask(engine, "POST", "/templates/validate", headers=bearer("extract"), json={})
    assert invalid.status_code == 422  # it came in


def test_the_log_names_the_caller_and_never_the_key(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ask(engine, "GET", "/info", headers=bearer("read"))
    ask(engine, "GET", "/info", headers={"X-API-Key": f"other-{SECRET}"})
    records = [record for record in caplog.records if record.name == "featpipe.access"]
    assert [getattr(record, "caller", None) for record in records] == ["read", None]
    assert SECRET not in "".join(str(record.__dict__) for record in caplog.records)
    assert SECRET not in repr(engine.settings) + repr(KEYS)


def test_keys_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEATPIPE_API_KEY", raising=False)
    assert load_keys(None) == ()
    monkeypatch.setenv("FEATPIPE_API_KEY", f"{SECRET} with spaces\n")
    assert load_keys(None) == (ApiKey("key", f"{SECRET} with spaces"),)
    file = tmp_path / "keys"
    file.write_text(f"# of us\nanna:read,extract,review:{SECRET}:1\n\ncrawler:extract:{SECRET}2\n")
    anna, crawler = load_keys(file)
    assert (anna.name, anna.secret, anna.rights) == ("anna", f"{SECRET}:1", frozenset(RIGHTS))
    assert (crawler.name, crawler.rights) == ("crawler", {"extract"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hunter2", "16 printable"),
        ("", "there is no key"),
        (f"anna:read:{SECRET}hunter2\n{SECRET}hunter2", "is not NAME:RIGHTS:KEY"),
        (f"anna:write:{SECRET}hunter2", "the rights of anna"),
        (f"anna::{SECRET}hunter2", "the rights of anna"),
        ("anna:read:hunter2", "16 printable"),
        (f"a:read:{SECRET}hunter2\na:extract:{SECRET}", "two keys of one name"),
        (f"a:read:{SECRET}hunter2\nb:extract:{SECRET}hunter2", "one key twice"),
    ],
)
def test_a_mistake_among_keys_is_told_without_the_key(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        load_keys(file)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("origin", ["https://app.example", "https://evil.example"])
def test_pages_of_named_origins_may_ask(engine: Engine, origin: str) -> None:
    is_named = origin == "https://app.example"
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    before = ask(engine, "OPTIONS", "/v1/embeddings", headers=asked)
    assert before.status_code == (200 if is_named else 400)
    refused = ask(engine, "GET", "/info", headers={"Origin": origin})
    answered = ask(engine, "GET", "/info", headers={"Origin": origin, **bearer("read")})
    for answer in (refused, answered):  # a page reads why it was refused, too
        allowed = answer.headers.get("access-control-allow-origin")
        assert allowed == (origin if is_named else None)
    assert (refused.status_code, answered.status_code) == (401, 200)


def test_no_page_may_ask_unless_it_is_said(built: Path) -> None:
    for origin in ("app.example", "https://app.example/", "null"):
        with pytest.raises(UsageError, match="is not an origin"):
            ServiceSettings(built / "c.h5", cors_origins=(origin,))
    with pytest.raises(UsageError, match="every origin"):
        ServiceSettings(built / "c.h5", cors_origins=("*",))
    assert ServiceSettings(built / "c.h5", cors_origins=("*",), keys=KEYS).cors_origins == ("*",)


def test_the_page_of_the_api_has_every_route_and_loads_nothing(engine: Engine) -> None:
    answer = ask(engine, "GET", "/docs")
    assert answer.status_code == 200
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = answer.text
    assert not re.search(r"<(script|link|img|iframe)|https?://|\btiny\b", page)
    schema = ask(engine, "GET", "/openapi.json", headers=bearer("read")).json()
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            assert f'<details id="{method}{path}">' in page
            for one in operation.get("parameters", ()):
                assert f"<code>{one['name']}</code>" in page
    for body in ("ExtractBody", "EmbeddingsBody", "RerankBody", "TeiRerankBody", "SearchBody"):
        for name in schema["components"]["schemas"].get(body, {}).get("properties", {}):
            assert f"<td><code>{name}</code>" in page, (body, name)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


class WithoutSignals(Server):
    """Runs in a thread of the tests."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_connections_are_https_with_a_certificate(
    built: Path, tmp_path: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path)
    port = free_port()
    settings = ServiceSettings(
        built / "c.h5", model=str(encoder_folder), ner="none", port=port,
        tls_cert=certificate, tls_key=key,
    )  # fmt: skip
    engine = Engine(settings)
    monkeypatch.setattr(engine, "start", lambda: None)  # no worker is needed
    server = WithoutSignals(engine)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive(), "the start")
        context = ssl.create_default_context(cafile=str(certificate))
        url = f"https://127.0.0.1:{port}"
        with httpx.Client(base_url=url, verify=context, trust_env=False, timeout=HANG_S) as web:
            assert web.get("/v1/models").status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_a_certificate_that_cannot_be_used_is_refused_at_once(built: Path, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:hunter2", "-out", locked],
        check=True, capture_output=True,
    )  # fmt: skip
    for given in (locked, certificate, tmp_path / "none.pem"):
        with pytest.raises(UsageError, match="TLS cannot use") as caught:
            ServiceSettings(built / "c.h5", tls_cert=certificate, tls_key=given)
        assert given.name in str(caught.value)
    asked = ["serve", "--cache", str(built / "c.h5"), "--tls-cert", str(certificate)]
    done = CliRunner().invoke(featpipe_command, asked, catch_exceptions=True)
    assert isinstance(done.exception, UsageError)
    assert "needs its key" in str(done.exception)
