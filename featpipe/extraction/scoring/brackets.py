"""Brackets that belong to the words before them: 某项目（二期）, but not 某公司（以下简称“公司”）.

A name that ends before such a bracket, or begins behind one, is likely cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Bools = NDArray[np.bool_]

_bracket = re.compile(r"\((?<=[^\W_]\()([^()\n]{1,60})\)")
#: Brackets that name, number or explain what stands before them.
_aside = re.compile(
    r"""\s*(?:以下|下称|下同|简称|又称|统称|合称|原名|曾用名|即|系|指|注|见|详见|参见|其中|包括|如|证券|股票|公司|
    代码|编号|招标编号|项目编号|公告|大写|小写|折合|含税|不含税|含增值税|约|人民币|单位|
    the\b|hereinafter|herein|collectively|each\b|together|i\.e|e\.g|as\ defined|formerly)
    |.*[:"“”'‘’]""",
    re.VERBOSE | re.IGNORECASE,
)


class BracketMarks(NamedTuple):
    """By place: place i is the one before token i, of (n_tokens + 1,)."""

    goes_on: Bools
    """A bracket begins that belongs to the words before it."""
    went_on: Bools
    """Such a bracket ends there, directly before a word."""

    @classmethod
    def of(cls, folded: str, tokens: Tokens) -> BracketMarks:
        """Of a folded text."""
        opened, closed = [], []
        for match in _bracket.finditer(folded):
            if not _aside.match(match[1]):
                opened.append(match.start())
                if folded[match.end() : match.end() + 1].isalnum():
                    closed.append(match.end())
        marks = np.zeros((2, len(tokens) + 1), bool)
        for row, places in zip(marks, (opened, closed), strict=True):
            row[np.searchsorted(tokens.start, np.array(places, np.int64))] = True
        return cls(*marks)
