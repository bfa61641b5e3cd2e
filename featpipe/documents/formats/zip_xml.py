"""Read the parts of a zip-based document (Office, OpenDocument, EPUB) within limits.

Guarantees: nothing is written to disk, so no member's path can escape; a member is never unpacked
beyond its share of the limits, whatever the archive says about its size; XML that defines a
document type or entities is refused before it is parsed.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from featpipe.documents.limits import MIB
from featpipe.documents.media_type import DAMAGED_ZIP
from featpipe.errors import DocumentTooLarge, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from featpipe.documents.limits import LoadLimits

_DECLARES = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
#: Tags seen so far and their local names: files use a few hundred, over and over.
_LOCAL: dict[object, str] = {}
_MAX_LOCAL = 10_000
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"

#: What stands around the number of a page.
_ROUND_NUMBERS = re.compile(r"[第页頁共/／|｜·~\-–—\s]|Page|of", re.IGNORECASE)

#: Relations to parts that are not read, and what they hold.
_LEFT_OUT = {
    "comments": "comments",
    "threadedComment": "comments",
    "chart": "charts",
    "chartEx": "charts",
    "chartsheet": "sheets that are a chart",
    "dialogsheet": "dialogs",
    "package": "embedded files",
    "oleObject": "embedded files",
    "aFChunk": "parts of another format (altChunk)",
}


class Container:
    """A zip archive of which a bounded amount is read.

    Raises:
        UnreadableDocument: damaged, or locked by a password.
        DocumentTooLarge: more members or bytes than the limits allow, or packed beyond reason.
    """

    def __init__(self, data: bytes, limits: LoadLimits) -> None:
        self._limits = limits
        self._n_unpacked = 0
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            self._members = {info.filename: info for info in self._archive.infolist()}
        except DAMAGED_ZIP as error:
            raise UnreadableDocument(f"a damaged archive ({error})") from error
        if len(self._archive.infolist()) > limits.max_members:
            raise DocumentTooLarge(f"more than {limits.max_members:,} parts in one file")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self) -> list[str]:
        """Names of all members, in their order."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """The bytes of one member."""
        info = self._checked(name)
        allowed = self._limits.max_unpacked_bytes - self._n_unpacked
        try:
            with self._archive.open(info) as member:
                data = member.read(min(allowed, info.file_size) + 1)
        except (NotImplementedError, RuntimeError) as error:
            raise UnreadableDocument(f"part {name!r} cannot be unpacked ({error})") from error
        except DAMAGED_ZIP as error:
            raise UnreadableDocument(f"damaged: part {name!r} ({error})") from error
        self._n_unpacked += len(data)
        if self._n_unpacked > self._limits.max_unpacked_bytes:
            limit = self._limits.max_unpacked_bytes
            raise DocumentTooLarge(f"unpacks to more than {limit:,} bytes")
        return data

    def _checked(self, name: str) -> zipfile.ZipInfo:
        info = self._members.get(name)
        if info is None:
            raise UnreadableDocument(f"damaged: its part {name!r} is missing")
        if info.flag_bits & 0x1:
            raise UnreadableDocument(
                "an archive locked by a password", hint="save it without a password"
            )
        packed = max(1, info.compress_size)
        if info.file_size > max(MIB, packed * self._limits.max_ratio):
            raise DocumentTooLarge(
                f"part {name!r} unpacks to {info.file_size / packed:,.0f} times its size"
            )
        return info

    def xml(self, name: str) -> Element:
        """The root element of one member."""
        try:
            return ET.fromstring(self.safe_xml(name))  # noqa: S314 - entities are refused
        except ET.ParseError as error:
            raise UnreadableDocument(f"damaged: part {name!r} ({error})") from error

    def safe_xml(self, name: str) -> bytes:
        """The bytes of an XML member; one that defines entities or a document type is refused."""
        data = self.read(name)
        if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            text = data.decode("utf-16", "replace")
            data = re.sub(r"<\?xml[^>]*\?>", "", text, count=1).encode()
        if b"\0" in data or _DECLARES.search(data):
            raise UnreadableDocument(f"part {name!r} defines XML entities, which is refused")
        return data

    def xml_or_none(self, name: str) -> Element | None:
        """The root element of a member, None where it is absent."""
        return self.xml(name) if name in self else None

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """Relations of an Office part: id -> (last word of the type, member name)."""
        folder, name = posixpath.split(part)
        root = self.xml_or_none(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        found: dict[str, tuple[str, str]] = {}
        for relation in root.iter(_RELATION) if root is not None else ():
            if relation.get("TargetMode") == "External":
                continue
            target = relation.get("Target", "")
            path = target[1:] if target.startswith("/") else posixpath.join(folder, target)
            kind = relation.get("Type", "").rsplit("/", 1)[-1]
            found[relation.get("Id", "")] = (kind, posixpath.normpath(path))
        return found

    def left_out(self, part: str) -> list[str]:
        """Notes on the related parts of an Office part that hold text and are not read."""
        kinds = {kind for kind, _ in self.related(part).values()}
        return [f"{what} are left out" for kind, what in _LEFT_OUT.items() if kind in kinds]

    def main_part(self, usual: str) -> str:
        """The member that is the document: by the package's relations, else the usual one."""
        for kind, name in self.related("").values():
            if kind == "officeDocument" and name in self:
                return name
        return usual

    def title(self) -> str:
        """The title in the document's properties."""
        return " ".join(text_of(self.xml_or_none("docProps/core.xml"), "title").split())


