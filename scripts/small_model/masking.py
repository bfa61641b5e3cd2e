"""Samples of masked language modelling: whole jieba words are hidden.

A sample is a stretch of one document. Of its words about MASKED of the characters are chosen; of
these 80 % are replaced by [MASK], 10 % by a random piece, 10 % stay (Devlin et al. 2019), a word at
a time (Cui et al. 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from small_model.corpus import WEIGHTS

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

    from small_model.corpus import Corpus
    from small_model.network import Network

MASKED = 0.18
FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x30, 0x3A)})


class Stretches:
    """Draws stretches of text, sources in fixed shares, so that small sources are not drowned."""

    def __init__(self, texts: dict[str, list[str]]) -> None:
        self.names = sorted(texts)
        share = np.array([WEIGHTS[name] for name in self.names])
        self.shares = share / share.sum()
        self.joined = {name: "\n".join(texts[name]) for name in self.names}

    def draw(self, rng: np.random.Generator, n_chars: int) -> str:
        """About so many characters, beginning at the start of a line or a sentence."""
        text = self.joined[self.names[int(rng.choice(len(self.names), p=self.shares))]]
        at = int(rng.integers(max(len(text) - n_chars, 1)))
        for mark in ("\n", "。", "；"):
            found = text.find(mark, at, at + n_chars)
            if 0 <= found < at + n_chars // 2:
                at = found + 1
                break
        stretch = text[at : at + n_chars].replace("\n", " ")
        return stretch.translate(FULL_WIDTH) if rng.random() < 0.04 else stretch


class MaskedTask:
    """Masked words; one step in eight has long samples, so that all places learn."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, device: str, n_tokens: int) -> None:
        self.stretches = Stretches(corpus.texts)
        self.n_tokens = n_tokens
        self.tokenizer = tokenizer
        self.device = device

    def loss(
        self, network: Network, rng: np.random.Generator, part: int = 1
    ) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        """-> ({"masked": loss}, {"right": share found}); `part` 4 takes a quarter of the tokens."""
        import torch

        length = 512 if rng.random() < 1 / 8 else 128
        shape = (max(self.n_tokens // part // length, 1), length)
        ids, targets = draw_masked(self.stretches, self.tokenizer, rng, shape)
        loss, right = network.masked_loss(
            torch.from_numpy(ids).to(self.device), torch.from_numpy(targets).to(self.device)
        )
        return {"masked": loss}, {"right": right}


def draw_masked(
    stretches: Stretches, tokenizer: Tokenizer, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """-> (ids, targets), both (samples, length) int64; targets are -100 where nothing is asked."""
    n_samples, length = shape
    ids = np.zeros(shape, np.int64)
    targets = np.full(shape, -100, np.int64)
    n_pieces = tokenizer.get_vocab_size()
    tokenizer.enable_truncation(length)
    for row in range(n_samples):
        text = stretches.draw(rng, length + length // 4)
        encoded = tokenizer.encode(text)
        n = len(encoded.ids)
        ids[row, :n] = encoded.ids
        for places in _draw_words(text, encoded.offsets, rng):
            targets[row, places] = ids[row, places]
            fate = rng.random()
            if fate < 0.8:
                ids[row, places] = 4  # [MASK]
            elif fate < 0.9:
                ids[row, places] = rng.integers(5, n_pieces, len(places))
    return ids, targets


def _draw_words(
    text: str, offsets: list[tuple[int, int]], rng: np.random.Generator
) -> list[list[int]]:
    """Token places of the words to hide, a list for each word."""
    import jieba

    word_of = np.zeros(len(text) + 1, np.int64)
    at = 0
    for number, word in enumerate(jieba.cut(text, HMM=False)):
        word_of[at : at + len(word)] = number
        at += len(word)
    places: dict[int, list[int]] = {}
    for place, (start, end) in enumerate(offsets):
        if end > start:
            places.setdefault(int(word_of[start]), []).append(place)
    words = list(places)
    rng.shuffle(words)
    wanted, chosen = max(1, int(MASKED * sum(map(len, places.values())))), []
    for word in words:
        if wanted <= 0:
            break
        chosen.append(places[word])
        wanted -= len(places[word])
    return chosen
