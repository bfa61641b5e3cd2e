"""The ranges of a large file hold its documents, each once, under the ids of the whole file."""

from __future__ import annotations

import json
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from featpipe.documents import Source
from featpipe.documents.ranges import in_range, ranges_of
from featpipe.documents.source import expanded


def write_lines(path: Path, n: int) -> Source:
    lines = [json.dumps({"text": f"第{number}条" * (1 + number % 7)}) for number in range(n)]
    lines[n // 2] = ""  # a blank line counts, and is no document
    path.write_text("\n".join(lines), "utf-8")
    return Source("a.jsonl", path)


def write_members(path: Path, n: int) -> Source:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(n):
            archive.writestr(f"{number}.txt", f"第{number}条" * (number % 7))
    return Source("a.zip", path)


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("kind", ["jsonl", "ndjson", "zip"])
def test_ranges_cover_the_file_once(tmp_path: Path, kind: str, n: int, size: int) -> None:
    write = write_members if kind == "zip" else write_lines
    source = write(tmp_path / f"a.{kind}", n)
    ranges = ranges_of(source, size)
    found = [one for part in ranges for one in in_range(source, part)]
    assert found == (expanded(source) if ranges else [])
    assert all(part.stop == after.start for part, after in pairwise(ranges))
    if n == 30 and size == 40:
        assert len(ranges) > 5


def test_blocks_of_a_file_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_lines(tmp_path / "a.jsonl", 30)
    whole = ranges_of(source, 50)
    for n_bytes in (1, 3, 64):
        monkeypatch.setattr("featpipe.documents.ranges._BLOCK_BYTES", n_bytes)
        assert ranges_of(source, 50) == whole


def test_other_files_are_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("一" * 100, "utf-8")
    (tmp_path / "b.jsonl").write_text('{"number": 1}\n' * 100, "utf-8")
    (tmp_path / "c.zip").write_bytes(b"no archive" * 100)
    for name in ("a.txt", "b.jsonl", "c.zip", "missing.jsonl"):
        assert ranges_of(Source(name, tmp_path / name), 10) == []
