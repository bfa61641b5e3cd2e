"""What stands in folders besides files: each is accounted for with a reason, and none is opened."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from zip_writing import write_zip

from featpipe.documents import LoadLimits, Source, find_sources, load_source
from featpipe.errors import DocumentError, DocumentTooLarge, MissingDocuments, UnreadableDocument


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "docs"
    path.mkdir()
    (path / "a.txt").write_text("正文", "utf-8")
    return path


def accounts(path: Path | str) -> dict[str, str]:
    """What becomes of every source: its text, or the reason."""
    found = {}
    for source in find_sources([path], expand=True):
        try:
            found[source.id] = load_source(source).text
        except DocumentError as error:
            found[source.id] = error.message.removeprefix(f"{source.id}: ")
            with pytest.raises(DocumentError):
                source.n_bytes()
    return found


def make_socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the length of a socket's path is bounded
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (os.mkfifo, "pipe", "a named pipe, and never opened"),
        (os.mkfifo, "pipe.zip", "a named pipe, and never opened"),
        (os.mkfifo, "pipe.jsonl", "a named pipe, and never opened"),
        (make_socket, "socket", "a socket, and never opened"),
    ],
)
def test_special_files_are_named_and_never_opened(
    folder: Path, make: Callable[[Path], None], name: str, reason: str
) -> None:
    make(folder / name)
    assert accounts(folder) == {"docs/a.txt": "正文", f"docs/{name}": reason}
    assert accounts(f"{folder}/*") == {"docs/a.txt": "正文", f"docs/{name}": reason}
    with pytest.raises(MissingDocuments, match="neither a file nor a folder"):
        find_sources([folder / name])


def test_a_link_to_a_device_is_never_opened(folder: Path) -> None:
    (folder / "zero").symlink_to("/dev/zero")
    assert accounts(folder) == {"docs/a.txt": "正文"}  # it leads out of the folder
    assert accounts(f"{folder}/*") == {
        "docs/a.txt": "正文",
        "docs/zero": "a device, and never opened",
    }
    with pytest.raises(MissingDocuments, match="neither a file nor a folder"):
        find_sources([folder / "zero"])


def test_links_in_a_circle_and_to_nowhere_are_reasons(folder: Path) -> None:
    (folder / "x").symlink_to(folder / "y")
    (folder / "y").symlink_to(folder / "x")
    (folder / "self.txt").symlink_to(folder / "self.txt")
    (folder / "gone.txt").symlink_to(folder / "absent")
    found = accounts(folder)
    assert found.pop("docs/a.txt") == "正文"
    assert found.pop("docs/gone.txt") == "cannot be read (No such file or directory)"
    assert set(found) >= {"docs/self.txt"}
    assert set(found.values()) == {"cannot be read (Too many levels of symbolic links)"}
    assert accounts(f"{folder}/g*") == {
        "docs/gone.txt": "cannot be read (No such file or directory)"
    }


def test_a_file_that_goes_between_listing_and_reading_is_a_reason(folder: Path) -> None:
    (folder / "b.zip").write_bytes(write_zip({"in.txt": "x"}))
    (folder / "c.jsonl").write_text('{"text": "x"}\n', "utf-8")
    sources = find_sources([folder], expand=True)
    assert [s.id for s in sources] == ["docs/a.txt", "docs/b.zip/in.txt", "docs/c.jsonl/line 1"]
    shutil.rmtree(folder)
    for source in sources:
        with pytest.raises(UnreadableDocument, match="No such file or directory"):
            source.read()


def test_a_file_that_becomes_a_folder_is_a_reason(folder: Path) -> None:
    (source,) = find_sources([folder])
    (folder / "a.txt").unlink()
    (folder / "a.txt").mkdir()
    with pytest.raises(UnreadableDocument, match="a folder, not a file"):
        source.read()


def test_a_file_longer_than_its_size_says_is_bounded() -> None:
    endless = Path("/proc/self/maps")  # a file whose size is given as 0
    if not endless.exists() or not stat.S_ISREG(endless.stat().st_mode):
        pytest.skip("no such file on this system")
    with pytest.raises(DocumentTooLarge, match="bytes are more than 10"):
        Source("maps", endless).read(LoadLimits(max_bytes=10))


def test_a_limit_beyond_all_memory_takes_no_memory(folder: Path) -> None:
    (source,) = find_sources([folder])
    expected = (folder / "a.txt").read_bytes()
    assert source.read(LoadLimits(max_bytes=1 << 60)) == expected


def test_a_folder_that_cannot_be_listed_costs_itself_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "shut" / "deep").mkdir(parents=True)
    (folder / "open").mkdir()
    (folder / "open" / "b.txt").write_text("又一", "utf-8")
    scan = os.scandir

    def refusing(path: str | Path = ".") -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = {}
    for source in find_sources([folder]):
        try:
            found[source.id] = source.read().decode()
        except UnreadableDocument as error:
            found[source.id] = error.message
    assert found == {
        "docs/a.txt": "正文",
        "docs/open/b.txt": "又一",
        "docs/shut": "docs/shut: a folder, which cannot be listed (Permission denied)",
    }
    with pytest.raises(MissingDocuments, match="cannot be listed: Permission denied"):
        find_sources([folder / "shut"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_and_folders_without_permission_are_reasons(folder: Path) -> None:
    (folder / "shut").mkdir()
    (folder / "a.txt").chmod(0)
    (folder / "shut").chmod(0)
    try:
        assert accounts(folder) == {
            "docs/a.txt": "cannot be read (Permission denied)",
            "docs/shut": "a folder, which cannot be listed (Permission denied)",
        }
    finally:
        (folder / "shut").chmod(0o700)


def test_a_file_without_permission_is_a_reason_for_anyone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = find_sources([folder])

    def refuse(path: Path, *_: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnreadableDocument, match=r"a\.txt: cannot be read \(Permission denied\)"):
        source.read()


def test_names_of_any_bytes_are_read_and_can_be_printed(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    names = [
        b"\xff.txt",
        b"\xfe.txt",
        "合同 甲.txt".encode(),
        b"two\nlines.txt",
        "合".encode("gbk"),
    ]
    for name in names:
        try:
            fd = os.open(folder + b"/" + name, os.O_CREAT | os.O_WRONLY, 0o600)
        except OSError:
            pytest.skip("this file system takes UTF-8 names only")
        os.write(fd, name.hex().encode())
        os.close(fd)
    found = {
        name.removeprefix(f"{tmp_path.name}/"): text for name, text in accounts(tmp_path).items()
    }
    assert found == {
        "\\udcff.txt": names[0].hex(),
        "\\udcfe.txt": names[1].hex(),
        "合同 甲.txt": names[2].hex(),
        "two\\x0alines.txt": names[3].hex(),
        "\\udcba\\udccf": names[4].hex(),
    }
    assert all(name.encode().decode() == name and name.isprintable() for name in found)


def test_ids_of_records_can_be_printed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "\\ud800\\n", "text": "x"}\n', "utf-8")
    assert accounts(path) == {f"{tmp_path.name}/t.jsonl/\\ud800\\x0a": "x"}
