"""The index over a cache's sentences, with its postings kept from one process to the next.

The truth is in the cache: term ids per sentence. Postings are derived from them, which takes a
third of a second per million sentences, and kept as files to be mapped in the user's own cache
folder: not beside the cache, whose folder may be read-only or of another person's making.

Guarantees:
- Scores are the same whether postings were mapped or derived. Kept postings are used only if the
  checksums of all the documents and terms they were made from, which they hold, are those of the
  cache as it is now; else they are made anew.
- What was added to a cache makes one more segment; the earlier ones stay mapped.
- Sentences whose terms are not there yet, as beside a running build, which writes documents before
  their terms, are left out and told; the scores are those over the others. Postings of documents
  with such a gap are not kept.
- No damage to a kept file makes a kernel read or write outside its arrays: every row, code and
  pointer is compared with its bounds on opening. A flipped bit that stays within them, and is not
  in the first or last 4 KiB of an array, is not noticed.
- Any number of processes may open and write at once. Without a place to write nothing fails: that
  is said once, and the postings serve this process alone.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from featpipe import user_cache
from featpipe.errors import DictionaryError
from featpipe.lexical.index import Index
from featpipe.lexical.jieba_dictionary import hash_of
from featpipe.lexical.segment import SEGMENT_VERSION, Segment
from featpipe.user_cache import ArrayFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.lexical.backend import Backend
    from featpipe.store import TableReader

logger = getLogger(__name__)

#: With more segments than this, all become one: a query visits each.
_MAX_SEGMENTS = 8

_PREFIX = "postings-"
_SUFFIX = ".arrays"
_told: set[Path] = set()


class Terms(NamedTuple):
    """Of some documents' sentences.

    ``has_terms`` tells which of them all are counted; of those that are: term ids laid end to end,
    terms per sentence, sentences per document.
    """

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    n_sentences: NDArray[np.int64]
    has_terms: NDArray[np.bool_]


class Sentences(NamedTuple):
    """What is to be indexed: the documents' sentences, and the terms of each distinct sentence.

    ``names`` of the documents, ``rows`` (n,) of them in the table ``documents``; ``units`` holds
    the term ids by key.
    """

    documents: TableReader
    units: TableReader
    names: Sequence[str]
    rows: NDArray[np.int64]

    def read(self, begin: int) -> Terms:
        """The terms of the documents from ``begin`` on."""
        keys, n_sentences = self.documents.ragged_many("sentence_keys", self.rows[begin:])
        found = self.units.find(np.asarray(keys).reshape(-1, 16))
        has_terms = found >= 0
        if not has_terms.all():
            owners = np.repeat(np.arange(len(n_sentences)), n_sentences)
            n_sentences = np.bincount(owners[has_terms], minlength=len(n_sentences))
        ids, lengths = self.units.ragged_many("ids", found[has_terms])
        return Terms(
            np.asarray(ids).astype(np.int32, copy=False),
            np.asarray(lengths, np.int64),
            np.asarray(n_sentences, np.int64),
            has_terms,
        )


def open_index(
    cache: Path, group: str, sentences: Sentences, *, backend: Backend = "auto"
) -> tuple[Index, NDArray[np.bool_]]:
    """An index over all sentences that have terms, in the order of the documents.

    With it, which of all sentences are its rows: (n,) bool.

    Args:
        cache: path of the cache, by which kept postings are looked for.
        group: of the terms, such as ``terms/chars@3f2a9c71b0de``.
        sentences: of the cache as it is now.
        backend: whose kernels run.
    """
    folder = folder_of(cache, group)
    index, numbers = Index(backend=backend), (0, 0)
    for mapped in _mapped_in(folder):
        try:
            numbers = _add_mapped(index, mapped, sentences, numbers)
        except (KeyError, TypeError, ValueError, DictionaryError):
            break  # made from something else, or by another version: made anew below
    n_mapped = len(index.segments)
    n_left = len(sentences.names) - numbers[0]
    if n_left:
        if n_mapped >= _MAX_SEGMENTS or n_left >= numbers[0]:
            index, numbers, n_mapped = Index(backend=backend), (0, 0), 0
        terms = sentences.read(numbers[0])
        has_terms = np.concatenate((np.ones(index.n_rows, np.bool_), terms.has_terms))
        names = sentences.names[numbers[0] :]
        index.add_many(names, terms.ids, terms.lengths, terms.n_sentences)
        if terms.has_terms.all():  # the checksums of a part could not tell that the rest has come
            about = {"segment": SEGMENT_VERSION, "cache": str(cache.resolve()), "begins": numbers}
            arrays = _evidence(sentences, numbers) | {"n_sentences": terms.n_sentences}
            _keep(folder, n_mapped, about, arrays, index.segments[-1])
        return index, has_terms
    return index, np.ones(index.n_rows, np.bool_)


def folder_of(cache: Path, group: str) -> Path:
    """Where the postings of one cache and analyser are kept."""
    where = hash_of(str(cache.resolve()).encode("utf-8", "surrogateescape"))
    return user_cache.folder(f"{_PREFIX}{where}-{group.rpartition('/')[2]}")


def _mapped_in(folder: Path) -> Iterator[ArrayFile]:
    """The kept segments in order, up to the first that is absent or damaged."""
    number = 0
    with suppress(OSError, ValueError, KeyError, TypeError):
        while True:
            yield ArrayFile.map(folder / f"{number}{_SUFFIX}")
            number += 1


def _add_mapped(
    index: Index, mapped: ArrayFile, sentences: Sentences, begins: tuple[int, int]
) -> tuple[int, int]:
    """Add a kept segment that continues the index; returns how many documents and units it proves.

    Raises:
        ValueError, DictionaryError: it was made from something else.
    """
    arrays = mapped.arrays
    if mapped.about["segment"] != SEGMENT_VERSION or mapped.about["begins"] != list(begins):
        raise ValueError("another version, or the continuation of another segment")
    ends = (begins[0] + len(arrays["document_checks"]), begins[1] + len(arrays["unit_checks"]))
    if ends[0] > len(sentences.rows) or ends[1] > sentences.units.n_rows:
        raise ValueError("made from more than there is")
    for name, now in _evidence(sentences, begins, ends).items():
        if not np.array_equal(arrays[name], now):
            raise ValueError(f"made from other {name}")
    segment = Segment.from_arrays(arrays["ids"], arrays["lengths"], arrays)
    if not segment.is_within_bounds():
        raise ValueError("a posting points outside")
    n_sentences = arrays["n_sentences"]
    if n_sentences.min(initial=0) < 0 or int(n_sentences.sum()) != segment.n_rows:
        raise ValueError("sentences of documents do not add up")
    index.add_segment(sentences.names[begins[0] : ends[0]], segment, n_sentences)
    return ends


def _evidence(
    sentences: Sentences,
    begins: tuple[int, int],
    ends: tuple[int | None, int | None] = (None, None),
) -> dict[str, NDArray[Any]]:
    """Checksums, salted by table, of the documents in order, and of the terms in store since."""
    rows = sentences.rows[begins[0] : ends[0]]
    n_units = sentences.units.n_rows if ends[1] is None else ends[1]
    return {
        "document_checks": sentences.documents.gather("checks", rows),
        "unit_checks": sentences.units.slice("checks", begins[1], n_units),
    }


def _keep(
    folder: Path,
    number: int,
    about: dict[str, object],
    arrays: dict[str, NDArray[Any]],
    segment: Segment,
) -> None:
    whole = {**arrays, "ids": segment.ids, "lengths": segment.lengths, **segment.derived()}
    try:
        ArrayFile.write(folder / f"{number}{_SUFFIX}", about, whole)
    except OSError as error:
        if folder not in _told:
            _told.add(folder)
            logger.warning("postings are derived anew in each process: %s", error)
        return
    with suppress(OSError):
        _tidy(folder, number)


def _tidy(folder: Path, last: int) -> None:
    """Remove what continued another segment, what was abandoned, and postings of caches gone."""
    current = {f"{number}{_SUFFIX}" for number in range(last + 1)}
    asides = []
    for file in folder.iterdir():
        if user_cache.is_being_written(file):
            asides.append(file)
        elif file.name not in current:
            file.unlink(missing_ok=True)
    user_cache.sweep(asides)
    for other in folder.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if not Path(ArrayFile.map(other / f"0{_SUFFIX}").about["cache"]).exists():
                shutil.rmtree(other, ignore_errors=True)
