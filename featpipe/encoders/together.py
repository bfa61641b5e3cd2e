"""Vectors and entities by one forward, where an encoder and a tagger share their trunk.

Guarantee: byte for byte what `Encoder.encode` and `Tagger.find_entities` give apart (where the
trunk is invariant). Texts of one window are computed once; longer ones are windowed differently for
the two, so these are computed apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from featpipe.encoders.packing import Sequences
from featpipe.encoders.pooling import pool
from featpipe.encoders.precision import running_threads
from featpipe.encoders.tokens import find_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from featpipe.encoders.encoder import Encoded, Encoder
    from featpipe.encoders.entities import Entities
    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tagger import Tagger
    from featpipe.encoders.tokens import Ints, Tokens
    from featpipe.encoders.trunk import Trunk
    from featpipe.encoders.windows import Vectors

    Logits = npt.NDArray[np.float32]


def encode_and_tag(
    encoder: Encoder, tagger: Tagger, texts: Sequence[str]
) -> tuple[Encoded, Entities]:
    """Both features of distinct texts; `Encoded.faults` names those without a vector.

    The two must share their trunk, which then has every layer and no more, tokenizer, precision
    and window length, and there must be no prompt.

    Raises:
        EncodingError: the tagger cannot read some text.
    """
    tokens = encoder.tokenizer.encode(texts, with_offsets=True)
    n_windows = np.ones(len(texts), np.int64)
    unknown = find_unknown(tokens, encoder.trunk.n_words)
    capacity = encoder.spec["max_length"] - len(encoder.tokenizer.prefix + encoder.tokenizer.suffix)
    is_short = tokens.lengths <= capacity
    short, long = np.flatnonzero(is_short), np.flatnonzero(~is_short)
    vectors = np.empty((len(texts), encoder.dim), np.float32)
    logits = np.empty((len(tokens.ids), len(tagger.spec["labels"])), np.float32)
    if unknown:
        tagger.find_entities([texts[unknown[0]]])  # raises what it raises alone
    with running_threads(encoder.threads), torch.inference_mode():
        vectors[short], logits[tokens.places(short)] = _compute(encoder, tagger, tokens.take(short))
        if len(long):
            others = tokens.take(long)
            vectors[long], windows = encoder.encode_windows(others)
            n_windows[long] = windows.n_windows
            logits[tokens.places(long)] = tagger.score_tokens(
                [texts[at] for at in long.tolist()], others
            )
    entities = tagger.decode(logits, tokens)
    every = np.arange(len(texts))
    return encoder.deliver(vectors, n_windows, tokens, every, on_fault="report"), entities


def _compute(encoder: Encoder, tagger: Tagger, tokens: Tokens) -> tuple[Vectors, Logits]:
    """Shapes: n texts of t tokens, one window each -> (n, dim), (t, labels)."""
    tokenizer = encoder.tokenizer
    starts: Ints = tokens.ends - tokens.lengths
    sequences = Sequences(tokens.ids, starts, tokens.lengths, tokenizer.prefix, tokenizer.suffix)
    width, n_labels = encoder.trunk.width, len(tagger.spec["labels"])
    vectors = np.empty((len(starts), width), np.float32)
    logits = np.empty((len(tokens.ids), n_labels), np.float32)

    def compute(trunk: Trunk, pack: Pack) -> torch.Tensor:
        states = trunk.forward(pack)
        scores = tagger.head.score(states.to(tagger.trunk.device), pack)
        pooled = pool(states, pack, encoder.spec["pooling"])
        return torch.cat([pooled.flatten(), scores.to(pooled.device).flatten()])

    for pack, flat in encoder.forwarder.run(sequences, compute, threads=encoder.threads):
        n = len(pack.sequences)
        vectors[pack.sequences] = flat[: n * width].reshape(n, width)
        scores = flat[n * width :].reshape(-1, n_labels)
        is_body = (pack.positions >= len(tokenizer.prefix)) & (
            pack.positions < np.repeat(pack.lengths - len(tokenizer.suffix), pack.lengths)
        )
        logits[tokens.places(pack.sequences)] = scores[is_body]
    encoder.repeat_overflowed(vectors, sequences)
    return encoder.project(vectors), logits
