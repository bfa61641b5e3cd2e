"""The last stages: entities, masked words and meanings in every step, on one trunk."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import torch

from small_model.labels import Labeller
from small_model.lexicon import Synonyms
from small_model.meanings import split
from small_model.network import LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokenizers import Encoding, Tokenizer

    from small_model.corpus import Corpus
    from small_model.labels import Span
    from small_model.masking import MaskedTask
    from small_model.meanings import Meanings
    from small_model.network import Network

LABEL_PLACE = {label: place for place, label in enumerate(LABELS)}
CHARS = 64  # of a sample, about
LOTS = 4  # by length, so that short samples are not padded to the longest
#: Weights of the losses.
SHARES = {"entities": 1.0, "bag": 4.0, "meaning": 2.0, "masked": 0.1}
#: The same at the end, when words are known and entities, which gave way to them, come back.
SETTLING = SHARES | {"entities": 3.0, "meaning": 0.5}
EXCHANGED = 0.4  # of the words of a passage that have synonyms

Losses = dict[str, torch.Tensor]


class JointTask:
    """With the usual 2,048 tokens: 32 entity samples, 256 tokens with hidden words.

    With `meanings`, only 20 entity samples; they also say what their words mean, and so do 8
    passages of the texts, with some words exchanged for synonyms, and 16 heaps of words, among
    which rare ones are less rare than in the texts. When it settles: 32, 4 and 8.
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Tokenizer,
        masked: MaskedTask,
        device: str,
        meanings: Meanings | None = None,
        *,
        settles: bool = False,
    ) -> None:
        self.labeller = Labeller(corpus)
        self.tokenizer, self.masked, self.device = tokenizer, masked, device
        self.n_entities = max(masked.n_tokens // CHARS, LOTS)
        self.meanings = meanings
        self.shares = SETTLING if settles else SHARES
        self.n_passages = max(self.n_entities // (8 if settles else 4), 1)
        if meanings is not None:
            self.words = _Words()
            self.synonyms = Synonyms(self.words.encode)
            if not settles:
                self.n_entities = max(self.n_entities * 5 // 8, LOTS)

    def loss(self, network: Network, rng: np.random.Generator) -> tuple[Losses, dict[str, float]]:
        """-> the losses, each by its share, and what share of the hidden pieces was found."""
        own = Random(int(rng.integers(2**62)))  # noqa: S311 - not a secret
        samples = [self.labeller.draw(own) for _ in range(self.n_entities)]
        samples.sort(key=lambda sample: len(sample[0]))
        n_chars = sum(len(text) for text, _ in samples)
        lots = [
            [samples[number] for number in part]
            for part in np.array_split(np.arange(len(samples)), LOTS)
        ]
        shares = [sum(len(text) for text, _ in lot) / n_chars for lot in lots]
        parts = [self._learn(network, lot, is_labelled=True) for lot in lots]
        if self.meanings is not None:
            for texts in self._draw_texts(self.meanings, rng):
                unlabelled: list[tuple[str, list[Span]]] = [(text, []) for text in texts]
                parts.append(self._learn(network, unlabelled, is_labelled=False))
                shares.append(1.0)
        losses: Losses = {}
        for share, part in zip(shares, parts, strict=True):
            for name, loss in part.items():
                losses[name] = losses.get(name, 0) + share * loss
        masked, figures = self.masked.loss(network, rng, part=8)
        losses |= masked
        return {name: self.shares[name] * loss for name, loss in losses.items()}, figures

    def _draw_texts(self, meanings: Meanings, rng: np.random.Generator) -> Iterator[list[str]]:
        passages = [self.masked.stretches.draw(rng, CHARS) for _ in range(self.n_passages)]
        yield [self._exchange(text, rng) for text in passages]
        yield [meanings.draw_heap(rng, CHARS) for _ in range(2 * self.n_passages)]

    def _exchange(self, text: str, rng: np.random.Generator) -> str:
        """Whole words only: 美 is a member, 美国 is not torn for it."""
        words = np.array(self.words.encode(text), np.int64)
        exchanged = self.synonyms.exchange(words, rng, EXCHANGED)
        return "".join(self.words.names[number] for number in exchanged.tolist())

    def _learn(
        self, network: Network, lot: list[tuple[str, list[Span]]], *, is_labelled: bool
    ) -> Losses:
        ids, labels, encoded = encode_labelled(lot, self.tokenizer)
        meant = None
        if self.meanings is not None:
            numbers, wanted = self.meanings.targets([text for text, _ in lot], encoded)
            meant = (numbers.to(self.device), wanted.to(self.device))
        return network.text_losses(
            ids.to(self.device), labels.to(self.device) if is_labelled else None, meant
        )


class _Words:
    """Numbers words as they come."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        numbers = []
        for word in split(text):
            if word not in self._places:
                self._places[word] = len(self.names)
                self.names.append(word)
            numbers.append(self._places[word])
        return numbers


def encode_labelled(
    samples: list[tuple[str, list[Span]]], tokenizer: Tokenizer, longest: int = 160
) -> tuple[torch.Tensor, torch.Tensor, list[Encoding]]:
    """-> ids and labels (samples, tokens), -100 at padding and special tokens; the encodings."""
    tokenizer.enable_truncation(longest)
    encoded = tokenizer.encode_batch([text for text, _ in samples])
    shape = (len(samples), max(len(one.ids) for one in encoded))
    ids, labels = np.zeros(shape, np.int64), np.full(shape, -100, np.int64)
    for row, (one, (text, spans)) in enumerate(zip(encoded, samples, strict=True)):
        ids[row, : len(one.ids)] = one.ids
        by_char = np.zeros(len(text) + 1, np.int64)
        for start, end, kind in spans:
            if kind == "?":
                by_char[start:end] = -100
                continue
            by_char[start:end] = LABEL_PLACE[f"I-{kind}"]
            by_char[start] = LABEL_PLACE[f"B-{kind}"]
        for place, (start, end) in enumerate(one.offsets):
            if end > start:
                labels[row, place] = by_char[start]
    return torch.from_numpy(ids), torch.from_numpy(labels), encoded
