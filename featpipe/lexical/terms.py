"""Terms: what BM25 counts in a text, as small numbers.

An analyser turns texts into terms: character grams, jieba's words, those of its search mode, or
words and grams together. All of them fold case and width (``Ａbc`` counts as ``abc``), keep
numbers, and drop terms without a letter or a digit.

Grams are the default because they find more: on statutes (STARD) MRR@10 .397 against .365 for
words, and no less on encyclopaedia questions (CMRC2018) and abstracts (CSL); ``eval_retrieval``
measures it. They also need no dictionary.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Literal, get_args
from unicodedata import unidata_version

import numpy as np

from featpipe.errors import UsageError
from featpipe.lexical.backend import Backends
from featpipe.lexical.compile import CodedTexts, Codes, Offsets, text_of
from featpipe.lexical.interning import intern_spans
from featpipe.lexical.jieba_dictionary import hash_of
from featpipe.lexical.words import TermBatch, Words, join_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


#: Counted up when the same text would give other terms than before.
TERMS_VERSION = 1

#: Characters analysed with numpy's kernels before numba's half second of loading is worth it.
_WARM_UP = 1_000_000
#: Characters analysed at a time.
_PART = 1 << 20

AnalyserName = Literal["chars", "words", "search", "words+chars"]
ANALYSERS: tuple[AnalyserName, ...] = get_args(AnalyserName)


class Analyser:
    """Turns texts into terms.

    Guarantees: the terms of a text do not depend on the texts beside it, and analysers with equal
    fingerprints give equal terms. Pickles as its arguments.

    Args:
        name: ``"chars"`` are single characters and pairs, with Latin words and numbers whole;
            ``"words"`` are jieba's words; ``"search"`` adds the shorter words inside long ones, as
            ``jieba.cut_for_search`` does; ``"words+chars"`` is every span of either, once.


    Raises:
        UsageError: an unknown name.
    """

    def __init__(self, name: AnalyserName = "chars") -> None:
        if name not in ANALYSERS:
            raise UsageError(
                f"unknown analyser {name!r}", hint=f"choose from {', '.join(ANALYSERS)}"
            )
        self.name: AnalyserName = name
        self._words = None if name == "chars" else Words()
        self._backends = Backends("auto", warm_up=_WARM_UP)

    @property
    def spec(self) -> dict[str, object]:
        """Everything that decides the terms of a text, as plain JSON values."""
        return {
            "terms": TERMS_VERSION,
            "analyser": self.name,
            "unicode": unidata_version,
            "words": self._words.spec if self._words else None,
            # Of settings that are gone; stored fingerprints hold the keys.
            "stopwords": None,
            "pieces": None,
        }

    @property
    def fingerprint(self) -> str:
        """32 hex digits over :attr:`spec`."""
        return hash_of(json.dumps(self.spec, sort_keys=True).encode())

    def count(self, texts: Sequence[str]) -> TermBatch:
        """The terms of each text, numbered by the batch's own vocabulary."""
        parts = [self._count(part) for part in _parts_of(texts)]
        return parts[0] if len(parts) == 1 else join_batches(parts)

    def _count(self, texts: Sequence[str]) -> TermBatch:
        coded = CodedTexts.from_texts(texts)
        starts, ends = self._spans(texts, coded)
        folded = _folds[coded.codes]
        before = np.concatenate(([0], np.cumsum(_is_alnum[folded])))
        kept = before[ends] > before[starts]
        starts, ends = starts[kept], ends[kept]
        interned = intern_spans(folded, starts, ends, backend=self._backend(len(folded)))
        vocabulary = interned.spell(text_of(folded), starts, ends)
        owners = np.searchsorted(coded.bounds, starts, side="right") - 1
        return TermBatch(vocabulary, interned.ids, np.bincount(owners, minlength=coded.n_texts))

    def terms(self, text: str) -> list[str]:
        """The terms of one text, such as a query, in order."""
        batch = self.count([text])
        return [batch.vocabulary[number] for number in batch.ids.tolist()]

    def _spans(self, texts: Sequence[str], coded: CodedTexts) -> tuple[Offsets, Offsets]:
        """Starts and ends (n_terms,) over all texts laid end to end, texts in order."""
        if self._words is None:
            return _gram_spans(coded)
        starts, ends = self._words.cut_coded(texts, coded, search=self.name == "search")
        if self.name != "words+chars":
            return starts, ends
        gram_starts, gram_ends = _gram_spans(coded)
        every = np.concatenate((starts << 32 | ends, gram_starts << 32 | gram_ends))
        every.sort()
        both = every[np.diff(every, prepend=-1) > 0]
        return both >> 32, both & 0xFFFFFFFF

    def _backend(self, n_characters: int) -> Literal["numba", "numpy"]:
        if self._words is not None:
            return self._words.backend
        self._backends.count(n_characters)
        return self._backends.current


