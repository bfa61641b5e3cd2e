"""What words mean, as the texts and the lexicon tell it: word vectors that the layers learn to say.

A bag of characters finds what shares characters. Which words stand for one another is told by the
company they keep (`start.neighbour_vectors`) and by the groups of `lexicon`; then the vectors are
taught which clause belongs to which passage although half of its words are taken out of that,
others are exchanged for synonyms and the rest is wrapped into a question (InfoNCE). The sum over a
word's tokens is what the last layer has to say, so the sum over a text is the sum over its words,
beside the bag. The words stay here: the model has no dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from small_model.contrast import Plan, learn_pairs
from small_model.lexicon import Fillers, Synonyms, read_fillers, read_groups
from small_model.shape import MEANING
from small_model.start import LEAST, neighbour_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tokenizers import Encoding

    from small_model.contrast import Lesson
    from small_model.corpus import Corpus

    Ids = np.ndarray
    Pair = tuple[Ids, Ids]
    Say = Callable[[str], None]

#: Characters of a text that are read: long announcements and laws would drown the others.
LONGEST = 4000
#: Words with a vector, beside those of the lexicon, and what an occurrence counts in each source.
N_WORDS = 12_000
COUNTS = {"laws": 1.0, "articles": 1.0, "own": 2.0, "abstracts": 0.5, "announcements": 0.3}
PLAN = Plan("meanings", stream=8, rate=2e-3, temperature=0.05, n_warm=30, betas=(0.9, 0.999))
#: Shares: of steps that pair members of groups, of clauses whose words are exchanged (and of those
#: words), of clauses that are wrapped into questions.
GROUPS, EXCHANGED, FILLED = 0.3, (0.7, 0.5), 0.6
#: Words that hold a text together and mean nothing; their tokens shall be silent.
SILENT = frozenset("，。！？；：、,.!?;:“”\"'（）()《》〈〉【】[]—-…·%％/ 的了着吗呢")


@dataclass(frozen=True)
class Meanings:
    """Word -> row of `table` (words, MEANING) float32, in the scale of the bag's vectors.

    `weights` (words,) say how often a word is drawn for `draw_heap`.
    """

    places: dict[str, int]
    table: np.ndarray
    weights: np.ndarray

    @classmethod
    def load(cls, path: Path) -> Meanings:
        """What `save` wrote."""
        kept = np.load(path)
        places = {str(word): n for n, word in enumerate(kept["words"])}
        return cls(places, kept["table"], kept["weights"])

    def save(self, path: Path) -> None:
        """One file, `.npz`."""
        np.savez(path, words=np.array(list(self.places)), table=self.table, weights=self.weights)

    @classmethod
    def make(
        cls, corpus: Corpus, lexical: Callable[[list[str]], np.ndarray], lesson: Lesson, say: Say
    ) -> Meanings:
        """Read all texts, count, factorise, teach, and bring to the scale of bags.

        Args:
            corpus: its `texts`.
            lexical: gives the summed bags (texts, dims) of texts.
            lesson: how long the table learns from pairs.
            say: a line for whoever waits.

        """
        texts = [text[:LONGEST] for source in corpus.texts.values() for text in source]
        words, streams, counts = _choose_words(corpus)
        places = {word: n for n, word in enumerate(words)}
        say(f"{len(words)} words, {int(counts.sum())} times in the texts")

        def encode(text: str) -> list[int]:
            return [places[word] for word in cut(text) if word in places]

        synonyms, fillers = Synonyms(encode), Fillers(encode)
        table = neighbour_vectors(streams, len(words), MEANING).astype(np.float32)
        table = draw_together(_unit(table), synonyms.groups, is_rare=counts < LEAST)
        rarity = np.log(counts.sum() / (counts + LEAST))
        rarity = np.where(counts < LEAST, 1.0, rarity / rarity.mean())
        table *= rarity[:, None].astype(np.float32)
        pairing = Pairing([s for s in streams if len(s) >= 16], synonyms, fillers)
        if pairing.streams:
            table = learn_pairs(table, pairing.draw_step, PLAN, lesson, say)
        found = cls(places, table, weights=np.sqrt(counts + 30).astype(np.float32))
        some = [text[:300] for text in texts[:: max(len(texts) // 2000, 1)]]
        spoken = np.stack([found.sum_of(text) for text in some])
        ratio = np.linalg.norm(lexical(some), axis=1).mean() / np.linalg.norm(spoken, axis=1).mean()
        return replace(found, table=(ratio * table).astype(np.float32))

    def sum_of(self, text: str) -> np.ndarray:
        """(MEANING,) over the known words of a text."""
        rows = [self.places[word] for word in cut(text) if word in self.places]
        total: np.ndarray = self.table[rows].sum(axis=0)
        return total

    def draw_heap(self, rng: np.random.Generator, n_chars: int) -> str:
        """About so many characters of known words, frequent ones a little more often."""
        drawn = rng.random(n_chars // 2) * self._bounds[-1]
        words = self._words[np.searchsorted(self._bounds, drawn)]
        return ("、" if rng.random() < 0.5 else "").join(words)[:n_chars]

    @cached_property
    def _words(self) -> np.ndarray:
        return np.array(list(self.places))

    @cached_property
    def _bounds(self) -> np.ndarray:
        return np.cumsum(self.weights, dtype=np.float64)

    def targets(
        self, texts: Sequence[str], encoded: Sequence[Encoding]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What the tokens shall say together: (texts, tokens) numbers, (words, MEANING).

        The number is that of the word a token belongs to, -1 where nothing is asked: in padding,
        and in words without a vector. Number 0 are all that shall be silent: special tokens, SILENT
        and ASCII without a vector.
        """
        shape = (len(texts), max(len(one.ids) for one in encoded))
        numbers = np.full(shape, -1, np.int64)
        wanted = [np.zeros(MEANING, np.float32)]
        for row, (text, one) in enumerate(zip(texts, encoded, strict=True)):
            number_at = np.full(len(text) + 1, -1, np.int64)
            at = 0
            for word in split(text):
                if word in self.places:
                    number_at[at : at + len(word)] = len(wanted)
                    wanted.append(self.table[self.places[word]])
                elif word in SILENT or word.isascii():
                    number_at[at : at + len(word)] = 0
                at += len(word)
            for place, (start, end) in enumerate(one.offsets):
                if end > start:
                    numbers[row, place] = number_at[start]
                elif one.attention_mask[place]:
                    numbers[row, place] = 0
        return torch.from_numpy(numbers), torch.from_numpy(np.stack(wanted))


