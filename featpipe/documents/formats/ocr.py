"""Text of pictures by OCR, for scanned pages and image files. Needs the ``ocr`` extra (rapidocr).

The models are part of the wheel: nothing is fetched. OCR runs only where there is no text layer and
``LoadLimits.use_ocr`` is set; its pages carry their confidence and are named in the notes. Lines go
through the same layout as those of a PDF.
"""

from __future__ import annotations

import io
import warnings
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np

from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.formats.pdf_layout import PageLines, to_blocks
from featpipe.documents.formats.pdf_margins import Line
from featpipe.documents.limits import OCR_HINT
from featpipe.errors import DocumentTooLarge, EmptyDocument, UnreadableDocument, UnsupportedDocument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.documents.limits import LoadLimits

MAX_PIXELS = 64_000_000
_MIN_SCORE = 0.5


class ReadPage(NamedTuple):
    """The lines of one picture, in reading order, and their mean confidence (0 to 1)."""

    page: PageLines
    confidence: float


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read an image file; each frame is a page.

    Raises:
        UnsupportedDocument: OCR is not asked for, or the ``ocr`` extra is missing.
        UnreadableDocument: damaged.
        DocumentTooLarge: more frames or pixels than the limits allow.
    """
    if not limits.use_ocr:
        raise UnsupportedDocument("a picture is not read without OCR", hint=OCR_HINT)
    load_engine()
    builder = DocumentBuilder(limits)
    frames = enumerate(_frames(data, limits), start=1)
    scores = [_add_frame(builder, number, pixels) for number, pixels in frames]
    builder.note(describe(len(scores), scores))
    if not builder.length:
        raise EmptyDocument("a picture in which OCR finds no text")
    return builder


def _add_frame(builder: DocumentBuilder, number: int, pixels: NDArray[np.uint8]) -> float:
    """Add the text of a frame as a page; its confidence."""
    start = builder.length
    read = read_picture(pixels, number)
    for block in to_blocks([read.page], set()):
        builder.add(block.text)
    builder.end_page(number, start, read.confidence)
    return read.confidence


def describe(n_pages: int, scores: list[float]) -> str:
    """The note on pages read by OCR."""
    mean = sum(scores) / max(1, len(scores))
    return f"{n_pages} pages read by OCR (rapidocr {version('rapidocr')}), confidence {mean:.2f}"


@lru_cache(maxsize=1)
def load_engine() -> _Engine:
    """The OCR engine, once per process.

    Raises:
        UnsupportedDocument: the ``ocr`` extra is missing.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of third parties, at their import
            from rapidocr import RapidOCR
    except ImportError as error:
        raise UnsupportedDocument(
            "reading pictures needs the extra 'ocr'", hint='pip install "featpipe[ocr]"'
        ) from error
    # One thread: prepare workers are as many as there are cores.
    settings = {"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1}
    return cast("_Engine", RapidOCR(params=settings))


class _Engine(Protocol):
    """A ``rapidocr.RapidOCR``."""

    def __call__(self, pixels: NDArray[np.uint8]) -> _Found | None: ...


class _Found(Protocol):
    """Lines that OCR found: corners (n, 4, 2) in pixels, texts and scores; None without lines."""

    boxes: NDArray[np.float32] | None
    txts: tuple[str, ...] | None
    scores: tuple[float, ...]


def read_picture(pixels: NDArray[np.uint8], number: int) -> ReadPage:
    """Read one picture.

    Args:
        pixels: (height, width, 3), BGR.
        number: of the page, for the result.
    """
    result = load_engine()(pixels)
    height = float(pixels.shape[0])
    if result is None or result.boxes is None or result.txts is None:
        return ReadPage(PageLines(number, height, []), 0.0)
    lines, scores = [], []
    for box, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
        if float(score) < _MIN_SCORE or not text.strip():
            continue
        (left, top), (right, bottom) = np.min(box, axis=0), np.max(box, axis=0)
        size = 0.75 * float(bottom - top)  # boxes of lines are taller than their letters
        lines.append(Line(text, float(left), float(right), height - float(bottom), size))
        scores.append(float(score))
    confidence = sum(scores) / len(scores) if scores else 0.0
    return ReadPage(PageLines(number, height, lines), confidence)


def _frames(data: bytes, limits: LoadLimits) -> list[NDArray[np.uint8]]:
    from PIL import Image, UnidentifiedImageError

    try:
        frames = _decoded_frames(data, limits)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DocumentTooLarge(f"a picture of too many pixels ({error})") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise UnreadableDocument(f"a damaged picture ({error})") from error
    return [np.ascontiguousarray(frame[:, :, ::-1]) for frame in frames]


def _decoded_frames(data: bytes, limits: LoadLimits) -> list[NDArray[np.uint8]]:
    """Shapes: (height, width, 3) each, RGB. Raises Pillow's errors, besides DocumentTooLarge."""
    from PIL import Image, ImageSequence

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        image = Image.open(io.BytesIO(data))
    if image.width * image.height > MAX_PIXELS:
        raise DocumentTooLarge(f"a picture of {image.width} x {image.height} pixels")
    n_frames = getattr(image, "n_frames", 1)
    if n_frames > limits.max_ocr_pages:
        raise DocumentTooLarge(f"{n_frames:,} pictures are more than {limits.max_ocr_pages:,}")
    return [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
