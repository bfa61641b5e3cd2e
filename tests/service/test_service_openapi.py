"""The schema is complete, and no generated request finds a hole in it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from service_watch import Service

ROUTES = {
    ("post", "/extract"), ("post", "/extract/batch"), ("get", "/templates"),
    ("get", "/templates/{name}"), ("post", "/templates/validate"), ("post", "/templates/reload"),
    ("post", "/search"), ("post", "/v1/embeddings"), ("get", "/v1/models"), ("get", "/healthz"),
    ("get", "/readyz"), ("get", "/metrics"),
}  # fmt: skip


CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance",
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


#: A client that grants no time is told so with 504: that is no fault of the server.
CONFIG = '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "504"]\n'


def fuzz(service: Service, folder: Path, n_examples: int) -> None:
    (folder / "schemathesis.toml").write_text(CONFIG)
    ended = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json",
            "--checks", ",".join(CHECKS),
            "--phases", "examples,coverage,fuzzing", "--max-examples", str(n_examples),
            "--seed", "20", "--no-color", "--workers", "2", "--generation-database", "none",
            "--exclude-path", "/extract/batch",  # lines of JSON are nothing it can generate
            "--suppress-health-check", "all", "--request-timeout", "60",
        ],
        cwd=folder,
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


def test_generated_requests_are_answered_as_the_schema_says(
    service: Service, tmp_path: Path
) -> None:
    fuzz(service, tmp_path, 5)


@pytest.mark.fuzz
def test_many_generated_requests_are_answered_as_the_schema_says(
    service: Service, tmp_path: Path
) -> None:
    fuzz(service, tmp_path, 150)
