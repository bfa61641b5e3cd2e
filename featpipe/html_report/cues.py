"""Cues: the words that a value follows, and how many samples write them alike.

A cue is what stands directly before a value on its line (``合同总价`` before ``为3万元``), or the
header of its column in a table. It is a reason that people can check with their eyes; the model
itself weighs much more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from featpipe.extraction.tables.table_headers import table_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.results import ExtractedValue
    from featpipe.html_report.known_fields import KnownFields
    from featpipe.html_report.results import Results

_LONGEST = 24
#: What may stand between a cue and its value: marks, currencies, and words of being.
_filler = re.compile(
    r"(?:[\s:：=（(“\"'《【\[￥¥$]|人民币|RMB|CNY|USD|为|是|系|即|约|共计|\bis\b|\bof\b|\bthe\b)+$",
    re.IGNORECASE,
)
_clause = re.compile(r"[。；;，,、！!？?」”》>\t\n|]|(?<=[^\x00-\x7f])[ \u3000]+")
_blank = re.compile(r"\s+")


class Cue(NamedTuple):
    """``kind``: whether the value follows the words, or stands in a column under them."""

    words: str
    kind: Literal["", "behind", "column"] = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """A cue and the number of samples with the same, None where no sample's cue is known."""

    cue: Cue
    n_samples: int | None = None


class CueFinder:
    """Finds the cues of values in one document."""

    def __init__(self, document: CachedDocument) -> None:
        self._text = document.text
        tables = document.meta.get("tables")
        spans = table_headers(self._text, tables if isinstance(tables, list) else ())
        self._headers = [(span.start, span.end, span.label) for span in spans]

    def cue(self, value: ExtractedValue) -> Cue:
        """The cue of a value, empty where nothing stands before it."""
        cell = next((one for one in self._headers if one[0] <= value.start < one[1]), None)
        words = self._words_before(value.start, cell[0] if cell else 0)
        if words:
            return Cue(words, "behind")
        return Cue(_blank.sub("", cell[2])[:_LONGEST], "column") if cell else Cue("")

    def _words_before(self, start: int, least: int) -> str:
        before = self._text[max(least, start - 2 * _LONGEST) : start]
        words = _clause.split(_filler.sub("", before.rpartition("\n")[2]))[-1]
        return _blank.sub(" ", words).strip()[-_LONGEST:]


def explain(own: Cue, samples: Sequence[Cue]) -> Reason:
    """The part of a cue that most samples share, and how many of them.

    Args:
        own: of a value.
        samples: one per sample with a known value.

    """
    known = [cue.words for cue in samples if cue.kind == own.kind and cue.words]
    if not own.words or not samples:
        return Reason(own)
    if own.kind == "column":
        return Reason(own, known.count(own.words))
    shared = [_shared_end(own.words, words) for words in known]
    # The longer the shared words and the more samples share them, the better; one character is
    # no word.
    length = max((n for n in shared if n > 1), key=lambda n: n * _n_at_least(shared, n), default=0)
    if not length:
        return Reason(own, 0)
    return Reason(own._replace(words=own.words[-length:]), _n_at_least(shared, length))


def _n_at_least(lengths: Iterable[int], least: int) -> int:
    return sum(length >= least for length in lengths)


def _shared_end(one: str, other: str) -> int:
    """Number of characters in which two texts end alike."""
    n = 0
    while n < min(len(one), len(other)) and one[-1 - n].lower() == other[-1 - n].lower():
        n += 1
    return n


class Reasons:
    """The reasons of values, by the cues of the samples among a cache's documents.

    Args:
        documents: of the cache.
        results: the values.
        known: what is known of the templates' fields.

    """

    def __init__(
        self, documents: Iterable[CachedDocument], results: Results, known: KnownFields
    ) -> None:
        self._cues: dict[tuple[str, str], dict[str, Cue]] = {}
        """(template, field) -> path of a sample -> cue of its likeliest value."""
        sampled = frozenset(
            key for fields in known.values() for one in fields.values() for key in one.samples
        )
        for document in documents:
            if document.key in sampled:
                self._add(document, results, known)

    def _add(self, document: CachedDocument, results: Results, known: KnownFields) -> None:
        finder = CueFinder(document)
        for template, fields in known.items():
            found = results.fields.get((template, document.path), {})
            for name, one in fields.items():
                values = found[name].values if name in found else ()
                if values and document.key in one.samples:
                    cues = self._cues.setdefault((template, name), {})
                    cues[document.path] = finder.cue(values[0])

    def explain(self, subject: tuple[str, str], path: str, cue: Cue) -> Reason:
        """The reason of a value of (template, field); its own document is no sample for it."""
        cues = self._cues.get(subject, {})
        return explain(cue, [one for other, one in cues.items() if other != path])
