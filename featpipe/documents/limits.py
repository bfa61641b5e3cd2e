"""How much of one document is read: a bound on every quantity that a file controls."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024
#: The next step where something can only be read by OCR.
OCR_HINT = 'pip install "featpipe[ocr]" and pass --ocr (LoadLimits.use_ocr) to read scans'

#: The next step where LibreOffice is needed.
LIBREOFFICE_HINT = "install it (Debian: libreoffice-writer-nogui), or save the file as .docx"


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Bounds for one document; a document beyond any of them raises ``DocumentTooLarge``.

    ``featpipe build-cache``, ``load_document``, ``Extractor``, the extraction workers, the service
    and the consumer use the same defaults: a document that one of them accepts is accepted by all.

    The bounds limit memory and work and name the quantity that was exceeded. A worker's memory
    ceiling and deadline, which cannot, are the last resort.

    Attributes:
        max_bytes: size of the file as handed in.
        max_characters: length of the extracted text.
        max_pages: pages, slides or sheets.
        max_members: entries of a zip container (docx, pptx, xlsx, epub ...).
        max_unpacked_bytes: sum of the unpacked sizes of the members that are read.
        max_ratio: unpacked / packed size of one member above 1 MiB; deflate reaches 1,032.
        max_cells: cells of a spreadsheet, over all sheets.
        max_depth: nesting of mail parts.
        use_ocr: read pages without a text layer, and images, by OCR (needs the ``ocr`` extra).
        max_ocr_pages: pages of one document that may go through OCR (about 2 s each). A PDF keeps
            the pages read until then, with a note; an image of more frames is refused.
    """

    max_bytes: int = 256 * MIB
    max_characters: int = 40_000_000
    max_pages: int = 20_000
    max_members: int = 20_000
    max_unpacked_bytes: int = 512 * MIB
    max_ratio: int = 200
    max_cells: int = 5_000_000
    max_depth: int = 256
    use_ocr: bool = False
    max_ocr_pages: int = 500
