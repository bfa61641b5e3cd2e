"""Vectors and entities of texts by one forward.

The texts go by `portions`, as in `Encoder.encode` and `Tagger.find_entities`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from featpipe.encoders import encoded, entities
from featpipe.encoders.packing import Sequences
from featpipe.encoders.pooling import pool
from featpipe.encoders.portions import overlap, places_in, portions_for
from featpipe.encoders.precision import running_threads
from featpipe.encoders.tagger import refuse_unknown
from featpipe.encoders.windows import LabelWindows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.encoders import encoder as encoder_module
    from featpipe.encoders import tagger as tagger_module
    from featpipe.encoders.encoded import Encoded
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.entities import Entities
    from featpipe.encoders.packing import Pack
    from featpipe.encoders.portions import Portion
    from featpipe.encoders.tagger import Tagger
    from featpipe.encoders.tokens import Ints, Tokens
    from featpipe.encoders.transfer import Rows
    from featpipe.encoders.trunk import Trunk
    from featpipe.encoders.viterbi import Scores
    from featpipe.encoders.windows import Vectors


@dataclass(frozen=True, slots=True)
class _Started:
    """Texts on their way through the model."""

    portion: Portion
    tokens: Tokens
    short: Ints
    """Texts of one window."""
    together: _Together
    """What is computed of them."""
    long: Ints
    """The others, whose labels have other windows than their vectors."""
    apart: tuple[encoder_module.Started, tagger_module.Started] | None
    """What is computed of these, if there are any."""


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
    portions = portions_for(encoder.trunk.device, texts)
    start, finish = partial(_start, encoder, tagger), partial(_finish, encoder, tagger)
    with running_threads(encoder.threads), torch.inference_mode():
        parts = list(overlap(portions, start, finish))
    places = places_in(portions)
    vectors = encoded.join([part for part, _ in parts]).take(places, on_fault="report")
    return vectors, entities.join([part for _, part in parts]).take(places)


def _start(encoder: Encoder, tagger: Tagger, portion: Portion) -> _Started:
    tokens = encoder.tokenizer.encode(portion.texts, with_offsets=True)
    refuse_unknown(tokens, encoder.trunk.n_words, portion)
    is_short = tokens.lengths <= encoder.spec["max_length"] - encoder.tokenizer.n_special
    short, long = np.flatnonzero(is_short), np.flatnonzero(~is_short)
    if not len(long):
        together = _start_together(encoder, tagger, tokens)
        return _Started(portion, tokens, short, together, long, None)
    others = tokens.take(long)
    return _Started(
        portion,
        tokens,
        short,
        _start_together(encoder, tagger, tokens.take(short)),
        long,
        (encoder.start(others), tagger.start([portion.texts[at] for at in long.tolist()], others)),
    )


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


def _finish(encoder: Encoder, tagger: Tagger, started: _Started) -> tuple[Encoded, Entities]:
    tokens, short, long = started.tokens, started.short, started.long
    every = np.arange(len(tokens.ends))
    n_windows = np.ones(len(every), np.int64)
    vectors, scores = _collect(encoder, tagger, started.together)
    if started.apart is not None:
        parts = vectors, scores
        vectors = np.empty((len(every), encoder.dim), np.float32)
        scores = np.empty((len(tokens.ids), scores.shape[1]), np.float32)
        vectors[short], scores[tokens.places(short)] = parts
        of_encoder, of_tagger = started.apart
        vectors[long] = encoder.collect(of_encoder)
        n_windows[long] = of_encoder.windows.n_windows
        scores[tokens.places(long)] = tagger.collect(of_tagger)
    found = tagger.decode(scores, tokens, started.portion.numbers)
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
