"""Loading and segmentation against the obvious alternative, in one process, round by round.

    python scripts/bench_documents.py --data ../shared/data [--quick] [--json FILE]

HTML against BeautifulSoup (html.parser, ``get_text``), PDF against pypdf (``extract_text``), DOCX
against python-docx (text of all paragraphs and cells), PPTX and XLSX against theirs. Our side also
hashes, cleans, finds tables and pages. That both sides read the same is checked first.
"""

from __future__ import annotations

import io
import re
import statistics
import tarfile
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import finish, read_options

from featpipe.documents import Document, load_document, segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
#: Least share of characters that both sides must have in common for a comparison to count.
AGREEMENT = {"html": 0.995, "pdf": 0.97, "docx": 0.95, "pptx": 0.6, "xlsx": 0.9}


def members_of(archive: Path, suffix: str) -> Iterator[bytes]:
    """Contents of the files with this suffix in a tar archive."""
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.name.endswith(suffix) else None
            if file:
                yield file.read()


def read_html(data: bytes) -> str:
    """BeautifulSoup as its own documentation begins."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(data, "html.parser").get_text()


def read_pdf(data: bytes) -> str:
    """Every page by pypdf."""
    import pypdf

    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def read_docx(data: bytes) -> str:
    """Paragraphs and cells by python-docx."""
    import docx

    file: Any = docx.Document(io.BytesIO(data))
    cells = [cell.text for table in file.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(paragraph.text for paragraph in file.paragraphs), *cells])


def read_pptx(data: bytes) -> str:
    """Text frames of all shapes by python-pptx."""
    import pptx

    slides = pptx.Presentation(io.BytesIO(data)).slides
    return "\n".join(
        shape.text_frame.text for slide in slides for shape in slide.shapes if shape.has_text_frame
    )


def read_xlsx(data: bytes) -> str:
    """Values of all cells by openpyxl, in its fastest mode."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    rows = (row for sheet in book for row in sheet.iter_rows(values_only=True))
    return "\n".join(str(value) for row in rows for value in row if value is not None)


PEERS: dict[str, tuple[str, Callable[[bytes], str]]] = {
    "html": ("BeautifulSoup", read_html),
    "pdf": ("pypdf", read_pdf),
    "docx": ("python-docx", read_docx),
    "pptx": ("python-pptx", read_pptx),
    "xlsx": ("openpyxl", read_xlsx),
}


def agreement(ours: Sequence[Document], theirs: Sequence[str]) -> float:
    """Share of their characters (blanks apart) that we have as well, file by file, at worst 0."""
    shares = []
    for document, text in zip(ours, theirs, strict=True):
        mine, other = characters(document.text), characters(text)
        shares.append((mine & other).total() / max(1, other.total()))
    return statistics.fmean(shares)


def characters(text: str) -> Counter[str]:
    """How often each character occurs, in one form, blanks apart."""
    plain = unicodedata.normalize("NFKC", text)
    return Counter(re.sub(r"[\s\x00-\x1f\ue000-\uf8ff\u200b\ufeff\ufffe\ufffd]", "", plain))


def timed(load: Callable[[bytes], object], files: Sequence[bytes]) -> float:
    """Seconds of processor time for all files: both sides use one thread, the machine is shared."""
    begun = time.process_time()
    for data in files:
        load(data)
    return time.process_time() - begun


def compare(kind: str, files: Sequence[bytes], rounds: int) -> dict[str, float]:
    """Ratios of one format, peer's seconds over ours."""
    name, peer = PEERS[kind]

    def load(data: bytes) -> Document:
        return load_document(data, source=f"file.{kind}")

    agreed = agreement([load(data) for data in files], [peer(data) for data in files])
    if agreed < AGREEMENT[kind]:
        raise SystemExit(f"{kind}: only {agreed:.3f} of {name}'s characters are in our text")
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(timed(peer, files))
        ours.append(timed(load, files))
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    megabytes, best = sum(map(len, files)) / 1e6, min(ours)
    print(
        f"{kind:<5} {len(files):>5} files {megabytes:>6.1f} MB  vs {name:<13} "
        f"{statistics.median(ratios):5.1f}x ({min(ratios):.1f} to {max(ratios):.1f})  "
        f"we {megabytes / best:6.1f} MB/s {len(files) / best:7.0f} documents/s  agree {agreed:.4f}"
    )
    return {
        "ratio": round(statistics.median(ratios), 3),
        "documents_s": round(len(files) / best, 1),
    }


def bench_segment(texts: Sequence[str], rounds: int) -> float:
    """Megabytes of UTF-8 text cut into paragraphs and sentences in a second."""
    n_bytes = sum(len(text.encode()) for text in texts)
    seconds = []
    for _ in range(rounds):
        begun = time.process_time()
        n_sentences = sum(len(segment(text).sentences) for text in texts)
        seconds.append(time.process_time() - begun)
    megabytes = n_bytes / 1e6
    rate = megabytes / min(seconds)
    print(
        f"segment {len(texts)} texts {megabytes:.1f} MB {n_sentences:,} sentences {rate:.1f} MB/s"
    )
    return round(rate, 2)


def files_of(data: Path, *, is_quick: bool) -> dict[str, list[bytes]]:
    """The files of each format."""
    raw = data / "raw"
    pages = list(members_of(raw / "fddc_html.tar.xz", ".html"))
    office = {
        kind: [
            *members_of(raw / "docs_zh.tar.xz", kind),
            *members_of(raw / "docs_edge.tar.xz", kind),
        ]
        for kind in ("docx", "pptx", "xlsx")
    }
    contracts = list(members_of(raw / "cuad_pdf_txt.tar.xz", ".pdf"))
    return {"html": pages[:200] if is_quick else pages[:1000], "pdf": contracts, **office}


def main() -> None:
    """Run all comparisons."""
    arguments = read_options(__doc__)
    rounds = 3 if arguments.quick else 7
    files = files_of(arguments.data, is_quick=arguments.quick)
    results = {kind: compare(kind, files[kind], rounds) for kind in PEERS}
    texts = [load_document(data, source="a.html").text for data in files["html"]]
    figures: dict[str, float] = {
        f"{kind}_vs_{peer}": results[kind]["ratio"]
        for kind, peer in (("html", "bs4"), ("pdf", "pypdf"), ("docx", "python_docx"),
                           ("pptx", "python_pptx"), ("xlsx", "openpyxl"))
    }  # fmt: skip
    figures["segment_mb_s"] = bench_segment(texts, rounds)
    figures |= {f"{kind}_documents_s": results[kind]["documents_s"] for kind in PEERS}
    finish("bench_documents", arguments, figures)


if __name__ == "__main__":
    main()
