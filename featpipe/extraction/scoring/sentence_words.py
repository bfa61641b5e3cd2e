"""Words by sentence: what the log odds of sentences are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.tokens import mix
from featpipe.store.sorted_values import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens
    from featpipe.extraction.scoring.word_pairs import WordPairs

    Places = NDArray[np.int32]

#: Places of the hashed space of words and pairs.
N_PLACES = 1 << 16


class SentenceWords(NamedTuple):
    """Each distinct word, and pair of tokens, of each sentence of a page. Arrays of one length."""

    places: Places
    """In the hashed space (N_PLACES,)."""
    sentences: NDArray[np.int64]
    n_sentences: int

    @classmethod
    def of(cls, tokens: Tokens, pairs: WordPairs) -> SentenceWords:
        """Of a page with at least one sentence; marks are no words."""
        is_word = ~tokens.is_mark
        words = distinct(tokens.sentence[is_word] << 32 | tokens.code[is_word])
        sentences = np.concatenate((words >> 32, pairs.sentences))
        codes = np.concatenate(
            (words & 0xFFFFFFFF, mix(np.repeat(pairs.distinct, np.diff(pairs.pointers)), 1))
        )
        return cls((codes & (N_PLACES - 1)).astype(np.int32), sentences, len(pairs.lengths))
