"""The way files are read and cut into units: part of what a document of the cache is known by.

Guarantee: a file that would be read otherwise than it was, by another loader version or now with
OCR, is read again; all others are recognised, and of those read again only new units are encoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from featpipe.cache import tables
from featpipe.documents import SEGMENTER_VERSION
from featpipe.documents.load import BUILT_IN, registered
from featpipe.documents.media_type import may_need_ocr
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import MissingExtra
from featpipe.lexical.words import Words


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
