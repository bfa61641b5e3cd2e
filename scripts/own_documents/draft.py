"""A document under construction: blocks of text in which the values of fields are marked.

Guarantees: a value is marked where it is written, so what `expected()` says occurs in the document
cannot differ from what was written; the same draft gives the same bytes in every format, on every
machine (the docx is written here, uncompressed and with fixed times, and needs no library).
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

MARK = re.compile("\ue000([^\ue001]*)\ue001([^\ue002]*)\ue002")
Block = tuple[str, "str | list[list[str]]"]


@dataclass
class Draft:
    """Blocks in order; kinds are title, line, heading, para, centre, sign, table."""

    template: str
    rng: Random
    blocks: list[Block] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    records: list[dict[str, str]] = field(default_factory=list)

    def mark(self, name: str, value: str) -> str:
        """Say that this mention of `value` is a value of the field `name`."""
        values = self.fields.setdefault(name, [])
        if value not in values:
            values.append(value)
        return f"\ue000{name}\ue001{value}\ue002"

    def add(self, kind: str, *texts: str) -> None:
        """Append one block of this kind for each text."""
        self.blocks.extend((kind, text) for text in texts)

    def table(self, rows: list[list[str]]) -> None:
        """Append a table; the first row is its head."""
        self.blocks.append(("table", rows))

    def pick(self, *choices: str) -> str:
        """One of the wordings."""
        return self.rng.choice(choices)


def strip_marks(text: str) -> str:
    """The text as it is printed."""
    return MARK.sub(r"\2", text)


def locate_marks(text: str) -> tuple[str, dict[str, dict[str, list[list[int]]]]]:
    """The text without marks, and for every field and value the [start, end) of each mention."""
    plain: list[str] = []
    spans: dict[str, dict[str, list[list[int]]]] = {}
    at = length = 0
    for match in MARK.finditer(text):
        before, (name, value) = text[at : match.start()], match.groups()
        plain += [before, value]
        length += len(before)
        spans.setdefault(name, {}).setdefault(value, []).append([length, length + len(value)])
        length += len(value)
        at = match.end()
    plain.append(text[at:])
    return "".join(plain), spans


def as_text(draft: Draft) -> str:
    """Plain text with the marks still in it: one block a line, tables as columns of blanks."""
    lines: list[str] = []
    for kind, content in draft.blocks:
        if isinstance(content, list):
            lines += ["  ".join(row) for row in content]
        elif kind == "para":
            lines.append("　　" + content)
        elif kind == "centre":
            lines += ["", content, ""]
        else:
            lines.append(content)
    return "\n".join(lines) + "\n"


def as_markdown(draft: Draft) -> str:
    """Headings with #, tables with pipes, a blank line between blocks."""
    parts: list[str] = []
    for kind, content in draft.blocks:
        if isinstance(content, list):
            head, *rest = ["| " + " | ".join(row) + " |" for row in content]
            parts.append("\n".join([head, "|" + " --- |" * len(content[0]), *rest]))
        else:
            prefix = {"title": "# ", "heading": "## "}.get(kind, "")
            parts.append(prefix + content)
    return strip_marks("\n\n".join(parts)) + "\n"


def as_html(draft: Draft) -> str:
    """A page in the manner of disclosure sites: nested sections, tables, blanks as entities."""
    title = next(strip_marks(str(text)) for kind, text in draft.blocks if kind == "title")
    out = [
        "<!DOCTYPE html>",
        f'<html lang="zh"><head><meta charset="utf-8"><title>{html.escape(title)}</title>',
        "<style>td { border: 1px solid #999 } p { text-indent: 2em }</style></head><body>",
        '<div class="detail">',
    ]
    for kind, content in draft.blocks:
        if isinstance(content, list):
            out += _html_table(content)
            continue
        text = html.escape(strip_marks(content), quote=False)
        if kind == "title":
            out.append(f"<h1>{text}</h1>")
        elif kind == "heading":
            out.append(f'</div>\n<div class="section"><h2>{text}</h2>')
        elif kind in {"line", "centre", "sign"}:
            text = text.replace("　", "&nbsp;&nbsp;")
            out.append(f'<div class="{kind}">{text}</div>')
        else:
            out.append(f"<p>{text}</p>")
    return "\n".join([*out, "</div>", "</body></html>"]) + "\n"


def _html_table(rows: list[list[str]]) -> list[str]:
    out = ["<table>"]
    for number, row in enumerate(rows):
        cell = "th" if number == 0 else "td"
        cells = "".join(
            f"<{cell}>{html.escape(strip_marks(text), quote=False)}</{cell}>" for text in row
        )
        out.append(f"<tr>{cells}</tr>")
    return [*out, "</table>"]


_NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_DOCX_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_WORD}.document.main+xml"/>'
    f'<Override PartName="/word/styles.xml" ContentType="{_WORD}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/_rels/document.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "word/styles.xml": f"<w:styles {_NS}>"
    + "".join(
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{label}"/>'
        f'<w:pPr><w:outlineLvl w:val="{level}"/></w:pPr></w:style>'
        for name, label, level in (("Title", "Title", 0), ("Heading1", "heading 1", 0))
    )
    + "</w:styles>",
}


def as_docx(draft: Draft) -> bytes:
    """A small WordprocessingML package: styled headings, paragraphs and tables."""
    body: list[str] = []
    for kind, content in draft.blocks:
        if isinstance(content, list):
            rows = ("".join(f"<w:tc>{_word_paragraph(c)}</w:tc>" for c in row) for row in content)
            grid = "<w:gridCol/>" * len(content[0])
            table = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
            body.append(f"<w:tbl><w:tblPr/><w:tblGrid>{grid}</w:tblGrid>{table}</w:tbl>")
        else:
            body.append(
                _word_paragraph(content, {"title": "Title", "heading": "Heading1"}.get(kind))
            )
    document = f"<w:document {_NS}><w:body>{''.join(body)}</w:body></w:document>"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, text in {**_DOCX_PARTS, "word/document.xml": document}.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 0  # the default differs between systems
            archive.writestr(info, (_HEAD + text).encode())
    return buffer.getvalue()


def _word_paragraph(text: str, style: str | None = None) -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    run = html.escape(strip_marks(text), quote=False)
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{run}</w:t></w:r></w:p>'