def split(text: str) -> Iterator[str]:
    """Words of jieba, in lower case where that keeps their length: nothing is lost."""
    import jieba

    for word in jieba.cut(text):
        yield word.lower() if len(word.lower()) == len(word) else word


def cut(text: str) -> Iterator[str]:
    """Words in lower case; no blanks, nothing of `SILENT`."""
    return (word for word in split(text) if word.strip() and word not in SILENT)


def _choose_words(corpus: Corpus) -> tuple[list[str], list[Ids], np.ndarray]:
    """-> the words that get a vector, the texts in their numbers, how often each occurs."""
    places: dict[str, int] = {}
    streams: dict[str, list[Ids]] = {
        name: [
            np.array([places.setdefault(word, len(places)) for word in cut(text[:LONGEST])])
            for text in texts
        ]
        for name, texts in corpus.texts.items()
    }
    members = [member for group in [*read_groups(), read_fillers()] for member in group]
    written = {places.setdefault(word, len(places)) for one in members for word in cut(one)}
    words = np.array(list(places))
    counts = np.stack(
        [
            np.bincount(np.concatenate(texts).astype(np.int64), minlength=len(words))
            for texts in streams.values()
        ]
    )
    is_chinese = [all("\u4e00" <= char <= "\u9fff" for char in word) for word in places]
    importance = np.array([COUNTS[name] for name in streams]) @ counts * is_chinese
    chosen = set(np.argsort(-importance, kind="stable")[:N_WORDS].tolist())
    kept = np.array(sorted({one for one in chosen if importance[one] > 0} | written))
    row_of = np.full(len(words), -1, np.int64)
    row_of[kept] = np.arange(len(kept))
    rows = [row_of[text.astype(np.int64)] for texts in streams.values() for text in texts]
    return words[kept].tolist(), [text[text >= 0] for text in rows], counts.sum(axis=0)[kept]


def draw_together(
    table: np.ndarray, groups: list[list[tuple[int, ...]]], *, is_rare: np.ndarray
) -> np.ndarray:
    """Rows of unit length moved halfway to the middle of their groups; rare ones move there.

    After Faruqui et al., "Retrofitting word vectors to semantic lexicons" (2015); a phrase stands
    in its group with the sum of its words, of which only rare ones move.
    """
    begun, table = table, table.copy()
    for _ in range(10):
        middles, n_middles = np.zeros_like(table), np.zeros(len(table))
        for group in groups:
            sums = _unit(np.stack([table[list(member)].sum(axis=0) for member in group]))
            for member in group:
                moving = [row for row in member if len(member) == 1 or is_rare[row]]
                middles[moving] += sums.mean(axis=0)
                n_middles[moving] += 1
        moved = n_middles > 0
        middle = _unit(middles[moved])
        rare = is_rare[moved][:, None]
        table[moved] = _unit(np.where(rare, middle, begun[moved] + middle))
    return table


def _unit(rows: np.ndarray) -> np.ndarray:
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-6)
    return unit


@dataclass(frozen=True)
class Pairing:
    """Draws pairs of word ids that belong together; `rng` alone decides which."""

    streams: list[Ids]
    synonyms: Synonyms
    fillers: Fillers

    def draw_step(self, rng: np.random.Generator, n: int) -> tuple[list[Ids], list[Ids]]:
        """All of one kind, so that pairs of groups do not stand out among clauses."""
        of_groups = rng.random() < GROUPS and self.synonyms.groups
        draw = self._draw_groups if of_groups else self._draw_clause
        pairs = [draw(rng) for _ in range(n)]
        return [first for first, _ in pairs], [second for _, second in pairs]

    def _draw_stretch(self, rng: np.random.Generator, n_words: int) -> Ids:
        stream = self.streams[int(rng.integers(len(self.streams)))]
        at = int(rng.integers(max(len(stream) - n_words, 1)))
        return stream[at : at + n_words]

    def _draw_groups(self, rng: np.random.Generator) -> Pair:
        first, second = self.synonyms.draw_pair(rng)
        return first, np.concatenate([second, self._draw_stretch(rng, int(rng.integers(3, 20)))])

    def _draw_clause(self, rng: np.random.Generator) -> Pair:
        """A clause of 6 to 15 words, and its passage without it and without half of its words."""
        while True:
            passage = self._draw_stretch(rng, int(rng.integers(60, 160)))
            length = min(int(rng.integers(6, 16)), len(passage) // 2)
            place = int(rng.integers(len(passage) - length))
            clause = passage[place : place + length]
            rest = np.concatenate([passage[:place], passage[place + length :]])
            words = np.unique(clause)
            rest = rest[~np.isin(rest, words[rng.random(len(words)) < 0.5])]
            if rng.random() < EXCHANGED[0]:
                clause = self.synonyms.exchange(clause, rng, EXCHANGED[1])
            clause = self.fillers.add_to(clause, rng, FILLED)
            if len(rest) >= 4:
                return clause, rest
