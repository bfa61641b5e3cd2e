"""One BERT trunk with three uses: masked pieces, sentence vectors, entities.

The parameter names are those of transformers' `BertForMaskedLM` and `BertForTokenClassification`,
so the trained state is the published checkpoint as it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertForMaskedLM

from small_model.start import REST

if TYPE_CHECKING:
    import numpy as np
    from transformers import BertModel

ENTITIES = ("PER", "ORG", "LOC", "DATE", "MONEY", "PERCENT", "LAW")
LABELS = ("O", *(f"{head}-{kind}" for kind in ENTITIES for head in "BI"))


def small_config(n_pieces: int) -> BertConfig:
    """4 layers of 256: 5.5 million parameters, 11 MB as float16."""
    return BertConfig(
        vocab_size=n_pieces, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=1024, max_position_embeddings=512, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.04, id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )  # fmt: skip


PLACE_WIDTH = 32  # the last so many dimensions tell places, the others characters
OFFSETS = ((-1, 1, -2, 2), (-1, 1, -3, 3))  # what the heads of the first two layers look at


def wave_speeds() -> Tensor:
    """Radians per place of each pair of dimensions, fast to slow."""
    return torch.exp(torch.linspace(math.log(2.8), math.log(0.012), PLACE_WIDTH // 2))


def waves(n_places: int) -> Tensor:
    """Sines, then cosines, of unit root mean square: (places, PLACE_WIDTH)."""
    angle = torch.arange(n_places)[:, None] * wave_speeds()[None, :]
    return torch.cat([angle.sin(), angle.cos()], dim=1) * math.sqrt(2)


def turned(offset: int) -> Tensor:
    """The matrix that maps the waves of a place to those of the place `offset` further."""
    angle = wave_speeds() * offset
    sine, cosine = torch.diag(angle.sin()), torch.diag(angle.cos())
    return torch.cat([torch.cat([cosine, sine], 1), torch.cat([-sine, cosine], 1)], 0)


def look_at_neighbours(trunk: BertModel, sharpness: float = 1.7) -> None:
    """Start the heads of the first layers on fixed neighbours instead of on everything alike.

    From random queries a trunk of this size needs over a thousand steps to find out that
    neighbours matter; from here it begins as a model of character n-grams.
    """
    width = trunk.config.hidden_size
    size = width // trunk.config.num_attention_heads
    for layer, offsets in zip(trunk.encoder.layer, OFFSETS, strict=False):
        attention = layer.attention.self
        for head, offset in enumerate(offsets):
            rows = slice(head * size, head * size + PLACE_WIDTH)
            attention.query.weight[rows].zero_()
            attention.key.weight[rows].zero_()
            attention.query.weight[rows, -PLACE_WIDTH:] = sharpness * turned(offset)
            attention.key.weight[rows, -PLACE_WIDTH:] = sharpness * torch.eye(PLACE_WIDTH)


def begin_as_bag(trunk: BertModel) -> None:
    """Start every layer close to doing nothing, and drop the rest and the places at the end.

    The mean of the last states then is the weighted bag of characters that `start.weigh` describes:
    training begins from a working sentence vector.
    """
    for layer in trunk.encoder.layer:
        layer.attention.output.dense.weight.mul_(0.15)
        layer.output.dense.weight.mul_(0.15)
    trunk.encoder.layer[-1].output.LayerNorm.weight[-PLACE_WIDTH - REST :] = 0.0


class Network(nn.Module):
    """`masked.bert` is the trunk; `classifier` reads its last states."""

    def __init__(self, config: BertConfig, start: np.ndarray | None = None) -> None:
        super().__init__()
        self.masked = BertForMaskedLM(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        if start is not None:
            words = self.masked.bert.embeddings.word_embeddings.weight
            with torch.no_grad():
                words.zero_()
                words[:, :-PLACE_WIDTH] = torch.from_numpy(start)
                words[0].zero_()
                embeddings = self.masked.bert.embeddings
                embeddings.token_type_embeddings.weight.zero_()
                places = embeddings.position_embeddings.weight
                places.zero_()
                # So long that LayerNorm gives the waves a root mean square of one.
                places[:, -PLACE_WIDTH:] = waves(len(places)) * 0.0668
                look_at_neighbours(self.masked.bert)
                begin_as_bag(self.masked.bert)

    def states(self, ids: Tensor) -> Tensor:
        """(texts, tokens) -> (texts, tokens, width); id 0 is padding."""
        hidden: Tensor = self.masked.bert(ids, attention_mask=(ids != 0).long()).last_hidden_state
        return hidden

    def masked_loss(self, ids: Tensor, targets: Tensor) -> tuple[Tensor, float]:
        """Mean cross entropy and accuracy over the places asked for (only those are projected)."""
        asked = targets >= 0
        logits = self.masked.cls(self.states(ids)[asked])
        wanted = targets[asked]
        right = float((logits.argmax(-1) == wanted).float().mean())
        return functional.cross_entropy(logits.float(), wanted), right

    def vectors(self, ids: Tensor) -> Tensor:
        """Mean over real tokens, [CLS] and [SEP] among them, to length one: (texts, width)."""
        kept = (ids != 0).unsqueeze(-1)
        states = self.states(ids).float() * kept
        return functional.normalize(states.sum(1) / kept.sum(1), dim=-1)

    def entity_loss(self, ids: Tensor, labels: Tensor) -> Tensor:
        """Mean cross entropy over tokens whose label is not -100."""
        logits = self.classifier(self.states(ids))
        return functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), ignore_index=-100
        )
