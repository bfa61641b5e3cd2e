"""Documents: from a file's bytes to one text with paragraph and sentence spans. Knows no models."""

from __future__ import annotations

from featpipe.documents.document import (
    Cell,
    Document,
    Heading,
    OffsetMap,
    Page,
    Paragraph,
    Sentence,
    Table,
    Word,
)
from featpipe.documents.find import find_sources
from featpipe.documents.limits import LoadLimits
from featpipe.documents.load import hash_bytes, hash_text, load_document, load_source
from featpipe.documents.outline import outline
from featpipe.documents.segment import MAX_SENTENCE, SEGMENTER_VERSION, Segments, segment
from featpipe.documents.source import Source, of_texts

__all__ = [
    "MAX_SENTENCE",
    "SEGMENTER_VERSION",
    "Cell",
    "Document",
    "Heading",
    "LoadLimits",
    "OffsetMap",
    "Page",
    "Paragraph",
    "Segments",
    "Sentence",
    "Source",
    "Table",
    "Word",
    "find_sources",
    "hash_bytes",
    "hash_text",
    "load_document",
    "load_source",
    "of_texts",
    "outline",
    "segment",
]
