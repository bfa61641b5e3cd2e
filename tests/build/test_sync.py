"""Ids in a cache stay, moved folders are not doubled, and with --sync what is gone leaves."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from featpipe import Cache, Pipeline, RunReport
from featpipe.build.departures import Addresses
from featpipe.cache import tables
from featpipe.cache.places import source_rows
from featpipe.documents import Source, of_texts
from featpipe.errors import MissingDocuments, UsageError
from featpipe.settings import BuildSettings
from featpipe.store import Writer

Build = Callable[..., RunReport]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("A/x.txt", "A/sub/y.txt", "B/x.txt"):
        path = tmp_path / "one" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"文件{name}的内容。", "utf-8")
    return tmp_path / "one"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "c.h5"


@pytest.fixture
def build(cache: Path, encoder_folder: Path) -> Build:
    def run(*paths: Path | str, sync: bool = False, **options: object) -> RunReport:
        settings = BuildSettings(levels=("sentence",))
        with Pipeline(
            cache, encoder_folder, "none", devices=["cpu"], settings=settings
        ) as pipeline:
            return pipeline.build(paths, sync=sync, **options)  # type: ignore[arg-type]  # by name

    return run


def held(cache: Path) -> dict[str, str]:
    with Cache.open(cache) as opened:
        return {document.id: document.path for document in opened.documents()}


ALL = {"A/sub/y.txt", "A/x.txt", "B/x.txt"}


def test_the_same_documents_have_the_same_ids_in_any_order(
    place: Path, cache: Path, build: Build
) -> None:
    build(place / "B")
    assert set(held(cache)) == {"B/x.txt"}
    build(place / "A", place / "B")
    assert set(held(cache)) == ALL
    build(place / "A" / "sub")
    build(place / "B" / "x.txt")
    assert set(held(cache)) == ALL


def test_another_folder_of_the_same_name_does_not_take_an_id(
    place: Path, cache: Path, build: Build
) -> None:
    build(place / "A")
    other = place.parent / "two" / "A"
    other.mkdir(parents=True)
    (other / "x.txt").write_text("另一份。", "utf-8")
    for _ in range(2):
        build(other)
        assert held(cache) == {
            "A/x.txt": str(place / "A/x.txt"),
            "A/sub/y.txt": str(place / "A/sub/y.txt"),
            "two/A/x.txt": str(other / "x.txt"),
        }


def test_a_link_and_another_working_folder_add_nothing(
    place: Path, cache: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(place / "A")
    before = held(cache)
    (place.parent / "link").symlink_to(place / "A", target_is_directory=True)
    build(place.parent / "link")
    monkeypatch.chdir(place / "B")
    build("../A")
    assert held(cache) == before


def test_a_folder_moved_with_its_cache_is_not_doubled(
    place: Path, cache: Path, build: Build
) -> None:
    build(place / "A", place / "B")
    moved = place.parent / "elsewhere"
    place.rename(moved)
    report = build(moved / "A", moved / "B")
    assert (report.n_encoded, report.n_departed) == (0, 3)
    assert held(cache) == {name: str(moved / name) for name in ALL}


def test_a_renamed_folder_is_doubled_until_the_cache_follows(
    place: Path, cache: Path, build: Build
) -> None:
    build(place / "A")
    (place / "A").rename(place / "C")
    build(place / "C")
    assert len(held(cache)) == 4
    assert build(place / "C", sync=True).n_departed == 2
    assert set(held(cache)) == {"C/x.txt", "C/sub/y.txt"}


def test_what_is_gone_leaves_from_the_folders_given_only(
    place: Path, cache: Path, build: Build
) -> None:
    build(place / "A", place / "B")
    (place / "A" / "x.txt").unlink()
    (place / "B" / "x.txt").unlink()
    assert build(place / "A").n_departed == 0
    report = build(place / "A", sync=True)
    assert (report.n_departed, "1 left" in report.summary()) == (1, True)
    assert set(held(cache)) == {"A/sub/y.txt", "B/x.txt"}


def test_what_was_not_read_this_time_stays(place: Path, cache: Path, build: Build) -> None:
    build(place / "A")
    (place / "A" / "x.txt").write_bytes(bytes(range(256)) * 40)
    report = build(place / "A", sync=True, exclude=["sub"])
    assert (len(report.quarantined), report.n_departed) == (1, 0)
    assert set(held(cache)) == {"A/sub/y.txt", "A/x.txt"}


def test_a_folder_that_is_missing_or_empty_is_refused(
    place: Path, cache: Path, build: Build
) -> None:
    build(place / "A", place / "B")
    shutil.rmtree(place / "A")
    with pytest.raises(MissingDocuments, match="does not exist"):
        build(place / "A", place / "B", sync=True)
    (place / "A").mkdir()
    with pytest.raises(UsageError, match="holds no document now, and the cache has 2 from there"):
        build(place / "A", place / "B", sync=True)
    assert set(held(cache)) == ALL


def test_records_and_members_that_are_gone_leave(place: Path, cache: Path, build: Build) -> None:
    lines = [json.dumps({"id": name, "text": f"记录{name}。"}) for name in "甲乙丙"]
    (place / "A" / "r.jsonl").write_text("\n".join(lines), "utf-8")
    with zipfile.ZipFile(place / "A" / "z.zip", "w") as archive:
        for name in "12":
            archive.writestr(f"{name}.txt", f"成员{name}。")
    build(place / "A")
    assert {"A/r.jsonl/甲", "A/z.zip/1.txt", "A/z.zip/2.txt"} < set(held(cache))
    (place / "A" / "r.jsonl").write_text("\n".join(lines[1:]), "utf-8")
    with zipfile.ZipFile(place / "A" / "z.zip", "w") as archive:
        archive.writestr("2.txt", "成员2。")
    build(place / "A", sync=True)
    with Cache.open(cache) as opened:
        texts = {d.id: d.text for d in opened.documents()}
    inside = {name: text for name, text in texts.items() if "jsonl" in name or "zip" in name}
    assert inside == {
        "A/r.jsonl/乙": "记录乙。",
        "A/r.jsonl/丙": "记录丙。",
        "A/z.zip/2.txt": "成员2。",
    }


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_record_in_front_moves_no_other(
    place: Path, cache: Path, build: Build, *, has_ids: bool
) -> None:
    def write(names: str) -> None:
        records = [{"id": name} if has_ids else {} for name in names]
        lines = [
            json.dumps(record | {"text": f"记录{name}。"})
            for record, name in zip(records, names, strict=True)
        ]
        (place / "r.jsonl").write_text("\n".join(lines), "utf-8")

    def texts() -> dict[str, str]:
        with Cache.open(cache) as opened:
            return {d.path: d.text for d in opened.documents()}

    write("甲乙丙乙")
    build(place / "r.jsonl")
    before = texts()
    assert sorted(before.values()) == ["记录丙。", "记录乙。", "记录乙。", "记录甲。"]
    with Cache.open(cache) as opened:
        n_rows = opened.reader.table(tables.SOURCES).n_rows
    write("丁甲乙丙乙")
    report = build(place / "r.jsonl")
    assert (report.n_unchanged, report.n_loaded) == (4, 5)
    after = texts()
    assert before.items() <= after.items()
    assert "记录丁。" in after.values()
    assert len(after) == 5
    if has_ids:
        with Cache.open(cache) as opened:  # the new one, and the second 乙: its id has the line
            assert opened.reader.table(tables.SOURCES).n_rows == n_rows + 2


def test_records_that_a_cache_has_by_their_offset_are_known(
    place: Path, cache: Path, build: Build
) -> None:
    lines = [json.dumps({"id": name, "text": f"记录{name}。"}) for name in "甲乙丙"]
    (place / "r.jsonl").write_text("\n".join(lines), "utf-8")
    build(place / "r.jsonl")
    with Cache.open(cache) as opened:
        documents = list(opened.documents())
        opened.forget(*(document.id for document in documents))
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(3)]
    old = [str(place / f"r.jsonl@{start}") for start in starts]
    with Writer.open(cache) as writer:
        sources = [Source(d.id, Path(path)) for d, path in zip(documents, old, strict=True)]
        rows = source_rows(sources, [d.key for d in documents])
        writer.table(tables.SOURCES, tables.sources_spec()).append(rows)
        writer.commit()
    with Cache.open(cache) as opened:
        assert opened.document(old[1]).text == "记录乙。"
    report = build(place / "r.jsonl")
    assert (report.n_unchanged, report.n_encoded, report.n_departed) == (3, 0, 3)
    assert held(cache).keys() == {d.id for d in documents}
    assert build(place / "r.jsonl").n_departed == 0


def test_texts_at_hand_stay(
    place: Path, cache: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    build(*of_texts([("note", "一段文字。")]))
    monkeypatch.chdir(place / "A")
    build(*of_texts([("note", "一段文字。")]))
    build(place / "A", sync=True)
    assert set(held(cache)) == {"note", "A/x.txt", "A/sub/y.txt"}


@pytest.mark.parametrize("name", ["<a>", "x.txt!3", "x.txt@7", "坏\udcff!3"])
def test_a_file_named_as_texts_and_members_are_leaves_as_any_other(
    name: str, place: Path, cache: Path, build: Build
) -> None:
    (place / "A" / name).write_text("另一份文件。", "utf-8")
    build(place / "A", *of_texts([("a", "一段文字。")]))
    (place / "A" / name).unlink()
    assert build(place / "A", sync=True).n_departed == 1
    assert set(held(cache)) == {"a", "A/x.txt", "A/sub/y.txt"}


def test_the_ids_of_an_old_cache_are_found_and_stay(place: Path, cache: Path, build: Build) -> None:
    build(place / "A")
    with Cache.open(cache) as opened:
        documents = list(opened.documents())
    old = {d.path: Path(d.path).relative_to(place / "A").as_posix() for d in documents}
    with Writer.open(cache) as writer:
        sources = [Source(old[d.path], Path(d.path)) for d in documents]
        log = writer.table(tables.SOURCES, tables.sources_spec())
        log.append(source_rows(sources, [d.key for d in documents]))
        writer.commit()
    assert set(held(cache)) == {"x.txt", "sub/y.txt"}
    (place / "A" / "new.txt").write_text("新的。", "utf-8")
    assert build(place / "A").n_encoded == 1
    assert set(held(cache)) == {"x.txt", "sub/y.txt", "A/new.txt"}
    with Cache.open(cache) as opened:
        assert opened.document("sub/y.txt").path == str(place / "A/sub/y.txt")
        assert opened.document("new.txt").id == "A/new.txt"


def test_a_cache_and_results_among_the_documents_are_passed_over(
    place: Path, cache: Path, build: Build
) -> None:
    shutil.copy(place / "A" / "x.txt", place / "doc.txt")
    build(place / "A")
    shutil.copy(cache, place / "copy.bin")
    report = build(place)
    assert report.is_complete
    assert [note for note in report.notes if "featpipe wrote" in note] == [
        "1 file that featpipe wrote was passed over (a cache)"
    ]


def test_a_dry_run_names_what_would_leave(
    place: Path, cache: Path, build: Build, encoder_folder: Path
) -> None:
    build(place / "A")
    (place / "A" / "x.txt").unlink()
    settings = BuildSettings(levels=("sentence",))
    with Pipeline(cache, encoder_folder, "none", devices=["cpu"], settings=settings) as pipeline:
        found = pipeline.dry_run(place / "A", sync=True)
    assert "A/x.txt would leave the cache" in found.notes
    assert "A/x.txt" in held(cache)


@pytest.mark.parametrize("held", [[], ["/m"], [f"/{n}" for n in range(0, 900, 3)]])
def test_addresses_are_told_from_others_whatever_their_order(held: list[str]) -> None:
    asked = ["/zz", "/m", "", *(f"/{n}" for n in range(899, -1, -7)), "/m"]
    addresses = Addresses(iter(held))
    assert addresses.contain(asked).tolist() == [one in held for one in asked]
    assert [one in addresses for one in asked] == [one in held for one in asked]
    assert addresses.contain([]).tolist() == []
