"""A text as paragraphs of sentences of words: the frozen form of what ``segment`` cuts.

The arrays of ``segment`` are for throughput; this is for reading, explaining and tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.documents.document import Paragraph, Sentence, Word
from featpipe.documents.segment import segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    #: A tokenizer: the [start, end) of every word of a text, in order.
    FindWords = Callable[[str], Iterable[tuple[int, int]]]


def outline(text: str, find_words: FindWords | None = None) -> tuple[Paragraph, ...]:
    """Every paragraph with its sentences and, where a tokenizer is given, their words.

    Args:
        text: a document's text.
        find_words: says where the words of one sentence are, in offsets of that sentence; blank
            words are left out.
    """
    segments = segment(text)
    spans = [(int(start), int(end)) for start, end in segments.sentences]
    sentences = [Sentence(start, end, _words(text, start, end, find_words)) for start, end in spans]
    paragraphs = []
    first = 0
    for (start, end), n in zip(
        segments.paragraphs.tolist(), segments.sentence_counts().tolist(), strict=True
    ):
        paragraphs.append(Paragraph(start, end, tuple(sentences[first : first + n])))
        first += n
    return tuple(paragraphs)


def _words(text: str, start: int, end: int, find_words: FindWords | None) -> tuple[Word, ...]:
    if find_words is None:
        return ()
    sentence = text[start:end]
    found = ((int(a), int(b)) for a, b in find_words(sentence))
    return tuple(Word(start + a, start + b) for a, b in found if not sentence[a:b].isspace())
