"""Words as spans: jieba's cuts, exactly, for batches of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from featpipe.errors import UsageError
from featpipe.features.words.source import as_user_dictionaries, find_jieba, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from featpipe.features.words.reference import Jieba

#: Counted up when the same jieba and dictionaries would give other spans than before.
WORDS_VERSION = 1

Engine = Literal["auto", "jieba"]
ENGINES = ("auto", "jieba")

Spans = NDArray[np.uint32]


class Words:
    """Cuts texts into jieba's words.

    Guarantees:
    - The spans of a text are those of ``jieba.cut`` with the same dictionaries, in order, and they
      tile the text: each starts where the one before ended.
    - The answer does not depend on the engine; engines differ in speed and memory only.
    - Pickles as paths and hashes, not as a dictionary. On arrival a user dictionary that has
      changed since raises :class:`~featpipe.errors.UsageError`.

    Args:
        user_dict: one file of words in jieba's format, or several, loaded in this order.
        hmm: also find words that no dictionary holds, as ``jieba.cut(HMM=True)`` does.
        engine: ``"jieba"`` runs jieba itself; ``"auto"`` takes the fastest that is known equal.

    Raises:
        UsageError: an unknown engine, or a user dictionary that cannot be read.
        MissingExtra: jieba is not installed.
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
        self._installed = find_jieba()
        self._user_dictionaries = as_user_dictionaries(user_dict)
        self._hmm = hmm
        self._engine = engine
        self._jieba: Jieba | None = None

    @property
    def spec(self) -> dict[str, object]:
        """Every part that decides where a text is cut, as plain JSON values."""
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

    def spans(self, text: str) -> Spans:
        """The words of one text: (n_words, 2) uint32, start and end in characters."""
        return self.spans_many([text])[0]

    def spans_many(self, texts: Sequence[str]) -> tuple[Spans, NDArray[np.int64]]:
        """The words of many texts.

        Returns:
            spans (m, 2) uint32, start and end in characters of the text each belongs to, texts in
            order; lengths (n_texts,) int64, words per text.
        """
        return self._reference().spans_many(texts, hmm=self._hmm)

    def search_spans_many(self, texts: Sequence[str]) -> tuple[Spans, NDArray[np.int64]]:
        """Words and the shorter words inside them, in the order of ``jieba.cut_for_search``.

        As :meth:`spans_many`, with the dictionary's words of two and then of three characters
        inside each longer word before it.
        """
        return self._reference().spans_many(texts, hmm=self._hmm, search=True)

    def cut(self, text: str) -> list[str]:
        """The words of one text, as ``jieba.lcut`` gives them."""
        return self.cut_many([text])[0]

    def cut_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of many texts, each as ``jieba.lcut`` gives them."""
        return self._reference().cut_many(texts, hmm=self._hmm)

    def _reference(self) -> Jieba:
        if self._jieba is None:
            from featpipe.features.words.reference import Jieba

            self._jieba = Jieba(self._installed, self._user_dictionaries)
        return self._jieba

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_jieba": None}
