"""jieba's cut over a batch, with numpy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.features.words.hidden import join_letters, recognise
from featpipe.features.words.routes import find_blocks, mark_words

if TYPE_CHECKING:
    from featpipe.features.words.codes import CodedTexts, Offsets
    from featpipe.features.words.tables import Tables


def cut(tables: Tables, coded: CodedTexts, *, hmm: bool) -> Offsets:
    """Where words start, over all texts laid end to end: (n_words,) int64, ascending.

    The first character of a text starts a word; so does every character outside of blocks, except
    a line feed after its carriage return.
    """
    codes, bounds = coded.codes, coded.bounds
    classes = tables.classes_of(codes)
    blocks = find_blocks(classes, bounds)
    marks = mark_words(tables, codes, blocks)
    if hmm:
        recognise(tables, codes, classes, marks, blocks.ends)
    else:
        join_letters(classes, marks, blocks.ends)
    outside = np.flatnonzero(classes == 0)
    marks[outside] = True
    feeds = outside[(codes[outside] == ord("\n")) & (outside > 0)]
    joined = feeds[codes[feeds - 1] == ord("\r")]
    marks[joined] = False
    starts = bounds[:-1]
    marks[starts[starts < len(codes)]] = True
    return np.flatnonzero(marks[:-1])
