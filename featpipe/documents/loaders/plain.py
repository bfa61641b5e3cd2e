"""Plain text: every line that is not blank is a paragraph."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.documents.draft import Draft
from featpipe.documents.encoding import decode

if TYPE_CHECKING:
    from featpipe.documents.limits import LoadLimits

_LINE = re.compile("[^\n\r\x0b\x85\u2028\u2029]+")


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:
    """Read a text file.

    Raises:
        UnreadableDocument: not text in any known encoding.
        DocumentTooLarge: more text than the limits allow.
    """
    decoded = decode(data)
    draft = Draft(limits, is_traced, encoding=decoded.encoding, notes=list(decoded.notes))
    for match in _LINE.finditer(decoded.text):
        start, end = match.span()
        draft.add(match[0], ((end - start, start, end),))
    return draft
