"""What an encoder makes of texts: vectors, sizes, and what was at fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from featpipe.errors import EncodingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.encoders.tokens import Ids, Ints


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors of n texts, in the order given.

    Shapes: vectors (n, dim) in the settings' dtype (bfloat16 as its bits in uint16); n_tokens (n,),
    special tokens included; n_windows (n,), above 1 where n_tokens exceeds the spec's
    ``max_length``.
    """

    vectors: npt.NDArray[np.generic]
    n_tokens: Ids
    n_windows: Ids
    faults: dict[int, str] = field(default_factory=dict)
    """Reason by text, for texts without a vector; their rows are zeros and must not be stored."""

    def take(self, texts: Ints, *, on_fault: str) -> Encoded:
        """Those of `texts`, in that order and as often as each is named.

        Raises:
            EncodingError: with ``on_fault="raise"``, where one of them has no vector.
        """
        faults: dict[int, str] = {}
        if self.faults:
            faults = {
                at: self.faults[text]
                for at, text in enumerate(texts.tolist())
                if text in self.faults
            }
        if faults and on_fault == "raise":
            raise report_faults(faults)
        if len(texts) == len(self.vectors) and (texts == np.arange(len(texts))).all():
            return self  # a copy of many vectors takes longer than all else here
        return Encoded(self.vectors[texts], self.n_tokens[texts], self.n_windows[texts], faults)


def join(parts: Sequence[Encoded]) -> Encoded:
    """Their texts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    faults: dict[int, str] = {}
    n_before = 0
    for part in parts:
        faults |= {n_before + text: reason for text, reason in part.faults.items()}
        n_before += len(part.vectors)
    vectors, n_tokens, n_windows = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("vectors", "n_tokens", "n_windows")
    )
    return Encoded(vectors, n_tokens, n_windows, faults)


def report_faults(faults: dict[int, str]) -> EncodingError:
    """An error for the units in `faults`, whose numbers are in its ``units``."""
    first, reason = next(iter(faults.items()))
    error = EncodingError(f"{len(faults)} unit(s) cannot be encoded; number {first}: {reason}")
    error.units = tuple(faults)
    return error
