"""Plain text: every line that is not blank is a paragraph."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.documents.draft import Draft
from featpipe.documents.encoding import Decoded, decode

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
    return _read(decoded, limits, is_traced=is_traced)


def load_given(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:
    """Read a text that is known to be one, in UTF-8.

    Raises:
        DocumentTooLarge: more text than the limits allow.
    """
    return _read(Decoded(data.decode(errors="replace"), "utf-8"), limits, is_traced=is_traced)


def _read(decoded: Decoded, limits: LoadLimits, *, is_traced: bool) -> Draft:
    draft = Draft(limits, is_traced, encoding=decoded.encoding, notes=list(decoded.notes))
    for match in _LINE.finditer(decoded.text):
        start, end = match.span()
        draft.add(match[0], ((end - start, start, end),))
    return draft
