"""Documents: from a file's bytes to one text with paragraph and sentence spans."""

from __future__ import annotations

from featpipe.documents.document import Cell, Document, Heading, OffsetMap, Page, Table
from featpipe.documents.find import find_sources
from featpipe.documents.limits import LoadLimits
from featpipe.documents.load import (
    detect_media_type,
    hash_bytes,
    hash_file,
    hash_text,
    load_document,
    load_source,
)
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
    "Segments",
    "Source",
    "Table",
    "detect_media_type",
    "find_sources",
    "hash_bytes",
    "hash_file",
    "hash_text",
    "load_document",
    "load_source",
    "of_texts",
    "segment",
]
