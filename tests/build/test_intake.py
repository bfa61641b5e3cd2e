"""A file is hashed once, by the process that looks at it first, and never gets a wrong identity."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sentence_cache import write_documents

from featpipe.build.intake import Intake
from featpipe.build.messages import PrepareTask, UnreadFile
from featpipe.build.workers import PrepareRole
from featpipe.cache import places, tables
from featpipe.cache.places import make_preparation, read_identified
from featpipe.documents import LoadLimits, Source, find_sources, of_texts
from featpipe.documents import load as loading
from featpipe.store import Reader

LIMITS = LoadLimits()
OLD, NEW = "甲方与乙方签订合同。", "双方协商解决争议吧。"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Of a cache that holds some other document, so that files are compared with it."""
    write_documents(tmp_path / "c.h5", {"other.txt": ["别的。"]})
    with Reader(tmp_path / "c.h5") as reader:
        yield reader


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bytes of every call of ``hash_bytes``, in order."""
    calls: list[bytes] = []
    hash_bytes = loading.hash_bytes

    def count(data: bytes) -> str:
        calls.append(data)
        return hash_bytes(data)

    monkeypatch.setattr(places, "hash_bytes", count)
    monkeypatch.setattr(loading, "hash_bytes", count)
    return calls


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as left alone for a while."""
    monkeypatch.setattr(places, "_SETTLED_NS", 0)
    path = tmp_path / "a.txt"
    path.write_text(OLD, "utf-8")
    return path


def identified(sources: list[Source], reader: Reader) -> PrepareTask:
    chunk = Intake(sources, make_preparation(), reader, LIMITS).next_chunk()
    assert chunk is not None
    assert chunk.task is not None
    return chunk.task


def prepared_key(task: PrepareTask) -> tuple[bytes, str]:
    """Key and text of the one document of a task, as they would be written."""
    batch = PrepareRole(make_preparation(), LIMITS).run(task)
    rows = batch.rows[tables.DOCUMENTS]
    return bytes(rows["keys"]), bytes(rows["text"][0]).decode()  # type: ignore[arg-type]  # a plain and a ragged column


def fresh_key(source: Source) -> bytes:
    return read_identified(source, LIMITS, make_preparation())[1].key


def test_a_new_file_is_hashed_once_on_its_way(
    file: Path, reader: Reader, hashed: list[bytes]
) -> None:
    (source,) = find_sources([file])
    task = identified([source], reader)
    assert hashed == [OLD.encode()]
    key, text = prepared_key(task)
    assert (hashed, text) == ([OLD.encode()], OLD)
    assert key == fresh_key(source)


def test_a_text_at_hand_is_hashed_once(reader: Reader, hashed: list[bytes]) -> None:
    prepared_key(identified(list(of_texts([OLD])), reader))
    assert hashed == [OLD.encode()]


def test_a_file_of_a_new_cache_is_hashed_once(file: Path, hashed: list[bytes]) -> None:
    (source,) = find_sources([file])
    PrepareRole(make_preparation(), LIMITS).run(PrepareTask((UnreadFile(source),)))
    assert hashed == [OLD.encode()]


def rewrite(path: Path) -> None:
    path.write_text(NEW, "utf-8")


def rewrite_with_old_times(path: Path) -> None:
    status = path.stat()
    path.write_text(NEW, "utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_with_old_times(path: Path) -> None:
    status = path.stat()
    other = path.with_suffix(".new")
    other.write_text(NEW, "utf-8")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [rewrite, rewrite_with_old_times, replace_with_old_times])
def test_a_file_that_changes_in_between_gets_the_key_of_what_was_read(
    file: Path, reader: Reader, hashed: list[bytes], change: Callable[[Path], None]
) -> None:
    (source,) = find_sources([file])
    task = identified([source], reader)
    before = task.files[0].identity
    change(file)
    assert file.stat().st_size == len(OLD.encode())
    key, text = prepared_key(task)
    assert (text, hashed) == (NEW, [OLD.encode(), NEW.encode()])
    assert before is not None
    assert key == fresh_key(source) != before.key


def test_a_file_that_was_changed_just_now_is_hashed_again(
    file: Path, reader: Reader, hashed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another change at once could leave the same times."""
    monkeypatch.setattr(places, "_SETTLED_NS", 60_000_000_000)
    prepared_key(identified(find_sources([file]), reader))
    assert len(hashed) == 2
