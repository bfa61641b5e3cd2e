"""What a run may be told, as frozen values with checked ranges. Units stand in the names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from featpipe.errors import UsageError

#: The levels at which a document's text is cut into units, coarse to fine.
LEVELS = ("paragraph", "sentence", "word")


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How ``build-cache`` cuts, loads and schedules. Vectors do not depend on anything in here."""

    levels: tuple[str, ...] = LEVELS
    analyser: Literal["words", "search", "chars", "words+chars"] = "chars"
    """Terms counted for BM25; see :mod:`featpipe.lexical.terms`."""
    n_prepare_workers: int = 1
    document_deadline_s: float = 120.0
    """A document that takes longer to load is quarantined and its worker replaced."""
    use_ocr: bool = False
    """Read pages without a text layer, and pictures, by OCR (about 2 s a page)."""
    ocr_deadline_s: float = 1800.0
    """Takes the place of ``document_deadline_s`` where ``use_ocr`` is set."""
    unit_deadline_s: float = 600.0
    """A batch of units that takes longer is halved until the one to blame is alone."""
    lock_wait_s: float = 0.0
    """How long to wait for another run that writes the same cache."""
    max_document_bytes: int | None = None
    max_document_characters: int | None = None
    """As :class:`featpipe.LoadLimits`, whose defaults hold unless given."""
    max_worker_memory_bytes: int | None = None
    """For each worker that reads documents; half of the machine's memory unless given."""

    def __post_init__(self) -> None:
        unknown = [level for level in self.levels if level not in LEVELS]
        if unknown or not self.levels:
            raise UsageError(
                f"unknown level {', '.join(map(repr, unknown)) or '(none given)'}",
                hint=f"choose from {', '.join(LEVELS)}",
            )
        deadlines = ("document_deadline_s", "ocr_deadline_s", "unit_deadline_s")
        for name in ("n_prepare_workers", *deadlines):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be above 0, not {getattr(self, name)}")

    @property
    def task_deadline_s(self) -> float:
        """What a prepare worker gets for one document."""
        return self.ocr_deadline_s if self.use_ocr else self.document_deadline_s
