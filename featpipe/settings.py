"""Settings of a build as a frozen value with checked ranges. Units stand in the names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from featpipe.errors import UsageError

#: The levels at which a document's text is cut into units, coarse to fine.
LEVELS = ("paragraph", "sentence", "word")

#: How writers of one cache exclude each other (:mod:`featpipe.store.lease`), and the environment
#: variable that chooses it; child processes inherit the choice.
LOCKS = ("kernel", "exclusive-file")
LOCK_VARIABLE = "FEATPIPE_LOCK"


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How `featpipe.Pipeline` cuts, loads and schedules. Vectors depend on none of it.

    Attributes:
        levels: which units get features: some of ``paragraph``, ``sentence`` and ``word``; all by
            default. Documents are always cut at all three.
        analyser: terms counted for BM25: ``chars`` (default), ``words``, ``search`` or
            ``words+chars``; see `featpipe.lexical.terms`.
        n_prepare_workers: processes that read documents; None, the default, for 1, or beside cards
            for 3 a card, as far as there are cores.
        document_deadline_s: a document that takes longer to load, 120 s by default, is quarantined
            and its worker replaced.
        use_ocr: read pages without a text layer, and pictures, by OCR (about 2 s a page; needs the
            ``ocr`` extra). Default False.
        ocr_deadline_s: takes the place of ``document_deadline_s`` where ``use_ocr`` is set; 1,800 s
            by default.
        unit_deadline_s: a batch of units that takes longer, 600 s by default, is halved until the
            unit to blame is alone.
        lock_wait_s: how long to wait for another process that writes the same cache; 0 by default.
        max_document_bytes: a larger file is quarantined unread; None, the default, for that of
            `featpipe.documents.LoadLimits`.
        max_document_characters: a document with a longer text is quarantined; None likewise.
        max_worker_memory_bytes: private memory of each process that reads documents; None, the
            default, for half of the machine's memory.

    Raises:
        UsageError: no such level, no level, or a count or deadline of 0 or less.
    """

    levels: tuple[str, ...] = LEVELS
    analyser: Literal["words", "search", "chars", "words+chars"] = "chars"
    n_prepare_workers: int | None = None
    document_deadline_s: float = 120.0
    use_ocr: bool = False
    ocr_deadline_s: float = 1800.0
    unit_deadline_s: float = 600.0
    lock_wait_s: float = 0.0
    max_document_bytes: int | None = None
    max_document_characters: int | None = None
    max_worker_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        unknown = [level for level in self.levels if level not in LEVELS]
        if unknown or not self.levels:
            raise UsageError(
                f"unknown level {', '.join(map(repr, unknown)) or '(none given)'}",
                hint=f"choose from {', '.join(LEVELS)}",
            )
        deadlines = ("document_deadline_s", "ocr_deadline_s", "unit_deadline_s")
        for name in ("n_prepare_workers", *deadlines):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"{name} must be above 0, not {value}")

    @property
    def task_deadline_s(self) -> float:
        """The deadline of one document, with or without OCR."""
        return self.ocr_deadline_s if self.use_ocr else self.document_deadline_s
