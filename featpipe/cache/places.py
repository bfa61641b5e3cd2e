"""Places: where documents were found, and what stands for a document's identity."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.texts import Texts
from featpipe.documents import SEGMENTER_VERSION, hash_bytes
from featpipe.documents.load import BUILT_IN, registered
from featpipe.documents.media_type import may_need_ocr
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import MissingExtra
from featpipe.lexical.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.cache.write import Rows
    from featpipe.documents import Source
    from featpipe.store import Reader


@dataclass(frozen=True, slots=True)
class Preparation:
    """Fingerprints of everything that decides how a file's bytes become units.

    ``ocr`` names the engine that reads scans; "" when they are not read.
    """

    fingerprint: str
    ocr: str = ""

    def of(self, data: bytes) -> str:
        """The part of a file's identity: OCR counts only for files that it might read."""
        return (
            f"{self.fingerprint}+{self.ocr}"
            if self.ocr and may_need_ocr(data)
            else (self.fingerprint)
        )


def make_preparation(*, use_ocr: bool = False) -> Preparation:
    """The one of this installation.

    Raises:
        MissingExtra: OCR is asked for and not installed.
    """
    fingerprint = fingerprint_of(
        {
            "layout": tables.LAYOUT_VERSION,
            "loaders": sorted(loader.identity for loader in (*registered(), *BUILT_IN)),
            "segmenter": SEGMENTER_VERSION,
            "words": Words().spec,
        }
    )
    return Preparation(fingerprint, _engine() if use_ocr else "")


def _engine() -> str:
    try:
        return "+".join(f"{name} {version(name)}" for name in ("rapidocr", "onnxruntime"))
    except PackageNotFoundError as error:
        raise MissingExtra(
            f"OCR needs {error.name}, which is not installed", hint='pip install "featpipe[ocr]"'
        ) from error


def document_key(source: Source, data: bytes, preparation: Preparation) -> bytes:
    """16 bytes for (content, way of reading it), wherever the content was found.

    Of the name only the suffix counts, since it decides between kinds of text; another loader
    version makes another ``preparation``, and the file is read again.
    """
    suffix = PurePath(source.id).suffix.lower()
    whole = "\0".join(
        (hash_bytes(data), source.media_type or suffix, preparation.of(data))
    ).encode()
    return blake2b(whole, digest_size=16, person=b"featpipe-docs-v1").digest()


def source_rows(sources: Sequence[Source], keys: bytes) -> Rows:
    """Rows for ``/sources``: where the documents of these ``keys`` (16 bytes each) were found."""
    return {
        "document": np.frombuffer(keys, np.uint8).reshape(-1, 16),
        "path": Texts.from_strings([source.address for source in sources]).ragged,
        "id": Texts.from_strings([source.id for source in sources]).ragged,
    }


def last_places(reader: Reader) -> dict[str, tuple[str, bytes]]:
    """Absolute path -> (readable name, key of the document last seen there)."""
    if tables.SOURCES not in reader:
        return {}
    table = reader.table(tables.SOURCES)
    rows = np.arange(table.n_rows)
    paths = Texts(*table.ragged_many("path", rows)).strings()
    names = Texts(*table.ragged_many("id", rows)).strings()
    keys = np.asarray(table.gather("document", rows)).tobytes()
    return {
        path: (name, keys[16 * at : 16 * at + 16])
        for at, (path, name) in enumerate(zip(paths, names, strict=True))
    }
