"""Small zip-based documents for tests: the parts that matter, written by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_zip(members: Mapping[str, str | bytes]) -> bytes:
    """An archive of the members, packed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def relations(**parts: str) -> str:
    """A relationships part: kind -> target."""
    entries = "".join(
        f'<Relationship Id="r{i}" Type="{_RELATED}/{kind.rstrip("0123456789")}" Target="{target}"/>'
        for i, (kind, target) in enumerate(parts.items())
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{entries}</Relationships>'


def write_docx(body: str, **parts: str) -> bytes:
    """A Word file: the XML of its body, and further parts by kind (numbering, styles ...)."""
    members = {
        "_rels/.rels": relations(officeDocument="word/document.xml"),
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(**{k: f"{k}.xml" for k in parts}),
    }
    members.update({f"word/{kind}.xml": xml for kind, xml in parts.items()})
    return write_zip(members)


def paragraph(text: str, properties: str = "") -> str:
    """One Word paragraph."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
