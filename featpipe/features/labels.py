"""Tag schemes, read from the labels themselves: BIO, BIOES, BMES, BILOU, IO, also mixed.

A label is ``O``, or a position letter and a type (``B-PER``, ``B_PER``); a label without a letter
is a type that is always inside. Positions: B begins; I, M inside; E, L end; S, U single.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

_TAG = re.compile(r"(?P<position>[BIMELSU])[-_](?P<type>.+)", re.DOTALL)
_OUTSIDE = frozenset({"O", "[PAD]", "<PAD>", "<pad>", "[CLS]", "[SEP]", "<START>", "<STOP>"})
_OPENS = frozenset("BSU")
_CLOSES = frozenset("ELSU")


@dataclass(frozen=True, slots=True)
class Tags:
    """What each of k labels means. Shapes (k,): type number (-1 outside), opens, closes."""

    types: tuple[str, ...]
    """Entity types in the order in which the labels first name them."""
    type: npt.NDArray[np.int32]
    opens: npt.NDArray[np.bool_]
    """An entity begins here even if the token before is of the same type."""
    closes: npt.NDArray[np.bool_]
    """No entity goes on after this token."""

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
