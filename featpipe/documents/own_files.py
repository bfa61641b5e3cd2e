"""Recognises files that featpipe wrote: a folder of documents may hold its own cache and results.

By content, never by name alone, and without reading more than a few kilobytes: caches, results of
``extract`` (also half written ones), reports, templates, their samples and corrections. A folder
may be a cache, with all that is in it. Whoever writes another kind of file marks it with
:data:`GENERATOR` and adds it here.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
import zipfile
from typing import TYPE_CHECKING

from featpipe.documents.media_type import DAMAGED_ZIP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: The program's name in the properties of a file: ``creator`` of a workbook
#: (``workbook.properties.creator``), ``<meta name="generator">`` of a page.
GENERATOR = "featpipe"

#: The format that the first line of ``OUT.partial`` names.
PARTIAL_RESULTS = "featpipe extract, partial results"

_HEAD_BYTES = 4096
_MOST_LINE_BYTES = 1 << 20
_MOST_TEMPLATE_BYTES = 4 << 20

#: In a folder that is a cache, or a backup of one that has not ended.
DESCRIPTIONS = ("cache.json", ".cache.json.backup")
_DESCRIPTION_KEYS = {"format", "bits", "levels", "preparation", "encoder"}
#: Such a folder has one of these, as soon as anything was done there.
_FOLDERS = ("lists", "parts", "shards")

_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_ROOT = 64  #: of the root group's address in a superblock of version 0
_HDF5_MARK = re.compile(rb"format\x00.{0,64}?featpipe", re.DOTALL)

_RESULT_KEYS = {"document", "template", "fields"}
_CORRECTION_KEYS = {"template", "id", "when", "who", "verdict"}
_CSV_COLUMNS = {"document", "template", "field", "value", "probability", "fingerprint"}
_REPORT_MARKS = (
    (f'<meta name="generator" content="{GENERATOR}">'.encode(),),
    (b'<meta name="referrer" content="no-referrer">', b"<title>featpipe</title>"),  # the first ones
)


def describe_own_file(path: Path) -> str | None:
    """What featpipe wrote there, such as ``"a cache"``; None for any other file or folder.

    Pipes and devices are not opened; what cannot be read is none of ours.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            is_filled = any((path / name).is_dir() for name in _FOLDERS)
            is_cache = is_filled and any(_is_description(path / name) for name in DESCRIPTIONS)
            return "a cache" if is_cache else None
        if not stat.S_ISREG(mode):
            return None
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        return next((name for looks, name in _KINDS if looks(path, head)), None)
    except (OSError, ValueError, RecursionError):
        return None


def _is_description(path: Path, _: bytes = b"") -> bool:
    """Of the cache in its folder."""
    if path.name not in DESCRIPTIONS or not path.is_file():
        return False
    if path.stat().st_size > _MOST_TEMPLATE_BYTES:
        return False
    content = json.loads(path.read_bytes())
    return isinstance(content, dict) and content.keys() >= _DESCRIPTION_KEYS


def _is_cache(path: Path, head: bytes) -> bool:
    if not head.startswith(_HDF5) or len(head) < _HDF5_ROOT + 8:
        return False
    root = int.from_bytes(head[_HDF5_ROOT : _HDF5_ROOT + 8], "little")
    with path.open("rb") as file:
        if not 0 < root < os.fstat(file.fileno()).st_size:
            return False
        file.seek(root)
        return _HDF5_MARK.search(file.read(_HEAD_BYTES)) is not None


def _is_results(path: Path, head: bytes) -> bool:
    if head.startswith(b'{"format": "' + PARTIAL_RESULTS.encode()):
        return True
    head = head.removeprefix(b"[\n")  # JSON; else JSON Lines
    if not head.startswith(b"{"):
        return False
    if head.startswith(b'{"document": "') and b'"template": "' in head:
        return True  # also where the line is cut off, or longer than is read here
    record = _first_record(path)
    return record.keys() >= _RESULT_KEYS and isinstance(record["fields"], dict)


def _is_samples(path: Path, head: bytes) -> bool:
    """Samples of a template: by the documents' names, or with their texts beside a template."""
    if not head.startswith(b"{"):
        return False
    record = _first_record(path)
    if not isinstance(record.get("fields"), dict):
        return False
    return ("document" in record and "text" not in record) or path.name.endswith(".samples.jsonl")


def _is_corrections(path: Path, head: bytes) -> bool:
    return head.startswith(b"{") and _first_record(path).keys() >= _CORRECTION_KEYS


def _first_record(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        line = file.readline(_MOST_LINE_BYTES)
    try:
        found = json.loads(line)
    except ValueError:  # JSON over several lines, such as a template
        return {}
    return found if isinstance(found, dict) else {}


def _is_table(_: Path, head: bytes) -> bool:
    """Results as CSV or TSV, by their header."""
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].rstrip(b"\r")
    names = line.decode("utf-8", "replace").replace("\t", ",").split(",")
    return set(names) >= _CSV_COLUMNS


def _is_parquet(path: Path, head: bytes) -> bool:
    """Results as Parquet, by the names of its columns in the footer."""
    if not head.startswith(b"PAR1"):
        return False
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - 8, 0))
        n_footer = int.from_bytes(file.read(4), "little")
        file.seek(max(size - 8 - min(n_footer, _MOST_LINE_BYTES), 0))
        footer = file.read(_MOST_LINE_BYTES)
    return all(name.encode() in footer for name in _CSV_COLUMNS)


def _is_workbook(path: Path, head: bytes) -> bool:
    if not head.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(path) as archive, archive.open("docProps/core.xml") as core:
            return f"creator>{GENERATOR}</".encode() in core.read(_HEAD_BYTES)
    except DAMAGED_ZIP:
        return False


def _is_report(_: Path, head: bytes) -> bool:
    return any(all(mark in head for mark in marks) for marks in _REPORT_MARKS)


def _is_template(path: Path, _: bytes) -> bool:
    if path.suffix not in {".toml", ".json"} or path.stat().st_size > _MOST_TEMPLATE_BYTES:
        return False
    text = path.read_text("utf-8-sig")
    content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    if not isinstance(content, dict):
        return False
    fields, samples = content.get("fields"), content.get("samples")
    if path.suffix == ".json" and not (isinstance(samples, list) and samples):
        return False  # without samples it may as well be a document
    return (
        isinstance(content.get("name"), str)
        and isinstance(fields, list)
        and bool(fields)
        and all(isinstance(one, dict) and "name" in one for one in fields)
    )


_KINDS: tuple[tuple[Callable[[Path, bytes], bool], str], ...] = (
    (_is_cache, "a cache"),
    (_is_description, "a cache"),
    (_is_results, "results"),
    (_is_samples, "samples of a template"),
    (_is_corrections, "corrections of a template"),
    (_is_table, "results"),
    (_is_parquet, "results"),
    (_is_workbook, "results"),
    (_is_report, "a report"),
    (_is_template, "a template"),
)
