"""The sentence stage: the weighted bag of characters, taught which texts belong together.

Pairs without labels, all of one source in a step and each other's negatives: a clause and the
passage around it (at times without the clause), neighbouring passages, the name of a law and its
article, and a few words and the heap of dictionary words that they were drawn from, so that
characters the corpus lacks stay apart, too. More than half of the clauses are wrapped in words that
only ask, so that a question weighs what it is about: by vectors alone that raised the MRR of STARD
from .297 to .317, the recall of CMRC from .924 to .934.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from small_model.contrast import Plan
from small_model.gazetteer import dictionary
from small_model.lexicon import Fillers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenizers import Tokenizer

    from small_model.corpus import Corpus

Ids = np.ndarray
#: A step of 512 pairs takes a twentieth of a second.
PLAN = Plan("bags", stream=7, rate=1e-3, temperature=0.03, n_warm=50, betas=(0.9, 0.98))
FILLED = 0.6  # share of the first texts that get words around them
SOURCES = {"abstracts": 0.2, "laws": 0.1, "articles": 0.1, "announcements": 0.1, "titled": 0.1,
           "own": 0.0, "words": 0.4}  # fmt: skip


@dataclass
class Flat:
    """Texts as piece ids laid end to end; text i is ids[bounds[i] : bounds[i + 1]]."""

    ids: Ids
    bounds: np.ndarray

    @classmethod
    def of(cls, texts: list[str], tokenizer: Tokenizer) -> Flat:
        """Encode without special tokens."""
        tokenizer.no_truncation()
        rows = [one.ids for one in tokenizer.encode_batch(texts, add_special_tokens=False)]
        ids = np.fromiter((i for row in rows for i in row), np.int64)
        return cls(ids, np.array([0, *accumulate(map(len, rows))]))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> Ids:
        return self.ids[self.bounds[number] : self.bounds[number + 1]]


class Pairing:
    """Draws pairs of id arrays; `rng` alone decides which."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer) -> None:
        self.texts = {name: Flat.of(texts, tokenizer) for name, texts in corpus.texts.items()}
        self.titles = Flat.of([t.partition("第")[0] for t, _ in corpus.titled], tokenizer)
        words = [(word, count) for word, count, _ in dictionary() if len(word) > 1]
        self.words = Flat.of([word for word, _ in words], tokenizer)
        self.word_weights = np.cumsum([count**0.5 for _, count in words])
        names = [*corpus.texts, "words", *(["titled"] if corpus.titled else [])]
        shares = np.array([SOURCES[name] if len(names) > 2 else 1.0 for name in names])
        self.names, self.shares = names, shares / shares.sum()
        self.fillers = Fillers(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)

    def draw_step(self, rng: np.random.Generator, n: int) -> tuple[list[Ids], list[Ids]]:
        """-> n first and n second texts."""
        name = self.names[int(rng.choice(len(self.names), p=self.shares))]
        draw: Callable[[np.random.Generator], tuple[Ids, Ids]]
        if name == "words":
            draw = self._draw_words
        elif name == "titled":
            draw = self._draw_titled
        else:
            flat = self.texts[name]
            draw = lambda rng: self._draw_passage(flat, rng)  # noqa: E731 - bound to one source
        pairs = [draw(rng) for _ in range(n)]
        first = [self.fillers.add_to(one, rng, FILLED) for one, _ in pairs]
        return first, [second for _, second in pairs]

    def _draw_passage(self, flat: Flat, rng: np.random.Generator) -> tuple[Ids, Ids]:
        text = flat[int(rng.integers(len(flat)))]
        while len(text) < 8:
            text = flat[int(rng.integers(len(flat)))]
        n_ids = int(rng.choice((60, 100, 200, 400)))
        at = int(rng.integers(max(len(text) - n_ids, 1)))
        whole = text[at : at + n_ids]
        if rng.random() < 0.1 and len(whole) >= 32:
            return np.split(whole, 2) if len(whole) % 2 == 0 else np.split(whole[1:], 2)  # type: ignore[return-value] # two parts
        length = min(int(rng.integers(4, 22)), len(whole) - 1)
        place = int(rng.integers(len(whole) - length))
        clause = whole[place : place + length]
        if rng.random() < 0.3:
            whole = np.concatenate([whole[:place], whole[place + length :]])
        if rng.random() < 0.5:
            clause = clause[rng.random(len(clause)) > 0.3]
        if rng.random() < 0.25:
            other = int(rng.integers(max(len(whole) - length, 1)))
            clause = np.concatenate([clause, whole[other : other + length // 2]])
        return (clause if len(clause) else whole[:4]), whole

    def _draw_titled(self, rng: np.random.Generator) -> tuple[Ids, Ids]:
        number = int(rng.integers(len(self.titles)))
        article = self.texts["articles"][number][:200]
        at = int(rng.integers(max(len(article) - 20, 1)))
        return np.concatenate([self.titles[number], article[at : at + 12]]), article

    def _draw_words(self, rng: np.random.Generator) -> tuple[Ids, Ids]:
        def draw(n: int) -> np.ndarray:
            return np.searchsorted(self.word_weights, rng.random(n) * self.word_weights[-1])

        heap = draw(int(rng.choice((30, 60, 120))))
        asked = [*rng.choice(heap, int(rng.integers(2, 7))), *draw(int(rng.integers(3)))]
        first, second = ([self.words[int(i)] for i in words] for words in (asked, heap))
        return np.concatenate(first), np.concatenate(second)
