"""Pages of texts that no cache holds."""

from __future__ import annotations

from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.page import page_of_text


def features_of(text: str, name: str = "") -> PageFeatures:
    """Of a text."""
    return PageFeatures(page_of_text(text, name=name))
