"""A piece of a text with a label."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """``text[start:end]`` with an entity's type, or with the header of its table cell."""

    start: int
    end: int
    label: str
    score: float = 1.0
    party: str = ""
    """What the party that a table cell is of is called, folded."""
    unit: str = ""
    """What is said of the units of its table, folded."""
