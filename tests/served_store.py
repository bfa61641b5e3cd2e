"""An object store of the tests' own, in a process of its own, on the loopback."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.request import urlopen

import pytest
from waiting import free_port

_BUCKET = "bucket"


@contextmanager
def served_store() -> Iterator[dict[str, str]]:
    """The environment in which s3fs finds it; it holds one empty bucket."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/moto-api/"):
                break
            time.sleep(0.05)
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
