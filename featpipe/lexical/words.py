"""Words as spans: jieba's cuts, exactly, for batches of texts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from featpipe.errors import MissingExtra, UsageError
from featpipe.lexical.backend import has_numba
from featpipe.lexical.compile import CodedTexts, Offsets
from featpipe.lexical.cut import CompiledCutter, open_cutter
from featpipe.lexical.interning import intern_spans
from featpipe.lexical.jieba_dictionary import Jieba, as_user_dictionaries, find_jieba, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from featpipe.lexical.jieba_dictionary import UserDictionary

#: Counted up when the same jieba and dictionaries would give other spans than before.
WORDS_VERSION = 1

Engine = Literal["auto", "numba", "numpy", "jieba"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

Spans = NDArray[np.uint32]


class Words:
    """Cuts texts into jieba's words.

    Guarantees:
    - The spans of a text are those of ``jieba.cut`` with the same dictionaries, in order, and they
      tile the text: each starts where the one before ended.
    - The answer does not depend on the engine; engines differ in speed and memory only.
    - Pickles as paths and hashes. Unpickled, a user dictionary that has changed since raises
      :class:`~featpipe.errors.UsageError` at the first text.
    - Safe to share between threads; numba's kernels run without the GIL.

    Args:
        user_dict: one file of words in jieba's format, or several, loaded in this order.
        hmm: also find words that no dictionary holds, as ``jieba.cut(HMM=True)`` does.
        engine: ``"jieba"`` runs jieba itself (0.6 s and 70 MB to start, in each process);
            ``"numpy"`` walks its compiled tables (a few ms, shared memory), ``"numba"`` does so
            five times faster after half a second of loading; ``"auto"`` begins with numpy,
            changes to numba after a million characters, and runs jieba itself where the compiled
            tables do not cut as jieba does.

    Raises:
        UsageError: an unknown engine, or a user dictionary that cannot be read.
        MissingExtra: jieba is not installed, or numba is not and was asked for by name.
    """

    def __init__(
        self,
        user_dict: Path | str | Iterable[Path | str] | None = None,
        *,
        hmm: bool = True,
        engine: Engine = "auto",
    ) -> None:
        if engine not in ENGINES:
            raise UsageError(
                f"unknown word engine {engine!r}", hint=f"choose from {', '.join(ENGINES)}"
            )
        if engine == "numba" and not has_numba():
            raise MissingExtra("numba is not installed", hint="pip install 'featpipe[fast]'")
        self._installed = find_jieba()
        self._user_dictionaries = as_user_dictionaries(user_dict)
        _warn_of_unmatchable(self._user_dictionaries)
        self._hmm = hmm
        self._engine = engine
        self._cutter: CompiledCutter | Jieba | None = None

    @property
    def spec(self) -> dict[str, object]:
        """Everything that decides where a text is cut, as plain JSON values."""
        return {
            "words": WORDS_VERSION,
            "jieba": self._installed.version,
            "dictionary": self._installed.dictionary,
            "model": self._installed.model if self._hmm else None,
            "user_dictionaries": [each.content for each in self._user_dictionaries],
            "hmm": self._hmm,
        }

    @property
    def fingerprint(self) -> str:
        """32 hex digits over :attr:`spec`."""
        return hash_of(repr(sorted(self.spec.items())).encode())

    @property
    def engine(self) -> Literal["numba", "numpy", "jieba"]:
        """The engine of the next call. Opens the tables."""
        cutter = self._open()
        return cutter.backend if isinstance(cutter, CompiledCutter) else "jieba"

    def spans(self, text: str) -> Spans:
        """The words of one text: (n_words, 2) uint32, start and end in characters."""
        return self.spans_many([text])[0]

    def spans_many(self, texts: Sequence[str]) -> tuple[Spans, Offsets]:
        """The words of many texts.

        Returns:
            spans (m, 2) uint32, start and end in characters of the text each belongs to, texts in
            order; lengths (n_texts,) int64, words per text.
        """
        coded = CodedTexts.from_texts(texts)
        return _relative(coded, *self.cut_coded(texts, coded))

    def search_spans_many(self, texts: Sequence[str]) -> tuple[Spans, Offsets]:
        """Words and the shorter words inside them, in the order of ``jieba.cut_for_search``.

        As :meth:`spans_many`, with the dictionary's words of two and then of three characters
        inside each longer word before it.
        """
        coded = CodedTexts.from_texts(texts)
        return _relative(coded, *self.cut_coded(texts, coded, search=True))

    def cut(self, text: str) -> list[str]:
        """The words of one text, as ``jieba.lcut`` gives them."""
        return self.cut_many([text])[0]

    def cut_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of many texts, each as ``jieba.lcut`` gives them."""
        batch = self.encode(texts)
        words = list(map(batch.vocabulary.__getitem__, batch.ids.tolist()))
        cuts = np.cumsum(batch.lengths).tolist()
        return [words[low:high] for low, high in zip([0, *cuts[:-1]], cuts, strict=False)]

    def encode(self, texts: Sequence[str]) -> TermBatch:
        """The words of many texts as numbers; each word as it stands, white space included."""
        coded = CodedTexts.from_texts(texts)
        starts, ends = self.cut_coded(texts, coded)
        interned = intern_spans(coded.codes, starts, ends, backend=self.backend)
        vocabulary = interned.spell("".join(texts), starts, ends)
        lengths = np.diff(np.searchsorted(starts, coded.bounds))
        return TermBatch(vocabulary, interned.ids, lengths)

    @property
    def backend(self) -> Literal["numba", "numpy"]:
        """The kernels to run beside the engine: numba's only where the engine is numba."""
        return "numba" if self.engine == "numba" else "numpy"

    def cut_coded(
        self, texts: Sequence[str], coded: CodedTexts, *, search: bool = False
    ) -> tuple[Offsets, Offsets]:
        """Starts and ends (n_words,) int64 over all texts laid end to end, texts in order."""
        cutter = self._open()
        if isinstance(cutter, CompiledCutter):
            starts = cutter.cut(coded, hmm=self._hmm)
            ends = np.append(starts[1:], len(coded.codes))[: len(starts)]
            return cutter.words_within(coded, starts, ends) if search else (starts, ends)
        return cutter.cut_coded(texts, coded.bounds, hmm=self._hmm, search=search)

    def _open(self) -> CompiledCutter | Jieba:
        cutter = self._cutter
        if cutter is None and self._engine != "jieba":
            cutter = open_cutter(self._installed, self._user_dictionaries, self._engine)
        self._cutter = cutter or Jieba(self._installed, self._user_dictionaries)
        return self._cutter

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_cutter": None}


