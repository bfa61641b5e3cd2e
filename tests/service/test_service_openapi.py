"""The schema is complete, and no generated request finds a hole in it."""

from __future__ import annotations

import json
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


def fuzz(service: Service, folder: Path, n_examples: int) -> None:
    ended = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json",
            "--checks", ",".join(CHECKS),
            "--phases", "examples,coverage,fuzzing", "--max-examples", str(n_examples),
            "--seed", "20", "--no-color", "--workers", "2", "--generation-database", "none",
            "--suppress-health-check", "all", "--request-timeout", "60",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
    assert service.is_ready()


def test_generated_requests_are_answered_as_the_schema_says(
    service: Service, tmp_path: Path
) -> None:
    fuzz(service, tmp_path, 5)


@pytest.mark.fuzz
def test_many_generated_requests_are_answered_as_the_schema_says(
    service: Service, tmp_path: Path
) -> None:
    fuzz(service, tmp_path, 150)
