"""Sources that hold many documents: zip archives, JSONL files of texts, lists of paths.

Guarantees: order is that of the container; every member and every line is accounted for, a bad one
too (it becomes a source whose reading says what is wrong); nothing is unpacked to disk.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from featpipe.documents.source import GivenText, JsonLine, Source, ZipMember, printable
from featpipe.errors import MissingDocuments, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What packers add and nobody means to hand in.
_LITTER = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
_UTF8_NAME = 0x800
_OFFICE_MARKS = frozenset({"[Content_Types].xml", "mimetype", "META-INF/container.xml"})


def expanded(source: Source) -> list[Source]:
    """The documents in a source: members of an archive, lines of a JSONL file, or itself."""
    suffix = source.path.suffix.lower()
    # Pipes and devices are never opened; reading one of them says what it is.
    if source.part is None and suffix in {".jsonl", ".zip"} and source.path.is_file():
        try:
            if suffix == ".jsonl" and _holds_texts(source.path):
                return list(in_jsonl(source))
            if suffix == ".zip" and _is_archive(source.path):
                return list(in_zip(source))
        except (OSError, zipfile.BadZipFile):
            pass  # it changed between two looks: reading it says what is wrong
    return [source]


def in_zip(source: Source) -> Iterator[Source]:
    """Every file in a zip archive, with the archive's id before its own name."""
    with zipfile.ZipFile(source.path) as archive:
        for number, info in enumerate(archive.infolist()):
            name = _readable_name(info)
            parts = [part for part in PurePosixPath(name).parts if part not in {"/", "..", "."}]
            if info.is_dir() or not parts or any(part in _LITTER for part in parts):
                continue
            name = printable("/".join(parts))
            yield Source(f"{source.id}/{name}", source.path, ZipMember(number))


def in_jsonl(source: Source) -> Iterator[Source]:
    """Every line that is not blank; its id is the record's, or the line's number."""
    seen: set[str] = set()
    start = 0
    with source.path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                name = _record_id(line) or f"line {number}"
                name = name if name not in seen else f"{name} (line {number})"
                seen.add(name)
                yield Source(f"{source.id}/{name}", source.path, JsonLine(start, len(line)))
            start += len(line)


def in_list(lines: Iterable[str], folder: Path) -> Iterator[Path]:
    """Paths from a list, one on a line; relative ones start at ``folder``; # begins a comment."""
    for line in lines:
        name = line.strip()
        if name and not name.startswith("#"):
            yield folder / name


def in_list_file(path: Path) -> list[Path]:
    """Paths from a list file; relative ones start at the file's folder.

    Raises:
        MissingDocuments: the file is not there, or lists nothing.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            found = list(in_list(lines, path.parent))
    except (OSError, UnicodeDecodeError) as error:
        raise MissingDocuments(f"the list {path} cannot be read: {error}") from error
    if not found:
        raise MissingDocuments(f"the list {path} names no document")
    return found


def of_texts(texts: Iterable[object]) -> Iterator[Source]:
    """Texts at hand, or (id, text) pairs, as sources.

    Raises:
        UsageError: something else than a text or a pair of them.
    """
    for number, item in enumerate(texts, start=1):
        match item:
            case str():
                yield _given(f"text {number}", item)
            case (str() as name, str() as text):
                yield _given(name, text)
            case _:
                raise UsageError(f"item {number} is neither a text nor a pair (id, text)")


def _given(name: str, text: str) -> Source:
    return Source(name, Path(f"<{name}>"), GivenText(text))


def _is_archive(path: Path) -> bool:
    """A zip that can be listed and is no Office or OpenDocument file under a false name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not _OFFICE_MARKS & set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def _readable_name(info: zipfile.ZipInfo) -> str:
    """The member's name; packers in China write GBK where the format means another code page."""
    if info.flag_bits & _UTF8_NAME or info.filename.isascii():
        return info.filename
    try:
        raw = info.orig_filename.encode("cp437")
    except UnicodeEncodeError:
        return info.filename
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return info.filename


def _holds_texts(path: Path) -> bool:
    """Whether the first record of a file is one of texts; any other JSONL is a plain file."""
    try:
        with path.open("rb") as file:
            first = next((line for line in file if line.strip()), b"")
        record = json.loads(first)
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and isinstance(record.get("text"), str)


def _record_id(line: bytes) -> str | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    name = record.get("id") if isinstance(record, dict) else None
    return printable(str(name)) if isinstance(name, str | int) and str(name) else None