def _warn_of_unmatchable(dictionaries: Iterable[UserDictionary]) -> None:
    for dictionary in dictionaries:
        if dictionary.unmatchable:
            warnings.warn(
                f"{len(dictionary.unmatchable)} words in {dictionary.path} can never match, "
                "because jieba cuts at characters they hold: "
                + ", ".join(map(repr, dictionary.unmatchable[:3])),
                stacklevel=3,
            )


def _relative(coded: CodedTexts, starts: Offsets, ends: Offsets) -> tuple[Spans, Offsets]:
    """Spans in characters of their own text, and their number by text."""
    owners = np.searchsorted(coded.bounds, starts, side="right") - 1
    spans = np.stack((starts, ends), axis=1) - coded.bounds[owners][:, None]
    return spans.astype(np.uint32), np.bincount(owners, minlength=coded.n_texts)


@dataclass(frozen=True, slots=True)
class TermBatch:
    """The terms of a batch of texts, numbered by the batch's own vocabulary. Worker -> writer.

    ``vocabulary`` lists the distinct terms in order of first appearance; ``ids`` (n_terms,) int32
    are places in it, in text order, repeats included; ``lengths`` (n_texts,) int64 holds the number
    of terms per text.
    """

    vocabulary: list[str]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]


def join_batches(batches: Sequence[TermBatch]) -> TermBatch:
    """Concatenate batches; the vocabulary is numbered by first appearance again."""
    numbers: dict[str, int] = {}
    ids = [np.zeros(0, np.int32)]
    for batch in batches:
        own = [numbers.setdefault(term, len(numbers)) for term in batch.vocabulary]
        ids.append(np.array(own, np.int32).take(batch.ids))
    lengths = np.concatenate([np.zeros(0, np.int64), *(batch.lengths for batch in batches)])
    return TermBatch(list(numbers), np.concatenate(ids), lengths)
