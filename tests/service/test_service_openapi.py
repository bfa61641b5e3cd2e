"""The schema is complete, and no generated request finds a hole in it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from service_watch import Service

ROUTES = {
    ("post", "/extract"), ("post", "/extract/batch"), ("get", "/templates"),
    ("get", "/templates/{name}"), ("post", "/templates/validate"), ("post", "/templates/reload"),
    ("post", "/search"), ("post", "/v1/embeddings"), ("get", "/v1/models"), ("get", "/healthz"),
    ("get", "/readyz"), ("get", "/metrics"), ("get", "/v1/models/{model}"), ("post", "/embed"),
    ("get", "/info"), ("post", "/rerank"), ("post", "/v1/rerank"), ("post", "/v2/rerank"),
}  # fmt: skip


CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "what_breaks_the_schema_is_refused",
)  # fmt: skip


def test_every_route_is_described_with_its_errors(service: Service) -> None:
    schema = service.client.get("/openapi.json").json()
    found = {(method, path) for path, item in schema["paths"].items() for method in item}
    assert found == ROUTES
    for method, path in found - {("get", "/healthz"), ("get", "/readyz")}:
        operation = schema["paths"][path][method]
        assert operation["description"]
        assert {"401", "413", "422", "500"} <= set(operation["responses"])
    for method, path in found:
        if method == "post" and path != "/templates/reload":
            content = schema["paths"][path][method]["requestBody"]["content"]
            assert "example" in json.dumps(content) or "$ref" in json.dumps(content)


#: A client that grants no time is told so with 504: that is no fault of the server. What breaks the
#: schema by its size alone may be refused with 413 before anybody reads it.
CONFIG = """[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "504"]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "413", "415", "422", "429"]
"""


#: Lines of JSON (/extract/batch) are nothing that can be generated from a schema. Each part is well
#: below the time after which a test counts as hanging.
PARTS = [
    ("/extract",),
    ("/v1/embeddings", "/v1/models", "/v1/models/{model}"),
    ("/embed", "/info", "/rerank", "/v1/rerank", "/v2/rerank"),
    ("/search", "/templates", "/templates/{name}", "/templates/validate", "/templates/reload"),
    ("/healthz", "/readyz", "/metrics"),
]


def fuzz(service: Service, folder: Path, paths: tuple[str, ...], n_examples: int) -> None:
    (folder / "schemathesis.toml").write_text(CONFIG)
    ended = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json",
            "--checks", ",".join(CHECKS),
            "--phases", "examples,coverage,fuzzing", "--max-examples", str(n_examples),
            "--seed", "20", "--no-color", "--generation-database", "none",
            "--workers", "1",  # threads break each other's parser in CPython 3.11
            *(word for path in paths for word in ("--include-path", path)),
            "--suppress-health-check", "all", "--request-timeout", "60",
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent),
            "SCHEMATHESIS_HOOKS": "openapi_checks",
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
    assert service.is_ready()


def test_any_bytes_as_lines_are_answered_line_by_line(service: Service) -> None:
    chance = random.Random(3)  # noqa: S311  # a mix, not a secret
    pieces = [
        b'{"text": "a"}',
        b"\n",
        b"{",
        b'"',
        b"\xff",
        b"\x00",
        b"[1]",
        b"null",
        b"\r",
        b"1e999",
    ]
    for _ in range(40):
        content = b"".join(chance.choices(pieces, k=chance.randrange(1, 12)))
        response = service.client.post("/extract/batch", content=content)
        assert response.status_code in {200, 422}
        if response.status_code == 200:
            *found, last = [json.loads(line) for line in response.text.splitlines()]
            assert last["n_lines"] == len(found)


def test_every_route_is_in_one_part() -> None:
    named = [path for part in PARTS for path in part]
    assert sorted([*named, "/extract/batch"]) == sorted(path for _, path in ROUTES)


@pytest.mark.parametrize("paths", PARTS, ids=lambda paths: paths[0])
def test_generated_requests_are_answered_as_the_schema_says(
    service: Service, tmp_path: Path, paths: tuple[str, ...]
) -> None:
    fuzz(service, tmp_path, paths, 5)


@pytest.mark.fuzz
@pytest.mark.parametrize("paths", PARTS, ids=lambda paths: paths[0])
def test_many_generated_requests_are_answered_as_the_schema_says(
    service: Service, tmp_path: Path, paths: tuple[str, ...]
) -> None:
    fuzz(service, tmp_path, paths, 150)
