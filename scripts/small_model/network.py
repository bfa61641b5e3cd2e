"""One BERT trunk: masked pieces, entities, sentence vectors of characters and of meanings.

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

from small_model.shape import (
    FEATURES,
    HEAD,
    INNER,
    KEPT,
    LAYERS,
    LEXICAL,
    MEANT,
    PLACE_SIZE,
    PLACES,
    QUIET,
    WIDTH,
)

if TYPE_CHECKING:
    import numpy as np
    from transformers import BertModel

ENTITIES = ("PER", "ORG", "LOC", "DATE", "MONEY", "PERCENT", "LAW")
LABELS = ("O", *(f"{head}-{kind}" for kind in ENTITIES for head in "BI"))


def small_config(n_pieces: int) -> BertConfig:
    """3 layers of 640: 14 million parameters, 28 MB as float16."""
    return BertConfig(
        vocab_size=n_pieces, hidden_size=WIDTH, num_hidden_layers=LAYERS, intermediate_size=INNER,
        num_attention_heads=WIDTH // HEAD, max_position_embeddings=512, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, initializer_range=0.04, id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
        attn_implementation="eager",  # of texts this short it learns a fifth faster
    )  # fmt: skip


# What heads of the first layers look at.
OFFSETS = ((-1, 1, -2, 2, -3, 3), (-1, 1, -2, 2, -4, 4), (-1, 1))


def wave_speeds() -> Tensor:
    """Radians per place of each pair of dimensions, fast to slow."""
    return torch.exp(torch.linspace(math.log(2.8), math.log(0.012), PLACES // 2))


def waves(n_places: int) -> Tensor:
    """Sines, then cosines, of unit root mean square: (places, PLACES)."""
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
            rows = slice(head * size, head * size + PLACES)
            attention.query.weight[rows].zero_()
            attention.key.weight[rows].zero_()
            attention.query.weight[rows, -PLACES:] = sharpness * turned(offset)
            attention.key.weight[rows, -PLACES:] = sharpness * torch.eye(PLACES)


class Writing(nn.Linear):
    """A dense layer that adds nothing to the first KEPT dimensions: those rows are not computed."""

    @classmethod
    def like(cls, dense: nn.Linear) -> Writing:
        """The same weights, with the rows that would write there at zero."""
        writing = cls(dense.in_features, dense.out_features)
        writing.load_state_dict(dense.state_dict())
        for value in writing.parameters():
            value[:KEPT] = 0
        return writing

    def forward(self, states: Tensor) -> Tensor:
        """(..., in) -> (..., WIDTH)."""
        written = functional.linear(states, self.weight[KEPT:], self.bias[KEPT:])
        return functional.pad(written, (KEPT, 0))


def begin_as_bag(trunk: BertModel) -> None:
    """Start every layer close to doing nothing, and keep the lexical part as it is for ever.

    The mean of the last states then is the weighted bag of characters that the sentence stage has
    trained: no layer writes into the first KEPT dimensions, and the last LayerNorm drops the rest
    and turns down what the layers have written.
    """
    for layer in trunk.encoder.layer:
        for part in (layer.attention.output, layer.output):
            part.dense.weight.mul_(0.3)
            part.dense = Writing.like(part.dense)
        for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
            for value in norm.parameters():
                value.register_hook(_without_kept_rows)
    embeddings = trunk.embeddings
    for table in (embeddings.word_embeddings, embeddings.position_embeddings,
                  embeddings.token_type_embeddings):  # fmt: skip
        table.weight.register_hook(_without_kept_columns)
    for value in embeddings.LayerNorm.parameters():
        value.register_hook(_without_kept_rows)
    last = trunk.encoder.layer[-1].output.LayerNorm
    last.weight[LEXICAL:KEPT] = 0
    last.weight[KEPT:] = QUIET
    for value in last.parameters():
        value.requires_grad_(False)


def _without_kept_rows(gradient: Tensor) -> Tensor:
    gradient = gradient.clone()
    gradient[:KEPT] = 0
    return gradient


def _without_kept_columns(gradient: Tensor) -> Tensor:
    gradient = gradient.clone()
    gradient[:, :KEPT] = 0
    return gradient


class Network(nn.Module):
    """`masked.bert` is the trunk; `classifier` reads its last states.

    Args:
        config: of the trunk.
        start: (pieces, KEPT + FEATURES) float32, what the embeddings of the pieces begin as.

    """

    def __init__(self, config: BertConfig, start: np.ndarray) -> None:
        super().__init__()
        self.masked = BertForMaskedLM(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.is_meaning_heard = False
        embeddings = self.masked.bert.embeddings
        words, places = embeddings.word_embeddings.weight, embeddings.position_embeddings.weight
        with torch.no_grad():
            self.classifier.weight[:, KEPT:] /= QUIET
            words.zero_()
            words[:, : KEPT + FEATURES] = torch.from_numpy(start)
            words[0].zero_()
            embeddings.token_type_embeddings.weight.zero_()
            places.zero_()
            places[:, -PLACES:] = waves(len(places)) * PLACE_SIZE
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

    def text_losses(
        self, ids: Tensor, labels: Tensor | None, meant: tuple[Tensor, Tensor] | None
    ) -> dict[str, Tensor]:
        """What one forward teaches.

        * ``entities``: mean cross entropy over tokens whose label is not -100;
        * ``bag``: one minus the cosine between the mean state of a text and the weighted bag of its
          characters. LayerNorm divides by what layers write beside the bag, and takes its mean
          off it, so what is learnt alone would weigh the characters anew. Meanings, where they
          are heard, are left out of the mean;
        * ``meaning``: the share of the squared length of what words mean, `meant[1]`, (words,
          MEANING), that their tokens together do not say; `meant[0]`, (texts, tokens), are the
          words that the tokens belong to, -1 for none.
        """
        states = self.states(ids)
        losses = {}
        if labels is not None:
            logits = self.classifier(states).float().flatten(0, 1)
            losses["entities"] = functional.cross_entropy(
                logits, labels.flatten(), ignore_index=-100
            )
        states = states.float()
        bag = self.masked.bert.embeddings.word_embeddings.weight[:, :LEXICAL].detach()[ids]
        mean = (states * (ids != 0).unsqueeze(-1)).sum(1)
        if self.is_meaning_heard:
            mean = torch.cat([mean[:, : MEANT.start], mean[:, MEANT.stop :]], 1)
        padded = functional.pad(bag.sum(1), (0, mean.shape[1] - LEXICAL))
        losses["bag"] = 1 - functional.cosine_similarity(mean, padded).mean()
        if meant is not None:
            numbers, wanted = meant
            asked = numbers >= 0
            scale = ((states[..., :LEXICAL] * bag).sum() / bag.square().sum()).detach()
            said = torch.zeros_like(wanted).index_add(
                0, numbers[asked], states[..., MEANT][asked] / scale
            )
            missed = (said[1:] - wanted[1:]).square().sum()
            # Silence is asked of each token: together their noises might cancel out.
            missed = missed + (states[..., MEANT][numbers == 0] / scale).square().sum()
            losses["meaning"] = missed / wanted.square().sum().clamp(min=1e-6)
        return losses

    def say_meanings(self, loudness: float) -> None:
        """From here on the last states say MEANT so loudly; what reads them hears no change."""
        self.is_meaning_heard = True
        weight = self.masked.bert.encoder.layer[-1].output.LayerNorm.weight
        with torch.no_grad():
            for reader in (self.classifier, self.masked.cls.predictions.transform.dense):
                reader.weight[:, MEANT] *= weight[MEANT] / loudness
            weight[MEANT] = loudness
