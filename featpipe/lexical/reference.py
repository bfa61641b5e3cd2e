"""The only file that imports jieba.

Guarantees:
- ``jieba.dt`` is never touched and jieba's cache file is neither read nor written.
- A word deleted here (frequency 0) is not deleted in anybody else's tokenizer. jieba keeps deleted
  words in one module-wide set; ours is put in its place only while we cut, under a lock.
- Importing jieba shows no warning, also under ``-W error`` and on Python 3.12 and later.
"""

from __future__ import annotations

import io
import logging
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from featpipe.lexical.codes import CodedTexts, Offsets
    from featpipe.lexical.jieba_dictionary import InstalledJieba, UserDictionary

#: jieba's set of deleted words belongs to the module: one of us at a time.
_force_split_lock = threading.RLock()


def import_jieba() -> ModuleType:
    """jieba, imported without its warnings and without its chatter on stderr."""
    with warnings.catch_warnings():
        # pkg_resources is deprecated, and jieba's regular expressions are SyntaxWarnings from
        # Python 3.12 on; neither says anything about the user's program.
        warnings.simplefilter("ignore")
        try:
            import jieba
        except ImportError as error:
            raise MissingExtra("jieba cannot be imported", hint="pip install jieba") from error
    logging.getLogger("jieba").setLevel(logging.WARNING)
    return jieba  # type: ignore[no-any-return]  # jieba has no types


class Jieba:
    """jieba itself, cutting with a private ``jieba.Tokenizer``: the truth, at its own speed."""

    def __init__(
        self, installed: InstalledJieba, user_dictionaries: Sequence[UserDictionary]
    ) -> None:
        jieba = import_jieba()
        self._finalseg = jieba.finalseg
        self._tokenizer = jieba.Tokenizer()
        # What Tokenizer.initialize() does, without jieba.cache: that file has one fixed name for
        # every user and every version, and reading it is no faster than building.
        words = io.BytesIO(installed.dictionary_path.read_bytes())
        self._tokenizer.FREQ, self._tokenizer.total = self._tokenizer.gen_pfdict(words)
        self._tokenizer.initialized = True
        self.force_split: set[str] = set()
        for dictionary in user_dictionaries:
            self._load(dictionary)

    def _load(self, dictionary: UserDictionary) -> None:
        data = io.BytesIO(dictionary.read())
        with self._own_force_split():
            try:
                self._tokenizer.load_userdict(data)
            except ValueError as error:
                raise UsageError(
                    f"the user dictionary {dictionary.path} cannot be loaded: {error}",
                    hint="one word a line in UTF-8: word, optional frequency, optional tag",
                ) from error

    @property
    def frequencies(self) -> dict[str, int]:
        """Every word and every prefix of one; a prefix that is no word has frequency 0."""
        return self._tokenizer.FREQ  # type: ignore[no-any-return]  # jieba has no types

    @property
    def total(self) -> int:
        """The sum of frequencies, as jieba counts it: repeats and replaced words included."""
        return self._tokenizer.total  # type: ignore[no-any-return]  # jieba has no types

    @property
    def model(self) -> tuple[dict[str, float], dict[str, Any], dict[str, Any]]:
        """The hidden Markov model: start, transition and emission logarithms by state BMES."""
        return self._finalseg.start_P, self._finalseg.trans_P, self._finalseg.emit_P

    def cut_many(self, texts: Sequence[str], *, hmm: bool) -> list[list[str]]:
        """Every text's words, in order; joined they give the text back."""
        with self._own_force_split():
            return [self._tokenizer.lcut(text, HMM=hmm) for text in texts]

    def cut_coded(
        self, texts: Sequence[str], coded: CodedTexts, *, hmm: bool, search: bool = False
    ) -> tuple[Offsets, Offsets]:
        """Starts and ends (n_words,) int64 over all texts laid end to end, texts in order."""
        mode = "search" if search else "default"
        spans: list[tuple[int, int]] = []
        with self._own_force_split():
            for text, base in zip(texts, coded.bounds.tolist(), strict=False):
                found = self._tokenizer.tokenize(text, mode=mode, HMM=hmm)
                spans.extend((base + start, base + end) for _, start, end in found)
        both = np.array(spans, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @contextmanager
    def _own_force_split(self) -> Iterator[None]:
        with _force_split_lock:
            others = self._finalseg.Force_Split_Words
            self._finalseg.Force_Split_Words = self.force_split
            try:
                yield
            finally:
                self._finalseg.Force_Split_Words = others
