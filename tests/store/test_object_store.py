"""Files of a folder cache in an object store: whole or absent, never replaced, fetched once."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from served_store import s3_bucket

from featpipe.errors import FeatpipeError, MissingExtra, StoreUnreachable, UsageError, WriteFailed
from featpipe.store.fetched import FetchedFiles
from featpipe.store.object_store import ObjectStore, is_url

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

__all__ = ["s3_bucket"]  # a fixture


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, s3_bucket: str) -> ObjectStore:
    root = s3_bucket if request.param == "s3" else "memory://bucket"
    return ObjectStore(f"{root}/{uuid4().hex}/corpus.fp")


@pytest.fixture
def memory() -> ObjectStore:
    return ObjectStore(f"memory://bucket/{uuid4().hex}")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://bucket/corpus.fp", True),
        ("gs://bucket/corpus.fp/", True),
        ("memory://a", True),
        ("file:///a/b", False),
        ("corpus.fp", False),
        ("/a://b", False),
        ("./s3:/bucket", False),
    ],
)
def test_urls_are_told_from_paths(place: str, expected: bool) -> None:
    assert is_url(place) is expected


def test_a_put_file_is_listed_found_read_and_fetched(store: ObjectStore, tmp_path: Path) -> None:
    assert store.list() == {}
    assert not store.exists("shards/0a.h5")
    local = tmp_path / "made.h5"
    local.write_bytes(os.urandom(100_000))
    assert store.put_new("shards/0a.h5", local)
    assert store.put_new("cache.json", b"{}")
    assert {name: found.n_bytes for name, found in store.list().items()} == {
        "shards/0a.h5": 100_000,
        "cache.json": 2,
    }
    assert list(store.list("shards")) == ["shards/0a.h5"]
    assert store.find("shards/0a.h5") == store.list()["shards/0a.h5"]
    assert store.find("shards") is None  # a folder is not a file
    store.fetch("shards/0a.h5", tmp_path / "back.h5")
    assert (tmp_path / "back.h5").read_bytes() == local.read_bytes() == store.read("shards/0a.h5")


def test_a_name_that_is_taken_keeps_its_bytes(store: ObjectStore, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"second")
    assert store.put_new("shards/0a.h5", b"first")
    assert not store.put_new("shards/0a.h5", other)
    assert not store.put_new("shards/0a.h5", b"second")
    assert store.read("shards/0a.h5") == b"first"
    assert store.is_conditional("shards/0a.h5")


class Unconditional:
    """A store without conditional writes: it answers such a request with an error."""

    def __init__(self, files: fsspec.AbstractFileSystem) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def pipe_file(self, path: str, content: bytes, mode: str) -> None:
        if mode == "create":
            raise OSError("A header you provided implies functionality that is: NotImplemented")
        self._files.pipe_file(path, content)


def test_without_conditional_writes_a_look_comes_first(
    memory: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_files", Unconditional(memory._files))
    assert memory.put_new("cache.json", b"first")
    assert not memory.put_new("cache.json", b"second")
    assert memory.read("cache.json") == b"first"
    assert not memory.is_conditional("cache.json")


def test_of_two_processes_one_puts_a_name(s3_bucket: str) -> None:
    url = f"{s3_bucket}/{uuid4().hex}"
    code = (
        "import sys; from featpipe.store.object_store import ObjectStore\n"
        "store = ObjectStore(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
        "print(store.put_new('cache.json', sys.argv[2].encode()))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, url, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    answers = [process.communicate("\n")[0].strip() for process in started]
    assert sorted(answers) == ["False", "True"]
    assert ObjectStore(url).read("cache.json") == str(answers.index("True")).encode()


def test_a_store_crosses_processes_as_its_url(memory: ObjectStore) -> None:
    memory.put_new("cache.json", b"{}")
    assert pickle.loads(pickle.dumps(memory)).read("cache.json") == b"{}"  # noqa: S301 - our own bytes


def test_a_store_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    s3fs.S3FileSystem.clear_instance_cache()  # of those that know another address
    try:
        store = ObjectStore("s3://bucket/corpus.fp")
        with pytest.raises(
            StoreUnreachable, match=f"{store.url} cannot be given cache.json: Could"
        ):
            store.put_new("cache.json", b"{}")
        with pytest.raises(StoreUnreachable, match=f"{store.url} cannot be listed: Could"):
            store.list()
    finally:
        s3fs.S3FileSystem.clear_instance_cache()


def test_a_bucket_that_does_not_exist_is_named(s3_bucket: str) -> None:
    store = ObjectStore(f"{s3_bucket}-of-nobody/corpus.fp")
    with pytest.raises(StoreUnreachable, match=r"of-nobody/corpus.fp cannot be given cache.json"):
        store.put_new("cache.json", b"{}")


@pytest.mark.parametrize(
    ("url", "expected", "hint"),
    [
        ("nothing://bucket/a", UsageError, "such as s3://"),
        ("oci://bucket/a", MissingExtra, r"featpipe\[objectstore\]"),
    ],
)
def test_stores_that_cannot_be_used_name_the_next_step(
    url: str, expected: type[FeatpipeError], hint: str
) -> None:
    with pytest.raises(expected, match=hint):
        ObjectStore(url)


# ---- local copies


def test_a_file_is_fetched_once_and_whole(store: ObjectStore, tmp_path: Path) -> None:
    store.put_new("shards/0a.h5", b"rows")
    files = FetchedFiles(store, tmp_path)
    path = files.path("shards/0a.h5")
    assert path.read_bytes() == b"rows"
    assert path.name == "0a.h5"
    before = path.stat()
    again = FetchedFiles(store, tmp_path).path("shards/0a.h5")
    assert (again, again.stat().st_ino) == (path, before.st_ino)


def test_copies_of_two_urls_do_not_mix(tmp_path: Path) -> None:
    stores = [ObjectStore(f"memory://bucket/{uuid4().hex}") for _ in range(2)]
    for store, content in zip(stores, (b"a", b"b"), strict=True):
        store.put_new("cache.json", content)
    read = [FetchedFiles(store, tmp_path).path("cache.json").read_bytes() for store in stores]
    assert read == [b"a", b"b"]


def test_what_is_published_later_is_found_after_a_refresh(
    memory: ObjectStore, tmp_path: Path
) -> None:
    files = FetchedFiles(memory, tmp_path)
    memory.put_new("shards/0a.1.h5", b"more")
    with pytest.raises(FileNotFoundError, match=r"0a\.1\.h5"):
        files.path("shards/0a.1.h5")
    files.refresh()
    assert files.path("shards/0a.1.h5").read_bytes() == b"more"


def test_a_folder_built_anew_at_the_same_url_is_fetched_anew(
    store: ObjectStore, tmp_path: Path
) -> None:
    store.put_new("cache.json", b"old")
    old = FetchedFiles(store, tmp_path).path("cache.json").open("rb")
    store._files.rm_file(store._path("cache.json"))
    store.put_new("cache.json", b"new")
    assert FetchedFiles(store, tmp_path).path("cache.json").read_bytes() == b"new"
    with old:  # an open reader keeps its bytes
        assert old.read() == b"old"


@pytest.mark.parametrize("torn", [b"", b"row"])
def test_a_copy_of_another_length_is_fetched_again(
    memory: ObjectStore, tmp_path: Path, torn: bytes
) -> None:
    memory.put_new("shards/0a.h5", b"rows")
    files = FetchedFiles(memory, tmp_path)
    files.path("shards/0a.h5").write_bytes(torn)
    assert files.path("shards/0a.h5").read_bytes() == b"rows"


def test_a_file_that_comes_short_is_refused_and_leaves_nothing(
    memory: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.put_new("shards/0a.h5", b"rows")
    files = FetchedFiles(memory, tmp_path)
    monkeypatch.setattr(memory, "fetch", lambda _, to: to.write_bytes(b"ro"))
    with pytest.raises(StoreUnreachable, match="came with 2 bytes, not the 4 listed"):
        files.path("shards/0a.h5")
    monkeypatch.undo()
    assert [p.name for p in (files.folder / "shards").iterdir()] == [".0a.h5.lock"]
    assert files.path("shards/0a.h5").read_bytes() == b"rows"


def test_a_full_disk_names_the_folder(
    memory: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.put_new("shards/0a.h5", b"rows")

    def fill(_: str, to: Path) -> None:
        raise OSError(28, "No space left on device", str(to))

    monkeypatch.setattr(memory, "fetch", fill)
    with pytest.raises(WriteFailed, match="No space left on device"):
        FetchedFiles(memory, tmp_path).path("shards/0a.h5")


def test_a_process_killed_while_it_fetches_leaves_no_copy(s3_bucket: str, tmp_path: Path) -> None:
    store = ObjectStore(f"{s3_bucket}/{uuid4().hex}")
    store.put_new("shards/0a.h5", b"rows")
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from featpipe.store.fetched import FetchedFiles\n"
        "from featpipe.store.object_store import ObjectStore\n"
        "files = FetchedFiles(ObjectStore(sys.argv[1]), sys.argv[2])\n"
        "def fetch(name, to):\n"
        "    Path(to).write_bytes(b'ro'); os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.store.fetch = fetch\n"
        "files.path('shards/0a.h5')"
    )
    done = subprocess.run([sys.executable, "-c", code, store.url, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    files = FetchedFiles(store, tmp_path)
    names = [path.name for path in (files.folder / "shards").iterdir()]
    assert "0a.h5" not in names
    assert any(name.startswith(".0a.h5-") for name in names)
    assert files.path("shards/0a.h5").read_bytes() == b"rows"
    names = sorted(path.name for path in (files.folder / "shards").iterdir())
    assert names == [".0a.h5.lock", ".0a.h5.of", "0a.h5"]


def test_a_large_file_that_a_killed_process_was_putting_is_put_whole_later(
    s3_bucket: str, tmp_path: Path
) -> None:
    url = f"{s3_bucket}/{uuid4().hex}"
    large = tmp_path / "large.h5"
    with large.open("wb") as file:
        file.truncate(101 << 20)
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from featpipe.store.object_store import ObjectStore\n"
        "store = ObjectStore(sys.argv[1]); call = type(store._files)._call_s3\n"
        "async def until_joined(self, method, *a, **k):\n"
        "    if method == 'complete_multipart_upload': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return await call(self, method, *a, **k)\n"
        "type(store._files)._call_s3 = until_joined\n"
        "store.put_new('shards/0a.h5', Path(sys.argv[2]))"
    )
    done = subprocess.run([sys.executable, "-c", code, url, str(large)], check=False)
    assert done.returncode == -signal.SIGKILL
    store = ObjectStore(url)
    assert store.list() == {}
    assert store.put_new("shards/0a.h5", large)  # of several parts that the store joins
    assert store.find("shards/0a.h5").n_bytes == 101 << 20
    assert not store.put_new("shards/0a.h5", large)
