"""Vectors and entities of texts by one forward.

A card computes a portion of the texts while the host finishes the one before and tokenizes the
next, as in `Encoder.encode`; on a processor all texts are one portion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from featpipe.encoders import encoded, entities
from featpipe.encoders.encoded import Encoded, report_faults
from featpipe.encoders.encoder import UNKNOWN, Encoder, Started
from featpipe.encoders.forward import overlap
from featpipe.encoders.packing import Sequences
from featpipe.encoders.pooling import pool
from featpipe.encoders.precision import running_threads
from featpipe.encoders.tagger import Tagger, find_faults
from featpipe.encoders.tokens import find_unknown
from featpipe.encoders.transfer import CPU
from featpipe.encoders.windows import LabelWindows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.encoders.entities import Entities
    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints, Tokens
    from featpipe.encoders.transfer import Rows
    from featpipe.encoders.trunk import Trunk
    from featpipe.encoders.viterbi import Scores
    from featpipe.encoders.windows import Vectors


@dataclass(frozen=True, slots=True)
class _Portion:
    """Texts on their way through the model."""

    texts: Sequence[str]
    numbers: Ints
    """Of the texts, in the call."""
    tokens: Tokens
    short: Ints
    """Texts of one window; what is computed of them."""
    together: _Together
    long: Ints
    """The others; their vectors are under way, their labels have other windows."""
    apart: Started | None


@dataclass(frozen=True, slots=True)
class _Together:
    """Texts of one window: n texts of t tokens."""

    windows: LabelWindows
    sequences: Sequences
    packs: Iterator[tuple[Pack, Rows]]
    """Of each, its vectors and then its scores in one flat array."""


def encode_and_tag(
    encoder: Encoder, tagger: Tagger, texts: Sequence[str]
) -> tuple[Encoded, Entities]:
    """Vectors and entities of distinct texts by one forward.

    Guarantee: byte for byte the results of `Encoder.encode` and `Tagger.find_entities` (where the
    trunk is invariant). Texts of one window are computed once; longer ones have other windows for
    vectors than for labels and are computed twice. `Encoded.faults` names texts without a vector.

    The two must share a trunk of exactly their layers, and have the same tokenizer, precision and
    window length; the encoder must have no prompt.

    Raises:
        EncodingError: the tagger cannot read some text; ``error.units`` holds their numbers.
    """
    order = np.arange(len(texts))
    if encoder.trunk.device != CPU:
        order = np.argsort([-len(text) for text in texts], kind="stable")  # full packs
    portions = encoder.cut_portions([texts[at] for at in order.tolist()])
    with running_threads(encoder.threads), torch.inference_mode():
        parts = list(
            overlap(
                _number(portions, order),
                partial(_start, encoder, tagger),
                partial(_finish, encoder, tagger),
            )
        )
    back = np.argsort(order)
    vectors = encoded.join([part for part, _ in parts]).take(back, on_fault="report")
    return vectors, entities.join([part for _, part in parts]).take(back)


def _number(portions: Iterator[Sequence[str]], order: Ints) -> Iterator[tuple[Sequence[str], Ints]]:
    """Each portion with the numbers of its texts."""
    n_before = 0
    for portion in portions:
        yield portion, order[n_before : n_before + len(portion)]
        n_before += len(portion)


def _start(encoder: Encoder, tagger: Tagger, portion: tuple[Sequence[str], Ints]) -> _Portion:
    texts, numbers = portion
    tokens = encoder.tokenizer.encode(texts, with_offsets=True)
    unknown = find_unknown(tokens, encoder.trunk.n_words)
    if unknown:
        raise report_faults(dict.fromkeys(numbers[unknown].tolist(), UNKNOWN))
    is_short = tokens.lengths <= encoder.spec["max_length"] - encoder.tokenizer.n_special
    short, long = np.flatnonzero(is_short), np.flatnonzero(~is_short)
    together = _start_together(encoder, tagger, tokens.take(short) if len(long) else tokens)
    apart = encoder.start(tokens.take(long)) if len(long) else None
    return _Portion(texts, numbers, tokens, short, together, long, apart)


def _start_together(encoder: Encoder, tagger: Tagger, tokens: Tokens) -> _Together:
    starts = tokens.ends - tokens.lengths
    windows = LabelWindows(starts, tokens.lengths, starts, tokens.lengths)
    prefix, suffix = encoder.tokenizer.prefix, encoder.tokenizer.suffix
    sequences = Sequences(tokens.ids, starts, tokens.lengths, prefix, suffix)

    def compute(trunk: Trunk, pack: Pack) -> torch.Tensor:
        """Vectors and scores in one flat tensor, which is one copy from a card."""
        states = trunk.forward(pack)
        found = tagger.score(states, pack)
        pooled = pool(states, pack, encoder.spec["pooling"])
        return torch.cat([pooled.flatten(), found.to(pooled.device).flatten()])

    packs = encoder.forwarder.start(sequences, compute, threads=encoder.threads)
    return _Together(windows, sequences, packs)


def _finish(encoder: Encoder, tagger: Tagger, portion: _Portion) -> tuple[Encoded, Entities]:
    tokens, short, long = portion.tokens, portion.short, portion.long
    n_windows = np.ones(len(portion.texts), np.int64)
    vectors, scores = _collect(encoder, tagger, portion.together)
    if portion.apart is not None:
        parts = vectors, scores
        vectors = np.empty((len(portion.texts), encoder.dim), np.float32)
        scores = np.empty((len(tokens.ids), scores.shape[1]), np.float32)
        vectors[short], scores[tokens.places(short)] = parts
        vectors[long] = encoder.collect(portion.apart)
        n_windows[long] = portion.apart.windows.n_windows
        scores[tokens.places(long)] = tagger.score_tokens(
            [portion.texts[at] for at in long.tolist()], tokens.take(long)
        )
    faults = find_faults(scores, tokens)
    if faults:
        raise report_faults({int(portion.numbers[at]): why for at, why in faults.items()})
    found = tagger.decode(scores, tokens)
    every = np.arange(len(portion.texts))
    return encoder.make_encoded(vectors, n_windows, tokens, every, on_fault="report"), found


def _collect(encoder: Encoder, tagger: Tagger, started: _Together) -> tuple[Vectors, Scores]:
    """Shapes: (n, dim), (t, labels)."""
    width, n_labels = encoder.trunk.width, len(tagger.spec["labels"])
    vectors = np.empty((len(started.sequences.start), width), np.float32)
    scores = np.empty((len(started.sequences.ids), n_labels), np.float32)
    for pack, flat in started.packs:
        n_numbers = len(pack.sequences) * width
        vectors[pack.sequences] = flat[:n_numbers].reshape(-1, width)
        rows = flat[n_numbers:].reshape(-1, n_labels)
        started.windows.take_own(scores, rows, pack, len(encoder.tokenizer.prefix))
    encoder.repeat_overflowed(vectors, started.sequences)
    return encoder.steps(vectors), scores
