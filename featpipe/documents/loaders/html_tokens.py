"""Cut HTML into tags and text with one regular expression, every token at its place in the source.

Written for speed and for offsets: one pass of the regular-expression engine finds all tags, and
what lies between two is text, so a megabyte of embedded images is a single step. Comments, scripts
and the like are matched whole, so nothing in them can be taken for a tag. Every quantifier that
could be retried is possessive: the time is linear in the source whatever it holds.
"""

from __future__ import annotations

import re
from html import unescape

#: Elements whose content is not shown as text of the page.
_UNSEEN = "script|style|template|noscript|iframe|noframes|object|svg|canvas|audio|video|datalist"
#: A quote opens a value only after an equals sign; one that never closes is an ordinary character.
_ATTRIBUTES = r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+"""

TOKEN = re.compile(
    rf"""
    <(?:
      !--(?:-?>|.*?(?:--!?>|\Z))                                    # a comment
    | (?P<unseen>{_UNSEEN})(?=[\s/>]){_ATTRIBUTES}
      (?:(?<=/)>|>.*?(?:</(?P=unseen)\s*+>|\Z)|\Z)                  # ... with all it holds
    | (?P<close>/?)(?P<name>[a-z][^\s/>]*+)
      (?P<attributes>{_ATTRIBUTES})(?:>|\Z)                         # a tag
    | !\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    | !doctype[^>\[]*+\[(?:\s*+<![^>]*+>){{0,99}}+\s*+\]\s*+>           # with declarations in it
    | [!?/][^>]*+(?:>|\Z)                                           # doctype, instruction, bogus
    )
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
#: Numbers of the groups: by number they are found twice as fast as by name.
CLOSE, NAME, ATTRIBUTES, CDATA = (
    TOKEN.groupindex[name] for name in ("close", "name", "attributes", "cdata")
)
_ATTRIBUTE = re.compile(
    r"""([^\s"'>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""", re.DOTALL
)
_ENTITY = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][A-Za-z0-9]*;?)")


def attributes_of(raw: str) -> dict[str, tuple[str, int]]:
    """Name (lower case) -> (value, where it starts in ``raw``); the first wins."""
    found: dict[str, tuple[str, int]] = {}
    for match in _ATTRIBUTE.finditer(raw):
        group = next((g for g in (2, 3, 4) if match[g] is not None), 0)
        value = (match[group], match.start(group)) if group else ("", match.end())
        found.setdefault(match[1].lower(), value)
    return found


def unescaped(raw: str, at: int) -> tuple[str, list[tuple[int, int, int]]]:
    """Text with its entities resolved, and the pieces it came from.

    Args:
        raw: text as it stands in the source.
        at: where it starts there.
    """
    pieces: list[tuple[int, int, int]] = []
    parts: list[str] = []
    done = 0
    for match in _ENTITY.finditer(raw):
        text = unescape(match[0])
        if text == match[0]:
            continue
        start, end = match.span()
        if start > done:
            parts.append(raw[done:start])
            pieces.append((start - done, at + done, at + start))
        parts.append(text)
        # A one-character source cannot be an entity, so this piece is atomic by its lengths
        # unless both agree by chance; then mapping character by character is as good.
        pieces.append((len(text), at + start, at + end))
        done = end
    if done < len(raw):
        parts.append(raw[done:])
        pieces.append((len(raw) - done, at + done, at + len(raw)))
    return "".join(parts), pieces
