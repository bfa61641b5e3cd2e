"""Finding files: everything once, in one order, nothing unsaid."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import pytest
from zip_writing import paragraph, write_docx, write_zip

from featpipe.documents import LoadLimits, Source, find_sources, load_source, of_texts
from featpipe.errors import (
    DocumentTooLarge,
    MissingDocuments,
    UnreadableDocument,
    UnsupportedDocument,
    UsageError,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.html", "sub/c.txt", "sub/deep/d.pdf", ".git/config", "~$lock.docx"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, "utf-8")
    return tmp_path / "docs"


def ids(*paths: Path | str, **patterns: list[str]) -> list[str]:
    return [source.id for source in find_sources(list(paths), **patterns)]


def test_a_folder_is_searched_to_the_bottom_and_hidden_files_are_left(folder: Path) -> None:
    assert ids(folder) == ["docs/a.html", "docs/b.txt", "docs/sub/c.txt", "docs/sub/deep/d.pdf"]


def test_patterns_choose_by_name_and_by_path(folder: Path) -> None:
    assert ids(folder, include=["*.txt"]) == ["docs/b.txt", "docs/sub/c.txt"]
    assert ids(folder, exclude=["sub/deep", "*.html"]) == ["docs/b.txt", "docs/sub/c.txt"]
    assert ids(folder, include=["sub/*"]) == ["docs/sub/c.txt", "docs/sub/deep/d.pdf"]


def test_globs_and_files_are_taken_once(folder: Path) -> None:
    assert ids(f"{folder}/**/*.txt", folder / "b.txt") == ["docs/b.txt", "docs/sub/c.txt"]


def test_the_same_path_below_two_folders_stays_two_documents(tmp_path: Path) -> None:
    for name in ("x/a.txt", "y/a.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name, "utf-8")
    found = find_sources([tmp_path / "x", tmp_path / "y"])
    assert len({source.id for source in found}) == 2
    assert [source.path.parent.name for source in found] == ["x", "y"]


def test_links_in_a_circle_end(folder: Path) -> None:
    (folder / "sub" / "up").symlink_to(folder, target_is_directory=True)
    assert ids(folder) == ["docs/a.html", "docs/b.txt", "docs/sub/c.txt", "docs/sub/deep/d.pdf"]


def test_a_link_inside_the_folder_gives_no_document_its_name(folder: Path) -> None:
    expected = ids(folder)
    (folder / "the_current_version.txt").symlink_to(folder / "b.txt")
    (folder / "another").symlink_to(folder / "sub" / "deep", target_is_directory=True)
    (folder / "another_one").symlink_to(folder / "sub", target_is_directory=True)
    assert ids(folder) == expected
    assert ids(folder / "the_current_version.txt", folder) == expected
    assert ids(folder / "another") == ["deep/d.pdf"]


def test_links_out_of_the_folder_are_passed_over_and_said(folder: Path, tmp_path: Path) -> None:
    secrets = tmp_path / "elsewhere"
    secrets.mkdir()
    (secrets / "s.txt").write_text("x", "utf-8")
    (folder / "all").symlink_to(secrets, target_is_directory=True)
    (folder / "sub" / "one.txt").symlink_to(secrets / "s.txt")
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "inside.txt").symlink_to(folder / ".git" / "config")
    notes: list[str] = []
    found = find_sources([folder], note=notes.append)
    assert [s.id for s in found] == [
        f"docs/{n}" for n in ("a.html", "b.txt", "inside.txt", "sub/c.txt", "sub/deep/d.pdf")
    ]
    (note,) = notes
    assert f"3 links that lead out of {folder}" in note
    assert f"{folder / 'all'} -> {secrets}" in note
    assert ids(f"{folder}/**/*.txt") == ["docs/b.txt", "docs/inside.txt", "docs/sub/c.txt"]


def test_links_that_are_named_are_followed(folder: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    (chosen / "a.html").symlink_to(folder / "a.html")
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    assert ids(tmp_path / "link") == ids(folder)
    assert ids(chosen / "a.html") == ids(f"{chosen}/*") == ["chosen/a.html"]
    with pytest.raises(MissingDocuments, match=r"no documents(.|\n)*a link that leads out"):
        find_sources([chosen])


def test_links_in_two_circles_below_a_pattern_end(folder: Path) -> None:
    for name in ("one", "two", "three"):
        (folder / name).symlink_to(folder, target_is_directory=True)
    assert ids(f"{folder}/**/*.txt") == ["docs/b.txt", "docs/sub/c.txt"]
    assert ids(f"{folder}/**/deep/*") == ["docs/sub/deep/d.pdf"]
    assert ids(f"{folder}/**") == ids(folder)


@pytest.mark.parametrize("path", ["absent", "absent/*.txt", "empty"])
def test_what_is_not_there_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingDocuments, match=path.replace("*", r"\*")):
        find_sources([tmp_path / path])


def test_a_link_that_leads_nowhere_is_a_document_that_cannot_be_read(folder: Path) -> None:
    (folder / "gone.txt").symlink_to(folder / "absent")
    source = next(s for s in find_sources([folder]) if s.id == "docs/gone.txt")
    with pytest.raises(UnreadableDocument, match=r"gone\.txt: cannot be read"):
        source.read()


def test_a_list_names_paths_below_its_own_folder(folder: Path) -> None:
    listed = folder.parent / "list.txt"
    listed.write_text("# chosen\ndocs/a.html\n\ndocs/sub\n", "utf-8")
    assert ids(f"@{listed}") == ["docs/a.html", "sub/c.txt", "sub/deep/d.pdf"]


def test_a_list_on_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{folder / 'a.html'}\n{folder / 'b.txt'}\n"))
    assert ids("-") == ["docs/a.html", "docs/b.txt"]


@pytest.mark.parametrize("content", [None, "", "# nothing\n"])
def test_a_list_that_names_nothing_is_named(tmp_path: Path, content: str | None) -> None:
    listed = tmp_path / "list.txt"
    if content is not None:
        listed.write_text(content, "utf-8")
    with pytest.raises(MissingDocuments, match=r"list\.txt"):
        find_sources([f"@{listed}"])


def read_all(path: Path) -> dict[str, str]:
    folder = f"{path.parent.name}/"
    sources = find_sources([path], expand=True)
    assert all(source.id.startswith(folder) for source in sources)
    return {s.id.removeprefix(folder): load_source(s).text for s in sources}


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson"])
def test_records_of_json_lines_are_documents(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"texts.{suffix}"
    lines = [
        json.dumps({"id": "甲", "text": "第一篇"}, ensure_ascii=False),
        "",
        json.dumps({"id": 2, "text": "<b>不是网页</b>"}),
        json.dumps({"text": "没有编号"}),
        json.dumps({"id": "甲", "text": "同名"}),
    ]
    path.write_text("\n".join(lines), "utf-8")
    assert read_all(path) == {
        f"texts.{suffix}/甲": "第一篇",
        f"texts.{suffix}/2": "<b>不是网页</b>",
        f"texts.{suffix}/line 4": "没有编号",
        f"texts.{suffix}/甲 (line 5)": "同名",
    }


def test_a_bad_record_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{"id": "b"}\nno json\n', "utf-8")
    good, *bad = find_sources([path], expand=True)
    assert load_source(good).text == "x"
    reasons = []
    for source in bad:
        with pytest.raises(UnreadableDocument) as caught:
            source.read()
        reasons.append(caught.value.message)
    assert "texts.jsonl/b: the record has no text" in reasons[0]
    assert "texts.jsonl/line 3: the line is no JSON" in reasons[1]


@pytest.mark.parametrize(
    "first", ['{"id": "a", "text": null}', '{"version": 1}', '{"id": "a", "te']
)
def test_a_first_record_without_a_text_makes_no_single_document_of_the_file(
    tmp_path: Path, first: str
) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(first + '\n{"id": "b", "text": "第二篇"}\n', "utf-8")
    bad, good = sorted(find_sources([path], expand=True), key=lambda one: one.id.endswith("/b"))
    assert good.read() == "第二篇".encode()
    with pytest.raises(UnreadableDocument, match=r"the record has no text|the line is no JSON"):
        bad.read()


@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_records_in_another_encoding_than_utf8_are_refused_with_the_way_on(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "甲", "text": "合同编号"}\n{"id": "乙", "text": "金额"}\n', encoding)
    for source in find_sources([path], expand=True)[:2]:
        with pytest.raises(UnreadableDocument, match="the line is no JSON") as why:
            source.read()
        assert why.value.hint == "convert the file to UTF-8"


def test_other_jsonl_files_are_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"level": "info"}\n', "utf-8")
    assert read_all(path) == {"log.jsonl": '{"level": "info"}'}


def test_files_in_an_archive_are_documents_and_nothing_is_unpacked_to_disk(tmp_path: Path) -> None:
    path = tmp_path / "档案.zip"
    path.write_bytes(
        write_zip(
            {
                "合同/a.docx": write_docx(paragraph("正文")),
                "../../b.txt": "逃不出去",
                "__MACOSX/a": "x",
                "empty/": "",
            }
        )
    )
    assert read_all(path) == {"档案.zip/合同/a.docx": "正文", "档案.zip/b.txt": "逃不出去"}
    assert [p.name for p in tmp_path.iterdir()] == ["档案.zip"]
    assert [s.id for s in find_sources([path])] == [f"{tmp_path.name}/档案.zip"]


def test_a_part_gives_no_other_text_when_its_file_changes_after_the_search(tmp_path: Path) -> None:
    records = tmp_path / "texts.jsonl"
    lines = [f'{{"id": "{name}", "text": "{name}"}}\n' for name in "abc"]
    records.write_text("".join(lines), "utf-8")
    packed = tmp_path / "a.zip"
    packed.write_bytes(write_zip({"a.txt": "a", "b.txt": "b", "c.txt": "c"}))
    sources = find_sources([records, packed], expand=True)
    records.write_text("".join(lines[1:]) + lines[0], "utf-8")
    packed.write_bytes(write_zip({"b.txt": "b", "a.txt": "a"}))
    assert len(sources) == 6
    for source in sources:
        with pytest.raises(UnreadableDocument, match="has changed since its parts were listed"):
            source.read()
    assert [load_source(s).text for s in find_sources([packed], expand=True)] == ["a", "b"]


def test_chinese_names_in_archives_of_old_packers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    placeholder = "x" * len("合同.txt".encode("gbk"))
    data = write_zip({placeholder: "正文"})
    path.write_bytes(data.replace(placeholder.encode(), "合同.txt".encode("gbk")))
    assert read_all(path) == {"a.zip/合同.txt": "正文"}


def test_a_damaged_archive_is_one_document_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(write_zip({"a.txt": "x"})[:-10])
    (source,) = find_sources([path], expand=True)
    with pytest.raises(UnsupportedDocument, match="a zip archive"):
        load_source(source)


def test_a_member_beyond_the_limits_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(write_zip({"big.txt": "x" * 5_000_000}))
    (source,) = find_sources([path], expand=True)
    with pytest.raises(DocumentTooLarge, match="5,000,000 bytes are more than 1,000"):
        source.read(LoadLimits(max_bytes=1000))
    with pytest.raises(DocumentTooLarge, match="many times its packed size"):
        source.read()


def test_a_locked_member_is_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    data = bytearray(write_zip({"a.txt": "x"}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    path.write_bytes(bytes(data))
    (source,) = find_sources([path], expand=True)
    with pytest.raises(UnreadableDocument, match="locked by a password"):
        source.read()


def test_texts_at_hand_are_sources() -> None:
    sources = list(of_texts(["甲", ("second", "<p>乙"), "\ud800", "a\0b\0c\0d\0"]))
    assert [(s.id, load_source(s).text) for s in sources] == [
        ("text 1", "甲"),
        ("second", "<p>乙"),
        ("text 3", "\ufffd"),
        ("text 4", "abcd"),
    ]
    with pytest.raises(UsageError, match="item 1 is neither"):
        list(of_texts([("a", "b", "c")]))
    with pytest.raises(UsageError, match="not one text"):
        list(of_texts("甲乙"))
    with pytest.raises(UsageError, match="not a mapping"):
        list(of_texts({"a": "甲"}))


def test_an_archive_s_directory_is_read_once_for_all_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(write_zip({f"{i}.txt": f"文{i}" for i in range(9)}))
    sources = find_sources([path], expand=True)
    other = write_zip({"0.txt": "另一份"})
    opened: list[str] = []
    make = zipfile.ZipFile

    def count(file: Path) -> zipfile.ZipFile:
        opened.append(str(file))
        return make(file)

    monkeypatch.setattr(zipfile, "ZipFile", count)
    texts = [source.read().decode() for source in sources if source.n_bytes() == 4]
    assert texts == [f"文{i}" for i in range(9)]
    assert len(opened) == 1
    path.write_bytes(other)
    assert sources[0].read().decode() == "另一份"
    assert len(opened) == 2


def test_sources_travel_and_know_their_size(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(write_zip({"a.txt": "正文", "b.txt": "x"}))
    for source in [*find_sources([path], expand=True), *of_texts(["abc"]), Source("z", path)]:
        assert pickle.loads(pickle.dumps(source)) == source  # noqa: S301 - our own value
        assert source.n_bytes() == len(source.read())
    addresses = {source.address for source in find_sources([path], expand=True)}
    assert len(addresses) == 2
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 2
