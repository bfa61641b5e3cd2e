"""From token states to one vector per sequence.

A vector depends on its own sequence only, bit for bit: every reduction runs over one sequence's
tokens in their order, whatever else is in the pack. A sequence without tokens (an empty text, where
the tokenizer adds no special ones) gets a row that is not finite, never a neighbour's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from featpipe.features.packing import Pack


def pool(states: torch.Tensor, pack: Pack, pooling: str) -> torch.Tensor:
    """Pool each sequence of a pack, special tokens included, as sentence-transformers does.

    ``weightedmean`` weighs the tokens 1, 2, 3 ...; ``mean_sqrt_len`` divides their sum by the root
    of their number.

    Shapes: states (tokens, width) float32 -> (sequences, width) float32. ``last`` takes the last
    token, special or not.
    """
    lengths = torch.from_numpy(pack.lengths).to(states.device)
    if pooling in {"mean", "max"}:
        pooled: torch.Tensor = torch.segment_reduce(
            states, pooling, lengths=lengths, axis=0, unsafe=True
        )
        return pooled
    if pooling in {"weightedmean", "mean_sqrt_len"}:
        if pooling == "weightedmean":
            places = torch.from_numpy(pack.positions + 1).to(states.device)
            states = states * places[:, None].float()
            divisor = (lengths * (lengths + 1) // 2).float()
        else:
            divisor = lengths.float().sqrt()
        total: torch.Tensor = torch.segment_reduce(
            states, "sum", lengths=lengths, axis=0, unsafe=True
        )
        return total / divisor[:, None]
    ends = torch.cumsum(lengths, 0)
    rows = torch.full((len(lengths), states.shape[1]), torch.nan, device=states.device)
    has_tokens = lengths > 0
    at = ends - 1 if pooling == "last" else ends - lengths
    rows[has_tokens] = states[at[has_tokens]]
    return rows
