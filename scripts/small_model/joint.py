"""The last stage: entities and masked words in every step, on one trunk."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import torch

from small_model.labels import Labeller
from small_model.network import LABELS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from small_model.corpus import Corpus
    from small_model.labels import Span
    from small_model.masking import MaskedTask
    from small_model.network import Network

LABEL_PLACE = {label: place for place, label in enumerate(LABELS)}
CHARS = 64  # of an entity sample, about
BAG = 4.0  # weight of keeping the sentence vector
LOTS = 4  # by length, so that short samples are not padded to the longest


class JointTask:
    """With the usual 2,048 tokens: 32 entity samples, 256 tokens with hidden words."""

    def __init__(
        self, corpus: Corpus, tokenizer: Tokenizer, masked: MaskedTask, device: str
    ) -> None:
        self.labeller = Labeller(corpus)
        self.tokenizer, self.masked, self.device = tokenizer, masked, device
        self.n_entities = max(masked.n_tokens // CHARS, LOTS)

    def loss(
        self, network: Network, rng: np.random.Generator
    ) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        """-> the three losses, and what share of the hidden pieces was found."""
        own = Random(int(rng.integers(2**62)))  # noqa: S311 - not a secret
        samples = [self.labeller.draw(own) for _ in range(self.n_entities)]
        samples.sort(key=lambda sample: len(sample[0]))
        n_chars = sum(len(text) for text, _ in samples)
        losses = torch.zeros(2, device=self.device)
        for part in np.array_split(np.arange(len(samples)), LOTS):
            lot = [samples[number] for number in part]
            ids, labels = encode_labelled(lot, self.tokenizer)
            found = network.entity_loss(ids.to(self.device), labels.to(self.device))
            share = sum(len(text) for text, _ in lot) / n_chars
            losses = losses + share * torch.stack(found)
        masked, figures = self.masked.loss(network, rng, part=8)
        parts = {"entities": losses[0], "bag": BAG * losses[1], "masked": 0.1 * masked["masked"]}
        return parts, figures


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
