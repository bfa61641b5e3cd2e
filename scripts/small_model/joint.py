"""The second stage: sentence pairs, entities and masked words in every step, on one trunk."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from small_model.labels import Labeller
from small_model.network import LABELS
from small_model.pairs import Pairing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from small_model.corpus import Corpus
    from small_model.labels import Span
    from small_model.masking import MaskedTask
    from small_model.network import Network

TEMPERATURE = 0.05
LONGEST = 256  # tokens of a text in a pair
LABEL_PLACE = {label: place for place, label in enumerate(LABELS)}


class JointTask:
    """With the usual 4,096 tokens: 42 pairs, 56 entity samples, 256 tokens with hidden words."""

    def __init__(
        self, corpus: Corpus, tokenizer: Tokenizer, masked: MaskedTask, device: str
    ) -> None:
        self.pairing, self.labeller = Pairing(corpus), Labeller(corpus)
        self.tokenizer, self.masked, self.device = tokenizer, masked, device
        self.n_pairs = max(masked.n_tokens // 96, 2)
        self.n_entities = max(masked.n_tokens // 73, 2)

    def loss(
        self, network: Network, rng: np.random.Generator
    ) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        """-> the three losses and what share of pairs and hidden pieces was found."""
        own = Random(int(rng.integers(2**62)))  # noqa: S311 - not a secret
        pairs, found = self._pair_loss(network, own, self.n_pairs)
        samples = [self.labeller.draw(own) for _ in range(self.n_entities)]
        ids, labels = encode_labelled(samples, self.tokenizer)
        entities = network.entity_loss(ids.to(self.device), labels.to(self.device))
        masked, figures = self.masked.loss(network, rng, part=16)
        losses = {"pairs": pairs, "entities": entities, "masked": 0.3 * masked["masked"]}
        return losses, {"found": found, **figures}

    def _pair_loss(self, network: Network, rng: Random, n: int) -> tuple[torch.Tensor, float]:
        """Cross entropy of each first text over all second and third ones (InfoNCE), both ways."""
        pairs = self.pairing.draw_step(rng, n)
        third = [text for *_, text in pairs if text is not None]
        first = self._vectors(network, [pair[0] for pair in pairs])
        second = self._vectors(network, [pair[1] for pair in pairs])
        wanted = torch.arange(n, device=self.device)
        others = torch.cat([second, self._vectors(network, third)]) if third else second
        there = first @ others.T / TEMPERATURE
        back = second @ first.T / TEMPERATURE
        found = float((there.argmax(-1) == wanted).float().mean())
        loss = functional.cross_entropy(there, wanted) + functional.cross_entropy(back, wanted)
        return 0.5 * loss, found

    def _vectors(self, network: Network, texts: list[str]) -> torch.Tensor:
        """In three lots by length, so that short texts are not padded to the longest."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        parts = []
        for places in np.array_split(order, 3 if len(texts) > 8 else 1):
            ids = encode([texts[place] for place in places], self.tokenizer, LONGEST)
            parts.append(network.vectors(ids.to(self.device)))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return torch.cat(parts)[torch.from_numpy(back).to(self.device)]


def encode(texts: list[str], tokenizer: Tokenizer, longest: int) -> torch.Tensor:
    """-> ids (texts, tokens), padded with 0."""
    tokenizer.enable_truncation(longest)
    encoded = tokenizer.encode_batch(texts)
    ids = torch.zeros(len(texts), max(len(one.ids) for one in encoded), dtype=torch.long)
    for row, one in enumerate(encoded):
        ids[row, : len(one.ids)] = torch.tensor(one.ids)
    return ids


def encode_labelled(
    samples: list[tuple[str, list[Span]]], tokenizer: Tokenizer, longest: int = 160
) -> tuple[torch.Tensor, torch.Tensor]:
    """-> ids and labels (samples, tokens); -100 at padding and special tokens."""
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
    return torch.from_numpy(ids), torch.from_numpy(labels)
