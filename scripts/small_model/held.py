"""Sentences that are labelled by hand, on which probabilities are fitted (`labelled.jsonl`).

The sentences are from CMRC 2018 and FewFC (CC BY-SA 4.0, as is the file); the labels are ours.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_name("labelled.jsonl")


def held_sentences() -> frozenset[str]:
    """The sentences as they stand in the corpus."""
    with FILE.open(encoding="utf-8") as lines:
        return frozenset(json.loads(line)["text"] for line in lines)