def local(tag: object) -> str:
    """The name of an element without its namespace ("" for comments and instructions)."""
    name = _LOCAL.get(tag)
    if name is None:
        name = tag.rpartition("}")[2] if isinstance(tag, str) else ""
        if len(_LOCAL) < _MAX_LOCAL:
            _LOCAL[tag] = name
    return name


def attribute(element: Element, name: str) -> str | None:
    """An attribute by its local name, whatever its namespace (strict and transitional differ)."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


def relation_id(element: Element) -> str:
    """``r:id`` of an Office element, not the plain ``id`` beside it."""
    for key, value in element.attrib.items():
        if key.startswith("{") and key.endswith("}id"):
            return value
    return ""


def child(element: Element | None, name: str) -> Element | None:
    """The first child of this local name; None without one, or without an element."""
    for inner in () if element is None else element:
        if local(inner.tag) == name:
            return inner
    return None


def children(element: Element | None, name: str) -> Iterator[Element]:
    """The children of this local name; none without an element."""
    return (inner for inner in (() if element is None else element) if local(inner.tag) == name)


def value_of(element: Element | None, name: str) -> str | None:
    """The attribute ``val`` of the first child of this local name, where there is one."""
    found = child(element, name)
    return attribute(found, "val") if found is not None else None


def is_on(element: Element | None, name: str) -> bool:
    """Whether the first child of this local name is there, and does not switch itself off."""
    mark = child(element, name)
    return mark is not None and attribute(mark, "val") not in {"0", "false", "off"}


def drawn_text(paragraph: Element) -> str:
    """The text of a paragraph of a drawing; line breaks in it are vertical tabs."""
    texts: list[str] = []
    for run in paragraph.iter():
        name = local(run.tag)
        if name == "t":
            texts.append(run.text or "")
        elif name == "br":
            texts.append("\v")
        elif name == "tab":
            texts.append(" ")
    return "".join(texts)


def is_page_number(text: str) -> bool:
    """Whether a head or foot holds no more than the number of its page, such as 第 1 页 共 3 页."""
    number = _ROUND_NUMBERS.sub("", text)
    return not number or number.isdecimal()


def text_of(root: Element | None, name: str) -> str:
    """The text of the first descendant of this local name, or ""."""
    for element in () if root is None else root.iter():
        if local(element.tag) == name:
            return "".join(element.itertext())
    return ""