def _parts_of(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Runs of texts that bound the memory of counting (about 150 bytes a character)."""
    begin, n_characters = 0, 0
    for number, text in enumerate(texts):
        n_characters += len(text)
        if n_characters >= _PART:
            yield texts[begin : number + 1]
            begin, n_characters = number + 1, 0
    if begin < len(texts) or not begin:
        yield texts[begin:]


def _gram_spans(coded: CodedTexts) -> tuple[Offsets, Offsets]:
    """Starts and ends (n_grams,) of all character grams, ordered by start, then end.

    Characters and pairs for scripts without spaces, whole runs for the rest: ``违约金 ABC-12.5%``
    gives 违 违约 约 约金 金 ABC 12.5. A gram never reaches from one text into the next. A full stop
    between two digits belongs to the number.
    """
    n = len(coded.codes)
    is_first = np.zeros(n + 1, np.bool_)
    is_first[coded.bounds] = True
    kinds = _kinds_of(coded.codes, is_first)
    joined = np.zeros(n, np.bool_)  # whether a character goes on from the one before
    joined[1:] = (kinds[1:] == kinds[:-1]) & ~is_first[1:n]
    grams = kinds == _GRAM
    followed = np.zeros(n, np.bool_)
    followed[:-1] = joined[1:] & grams[:-1]
    run_starts = np.flatnonzero((kinds == _RUN) & ~joined)
    stays = np.zeros(n, np.bool_)
    stays[:-1] = joined[1:]
    run_ends = np.flatnonzero((kinds == _RUN) & ~stays) + 1
    per_start = grams.astype(np.int64) + followed
    per_start[run_starts] = 1
    starts = np.repeat(np.arange(n), per_start)
    ends = starts + 1
    last = np.cumsum(per_start) - 1
    ends[last[followed]] += 1
    ends[last[run_starts]] = run_ends
    return starts, ends


def _kinds_of(codes: Codes, is_first: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Kind (n,) of each character; a full stop between two digits of a text is part of a run.

    Shapes: codes (n,), is_first (n + 1,) where texts start.
    """
    kinds = _kinds[codes]
    dots = np.flatnonzero(codes == ord("."))
    dots = dots[(dots > 0) & (dots < len(codes) - 1)]
    numeric = (_digits[codes[dots - 1]] == 1) & (_digits[codes[dots + 1]] == 1)
    numeric &= ~is_first[dots] & ~is_first[dots + 1]
    kinds[dots[numeric]] = _RUN
    return kinds


#: Kinds of characters in grams.
_BREAK, _GRAM, _RUN = 0, 1, 2

#: Scripts below U+2E80 (CJK radicals) written without spaces: Thai and Lao, Myanmar, Khmer.
_UNSPACED = (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))


def _kind_of(code: int) -> int:
    if not chr(code).isalnum():
        return _BREAK
    if code < 0x2E80:
        return _GRAM if any(code in script for script in _UNSPACED) else _RUN
    return _RUN if 0xFF00 <= code < 0xFF61 else _GRAM


def _fold(character: str) -> str:
    """Lower case and half width, where these are one character too."""
    if "\uff01" <= character <= "\uff5e":  # full-width forms of ASCII
        character = chr(ord(character) - 0xFEE0)
    lower = character.lower()
    return lower if len(lower) == 1 else character


class CharacterTable:
    """One number per character, computed when the character is first met.

    Python's own view of a character (is it a letter, its lower case) is the definition. Asking
    Python for all 1.1 million would cost a worker 80 ms at its start; texts hold a few thousand
    distinct characters. Untouched pages of the table take no memory. Safe to share between threads:
    two may compute the same entry, and write the same number.
    """

    def __init__(self, compute: Callable[[int], int]) -> None:
        self._compute = compute
        self._table = np.zeros(sys.maxunicode + 1, np.int32)  # zero: not computed yet

    def __getitem__(self, codes: Codes) -> Codes:
        """The number of each code point: (n,) int32 -> (n,) int32."""
        found = self._table.take(codes)
        unknown = np.unique(codes[found == 0])
        if len(unknown):
            self._table[unknown] = [self._compute(code) + 1 for code in unknown.tolist()]
            found = self._table.take(codes)
        found -= 1
        return found


_kinds = CharacterTable(_kind_of)
_digits = CharacterTable(lambda code: chr(code).isdigit())
_is_alnum = CharacterTable(lambda code: chr(code).isalnum())
_folds = CharacterTable(lambda code: ord(_fold(chr(code))))
