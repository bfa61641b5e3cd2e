"""The index over a cache's sentences, with its postings kept as files between processes.

The cache stores term ids per sentence. Postings are derived from them, which takes a third of a
second per million sentences, and kept in the user's own cache folder, because the folder of the
cache may be read-only or belong to another user.

Guarantees:
- Scores are the same whether postings were mapped or derived. Kept postings are used only if they
  hold the checksums of the very documents and terms that the cache holds now; else they are made
  anew.
- Documents added to a cache make one more segment; the earlier ones stay mapped.
- Sentences without terms, as beside a running build, which writes documents before their terms, are
  left out and counted; the scores are those over the others. Postings of documents with such a gap
  are not kept.
- No damage to a kept file makes a kernel read or write outside its arrays: every row, code and
  pointer is compared with its bounds on opening. A flipped bit that stays within them, and is not
  in the first or last 4 KiB of an array, goes unnoticed.
- Any number of processes may open and write at once. Where the files cannot be written, the
  postings serve this process alone, and a warning is logged once.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe import user_cache
from featpipe.atomic_write import is_being_written
from featpipe.errors import DictionaryError
from featpipe.lexical.index import Index
from featpipe.lexical.jieba_dictionary import hash_of
from featpipe.lexical.segment import SEGMENT_VERSION, Segment
from featpipe.user_cache import ArrayFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.lexical.backend import Backend
    from featpipe.store import TableReader
    from featpipe.user_cache import Array

logger = getLogger(__name__)

#: With more segments than this, all become one: a query visits each.
_MAX_SEGMENTS = 8

_PREFIX = "postings-"
_SUFFIX = ".arrays"
#: Folders whose write fault has been logged.
_logged: set[Path] = set()


class Terms(NamedTuple):
    """The terms of some documents' sentences.

    ``has_terms`` (n,) marks the sentences that have terms. Of these: ``ids`` laid end to end,
    ``lengths`` in terms per sentence, ``n_sentences`` per document.
    """

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    n_sentences: NDArray[np.int64]
    has_terms: NDArray[np.bool_]


class Sentences(NamedTuple):
    """The sentences to index, by document.

    ``rows`` (n,) are those of the documents in the table ``documents``; ``units`` holds the term
    ids of each distinct sentence by its key.
    """

    documents: TableReader
    units: TableReader
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
            np.ascontiguousarray(ids, np.uint32).view(np.int32),
            np.asarray(lengths, np.int64),
            np.asarray(n_sentences, np.int64),
            has_terms,
        )


def open_index(
    cache: Path, group: str, sentences: Sentences, *, backend: Backend = "auto"
) -> tuple[Index, NDArray[np.bool_]]:
    """An index over all sentences that have terms, in the order of the documents.

    Args:
        cache: path of the cache, by which kept postings are looked for.
        group: of the terms, such as ``terms/chars@3f2a9c71b0de``.
        sentences: of the cache as it is now.
        backend: whose kernels run.

    Returns:
        The index, and a mask (n,) over all sentences of those that are its rows.
    """
    folder = folder_of(cache, group)
    index, ends = _map_kept(folder, sentences, backend)
    n_left = len(sentences.rows) - ends[0]
    if not n_left:
        return index, np.ones(index.n_rows, np.bool_)
    if len(index.segments) >= _MAX_SEGMENTS or n_left >= ends[0]:
        index, ends = Index(backend=backend), (0, 0)
    number, n_before = len(index.segments), index.n_rows
    terms = sentences.read(ends[0])
    added = range(ends[0], len(sentences.rows))
    index.add_many(added, terms.ids, terms.lengths, terms.n_sentences)
    if terms.has_terms.all():  # else the checksums of the terms could not show that more came
        about = {"segment": SEGMENT_VERSION, "cache": str(cache.resolve()), "begins": ends}
        arrays = _checks(sentences, ends) | {"n_sentences": terms.n_sentences}
        if _keep(folder, number, about, arrays, index.segments[-1]):
            # Mapped, they take no memory of this process.
            mapped, covered = _map_kept(folder, sentences, backend)
            index = mapped if covered[0] == len(sentences.rows) else index
    return index, np.concatenate((np.ones(n_before, np.bool_), terms.has_terms))


def folder_of(cache: Path, group: str) -> Path:
    """Where the postings of one cache and analyser are kept."""
    where = hash_of(str(cache.resolve()).encode("utf-8", "surrogateescape"))
    return user_cache.folder(f"{_PREFIX}{where}-{group.rpartition('/')[2]}")


def _map_kept(
    folder: Path, sentences: Sentences, backend: Backend
) -> tuple[Index, tuple[int, int]]:
    """The index of the kept segments that are still right, and the documents and units it covers.

    The segments are tried in order, up to the first that is absent, damaged, of another version or
    made from other rows.
    """
    index, ends = Index(backend=backend), (0, 0)
    with suppress(OSError, KeyError, TypeError, ValueError, DictionaryError):
        while True:
            mapped = ArrayFile.map(folder / f"{len(index.segments)}{_SUFFIX}")
            ends = _add_mapped(index, mapped, sentences, ends)
    return index, ends


def _add_mapped(
    index: Index, mapped: ArrayFile, sentences: Sentences, begins: tuple[int, int]
) -> tuple[int, int]:
    """Add a kept segment that continues the index; returns how many documents and units it covers.

    Raises:
        KeyError, TypeError, ValueError, DictionaryError: it was made from other rows.
    """
    arrays = mapped.arrays
    if mapped.about["segment"] != SEGMENT_VERSION or mapped.about["begins"] != list(begins):
        raise ValueError("another version, or the continuation of another segment")
    ends = (begins[0] + len(arrays["document_checks"]), begins[1] + len(arrays["unit_checks"]))
    if ends[0] > len(sentences.rows) or ends[1] > sentences.units.n_rows:
        raise ValueError("made from more than there is")
    for name, now in _checks(sentences, begins, ends).items():
        if not np.array_equal(arrays[name], now):
            raise ValueError(f"made from other {name}")
    segment = Segment.from_arrays(arrays["lengths"], arrays)
    if not segment.is_within_bounds():
        raise ValueError("a posting points outside")
    n_sentences = arrays["n_sentences"]
    if n_sentences.min(initial=0) < 0 or int(n_sentences.sum()) != segment.n_rows:
        raise ValueError("sentences of documents do not add up")
    index.add_segment(range(begins[0], ends[0]), segment, n_sentences)
    return ends


def _checks(
    sentences: Sentences,
    begins: tuple[int, int],
    ends: tuple[int | None, int | None] = (None, None),
) -> dict[str, Array]:
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
    arrays: dict[str, Array],
    segment: Segment,
) -> bool:
    """Keep a segment; whether it could be written."""
    whole = {**arrays, "lengths": segment.lengths, **segment.derived()}
    try:
        ArrayFile.write(folder / f"{number}{_SUFFIX}", about, whole)
    except OSError as error:
        if folder not in _logged:
            _logged.add(folder)
            logger.warning("postings are derived anew in each process: %s", error)
        return False
    with suppress(OSError):
        _tidy(folder, number)
    return True


def _tidy(folder: Path, last: int) -> None:
    """Remove later segments, abandoned files, and postings of caches that are gone."""
    current = {f"{number}{_SUFFIX}" for number in range(last + 1)}
    asides = []
    for file in folder.iterdir():
        if is_being_written(file):
            asides.append(file)
        elif file.name not in current:
            file.unlink(missing_ok=True)
    user_cache.sweep(asides)
    for other in folder.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if not Path(ArrayFile.map(other / f"0{_SUFFIX}").about["cache"]).exists():
                shutil.rmtree(other, ignore_errors=True)
