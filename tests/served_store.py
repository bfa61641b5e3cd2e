"""An object store of the tests' own, in a process of its own, on the loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.request import urlopen

import pytest

_BUCKET = "bucket"


@contextmanager
def served_store() -> Iterator[dict[str, str]]:
    """The environment in which s3fs finds it; it holds one empty bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/moto-api/"):
                break
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "2",
        }
        yield environment
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def s3_bucket() -> Iterator[str]:
    """The URL of an empty bucket that a server on the loopback keeps."""
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto is not installed")
    with served_store() as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()  # of those that know another address
        s3fs.S3FileSystem().mkdir(_BUCKET)
        yield f"s3://{_BUCKET}"
        s3fs.S3FileSystem.clear_instance_cache()
