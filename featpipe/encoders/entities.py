"""Entities with character offsets from one label per token, for all texts in one pass.

The tag scheme is read from the labels: BIO, BIOES, BMES, BILOU, IO, also mixed. A label is ``O``,
or a position letter and a type (``B-PER``, ``B_PER``); a label without a letter is a type that is
always inside. Positions: B begins; I, M inside; E, L end; S, U single.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from featpipe.encoders.calibration import measure_spans
from featpipe.encoders.tokens import find_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.encoders.calibration import Calibration
    from featpipe.encoders.tokens import Ints, Offsets, Tokens

_TAG = re.compile(r"(?P<position>[BIMELSU])[-_](?P<type>.+)", re.DOTALL)
_OUTSIDE = frozenset({"O", "[PAD]", "<PAD>", "<pad>", "[CLS]", "[SEP]", "<START>", "<STOP>"})
_OPENS = frozenset("BSU")
_CLOSES = frozenset("ELSU")


@dataclass(frozen=True, slots=True)
class Tags:
    """Meaning of each of k labels. Shapes: type, opens and closes (k,)."""

    types: tuple[str, ...]
    """Entity types in the order in which the labels first name them."""
    type: npt.NDArray[np.int32]
    """Number in `types`, -1 outside."""
    opens: npt.NDArray[np.bool_]
    """An entity begins here even if the token before is of the same type."""
    closes: npt.NDArray[np.bool_]
    """No entity continues after this token."""

    @classmethod
    def of(cls, labels: Sequence[str]) -> Tags:
        """Read the scheme of `labels`."""
        parsed = [_parse(label) for label in labels]
        types = tuple(dict.fromkeys(kind for _, kind in parsed if kind))
        return cls(
            types=types,
            type=np.array([types.index(kind) if kind else -1 for _, kind in parsed], np.int32),
            opens=np.array([position in _OPENS for position, _ in parsed], np.bool_),
            closes=np.array([position in _CLOSES for position, _ in parsed], np.bool_),
        )


def _parse(label: str) -> tuple[str, str]:
    """(position, type); the type of an outside label is empty."""
    if label in _OUTSIDE:
        return "O", ""
    match = _TAG.fullmatch(label)
    return (match["position"], match["type"]) if match else ("I", label)


@dataclass(frozen=True, slots=True)
class Entities:
    """The m entities of n texts, text by text in reading order.

    Shapes: lengths (n,), entities per text; start, end (m,), characters of the text, end exclusive;
    label (m,), the number of the type in ``Tagger.labels``; score (m,), the probability
    that it is right where the checkpoint is calibrated, else the mean probability of its tokens'
    labels.
    """

    lengths: Ints
    start: Offsets
    end: Offsets
    label: npt.NDArray[np.uint16]
    score: npt.NDArray[np.float32]

    def take(self, texts: Ints) -> Entities:
        """Those of `texts`, in that order."""
        at = find_places(self.lengths, texts)
        return Entities(
            self.lengths[texts], self.start[at], self.end[at], self.label[at], self.score[at]
        )


def join(parts: Sequence[Entities]) -> Entities:
    """Their texts, one part after the other."""
    names = ("lengths", "start", "end", "label", "score")
    return Entities(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def decode(
    labels: npt.NDArray[np.integer],
    scores: npt.NDArray[np.float32],
    tokens: Tokens,
    tags: Tags,
    calibration: Calibration | None = None,
) -> Entities:
    """Join runs of tokens to entities.

    A run ends where the type changes, a label opens a new entity or closes this one, or the text
    ends. An inside label without a beginning begins one, as in transformers' ``simple``
    aggregation.

    Shapes: labels and scores (t,), `tokens` with offsets.
    """
    kind = tags.type[labels]
    first = _find_runs(labels, tokens, tags)
    last = np.append(first, len(labels))[1:] - 1
    sums = np.add.reduceat(scores.astype(np.float64), first)
    is_entity = kind[first] >= 0
    first, last, sums = first[is_entity], last[is_entity], sums[is_entity]
    probability = sums / (last - first + 1)
    text = np.searchsorted(tokens.ends, first, side="right")
    if calibration is not None:
        features = measure_spans(scores, first, last, text, tokens.ends)
        probability = calibration.score(features, kind[first])
    return Entities(
        lengths=np.bincount(text, minlength=len(tokens.ends)).astype(np.int64),
        start=tokens.offsets[0][first],
        end=tokens.offsets[1][last],
        label=kind[first].astype(np.uint16),
        score=probability.astype(np.float32),
    )


def _find_runs(labels: npt.NDArray[np.integer], tokens: Tokens, tags: Tags) -> Ints:
    """Places (runs,) of the first token of each run."""
    kind = tags.type[labels]
    begins = np.ones(len(labels), np.bool_)
    begins[1:] = (kind[1:] != kind[:-1]) | tags.opens[labels[1:]] | tags.closes[labels[:-1]]
    text_starts = tokens.ends - tokens.lengths
    begins[text_starts[tokens.lengths > 0]] = True
    return np.flatnonzero(begins)
