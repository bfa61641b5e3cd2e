"""EPUB books: the chapters of the spine, in reading order, each read as HTML."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from featpipe.documents.builder import Draft
from featpipe.documents.decode import decode
from featpipe.documents.formats.html import read_html
from featpipe.documents.formats.zip_xml import Container, attribute, local, text_of
from featpipe.errors import UnreadableDocument

if TYPE_CHECKING:
    from featpipe.documents.limits import LoadLimits


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:  # noqa: ARG001
    """Read an EPUB book.

    Raises:
        UnreadableDocument: damaged, or locked (digital rights management).
        DocumentTooLarge: beyond one of the limits.
    """
    container = Container(data, limits)
    if "META-INF/rights.xml" in container:
        raise UnreadableDocument("a book locked by digital rights management")
    package = _package(container)
    root = container.xml(package)
    folder = posixpath.dirname(package)
    draft = Draft(limits, title=" ".join(text_of(root, "title").split()))
    items = {
        attribute(item, "id"): posixpath.normpath(
            posixpath.join(folder, unquote(attribute(item, "href") or ""))
        )
        for item in root.iter()
        if local(item.tag) == "item"
    }
    for reference in root.iter():
        name = items.get(attribute(reference, "idref"))
        if local(reference.tag) == "itemref" and name and name in container:
            read_html(decode(container.read(name)).text, draft)
    return draft


def _package(container: Container) -> str:
    for element in container.xml("META-INF/container.xml").iter():
        if local(element.tag) == "rootfile":
            return attribute(element, "full-path") or ""
    raise UnreadableDocument("damaged: an EPUB without a package")
