"""Places: where documents were found, and the identity of a document's content."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from featpipe.cache import tables
from featpipe.cache.texts import Texts, join_keys, split_keys
from featpipe.documents import SEGMENTER_VERSION, hash_bytes
from featpipe.documents.load import BUILT_IN, added_identity, check_promise, registered
from featpipe.documents.media_type import may_need_ocr
from featpipe.documents.source import GivenText
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import MissingExtra
from featpipe.lexical.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.tables import Rows
    from featpipe.documents import LoadLimits, Source
    from featpipe.store import Reader, TableReader

#: Stands for the key of a document in the row of a place that it left. No content has this key, so
#: readers from before there were such rows find no document there either.
GONE = bytes(16)

#: The state of a file that was changed less than this before is not trusted: a further change
#: could leave the same size and times.
_SETTLED_NS = 2_000_000_000

#: Places read at a time.
_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class Preparation:
    """Fingerprints of everything that decides how a file's bytes become units.

    ``ocr`` names the engine that reads scans; "" when they are not read.
    """

    fingerprint: str
    ocr: str = ""

    @classmethod
    def of_spec(cls, spec: Mapping[str, object]) -> Self:
        """That of a `preparation_spec`; OCR is named apart, as it counts for scans only."""
        parts = {name: value for name, value in spec.items() if name != "ocr"}
        return cls(fingerprint_of(parts), str(spec["ocr"]))

    def of(self, data: bytes) -> str:
        """The part of a file's identity: OCR and later loaders count for their own files only."""
        if self.ocr and may_need_ocr(data):
            return f"{self.fingerprint}+{self.ocr}"
        added = added_identity(data)
        return f"{self.fingerprint}+{added}" if added else self.fingerprint


def make_preparation(*, use_ocr: bool = False) -> Preparation:
    """The one of this installation.

    Raises:
        MissingExtra: OCR is asked for and not installed.
    """
    return Preparation.of_spec(preparation_spec(use_ocr=use_ocr))


def preparation_spec(*, use_ocr: bool = False) -> dict[str, object]:
    """Every part of this installation's preparation. Raises MissingExtra."""
    return {
        "layout": tables.LAYOUT_VERSION,
        "loaders": sorted(loader.identity for loader in (*registered(), *BUILT_IN)),
        "segmenter": SEGMENTER_VERSION,
        "words": Words().spec,
        "ocr": _ocr_engine() if use_ocr else "",
    }


def _ocr_engine() -> str:
    try:
        return "+".join(f"{name} {version(name)}" for name in ("rapidocr", "onnxruntime"))
    except PackageNotFoundError as error:
        raise MissingExtra(
            f"OCR needs {error.name}, which is not installed", hint='pip install "featpipe[ocr]"'
        ) from error


class FileState(NamedTuple):
    """Changes with every change of a file's bytes, once the file has been left alone a while."""

    device: int
    inode: int
    n_bytes: int
    modified_ns: int
    changed_ns: int


#: Stands for the state of a text that the source itself holds.
_CONSTANT = FileState(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Identity:
    """A document's content and the way it is read, wherever it was found.

    Attributes:
        key: 16 bytes, from the content, its kind and the preparation.
        bytes_hash: of the content alone, by `featpipe.documents.hash_bytes`.
        state: of the file while it was hashed; None where a later change could go unseen.
    """

    key: bytes
    bytes_hash: str
    state: FileState | None = None


def read_identified(
    source: Source,
    limits: LoadLimits,
    preparation: Preparation,
    known: Identity | None = None,
) -> tuple[bytes, Identity]:
    """The bytes of a source, and their identity.

    ``known`` was found before, perhaps by another process. It is returned only where the file's
    state is the same before and after reading as it was then; else the bytes are hashed here.

    Raises:
        DocumentError: as ``Source.read`` and ``check_promise``.

    """
    before = _state_of(source)
    data = source.read(limits)
    if source.media_type is None:  # else it is a text, whatever it is called
        check_promise(data, source.id)
    state = before if before == _state_of(source) else None
    if known is not None and state is not None and state == known.state:
        return data, known
    bytes_hash = hash_bytes(data)
    # Of the name only the suffix counts, since it decides between kinds of text.
    kind = source.media_type or PurePath(source.id).suffix.lower()
    whole = "\0".join((bytes_hash, kind, preparation.of(data))).encode()
    key = blake2b(whole, digest_size=16, person=b"featpipe-docs-v1").digest()
    return data, Identity(key, bytes_hash, state)


def _state_of(source: Source) -> FileState | None:
    if isinstance(source.part, GivenText):
        return _CONSTANT
    try:
        status = source.path.stat()
    except OSError:
        return None
    if time_ns() - status.st_ctime_ns < _SETTLED_NS:
        return None
    return FileState(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def source_rows(sources: Sequence[Source], keys: Sequence[bytes]) -> Rows:
    """Rows for ``/sources``: where the documents of these keys were found."""
    return {
        "document": join_keys(keys),
        "path": Texts.from_strings([source.address for source in sources]).ragged,
        "id": Texts.from_strings([source.id for source in sources]).ragged,
    }


def gone_rows(places: Mapping[str, str]) -> Rows:
    """Rows for ``/sources``: path -> id of documents that leave the cache."""
    return {
        "document": join_keys([GONE] * len(places)),
        "path": Texts.from_strings(list(places)).ragged,
        "id": Texts.from_strings(list(places.values())).ragged,
    }


class Place(NamedTuple):
    """A row of ``/sources``; ``key`` is `GONE` where a document left."""

    path: str
    id: str
    key: bytes


def read_places(reader: Reader) -> Iterator[Place]:
    """Every row of ``/sources``, oldest first."""
    log = reader.table(tables.SOURCES) if tables.SOURCES in reader else None
    for start in range(0, log.n_rows if log else 0, _BLOCK):
        if log:
            yield from read_rows(log, np.arange(start, min(start + _BLOCK, log.n_rows)))


def read_rows(log: TableReader, rows: NDArray[np.int64]) -> list[Place]:
    """These rows of ``/sources``."""
    paths = Texts(*log.ragged_many("path", rows)).strings()
    names = Texts(*log.ragged_many("id", rows)).strings()
    return list(map(Place, paths, names, split_keys(np.asarray(log.gather("document", rows)))))
