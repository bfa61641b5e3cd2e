"""Settings of a build as a frozen value with checked ranges. Units stand in the names."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from featpipe.errors import UsageError

#: The levels at which a document's text is cut into units, coarse to fine.
LEVELS = ("paragraph", "sentence", "word")

#: How writers of one cache exclude each other (:mod:`featpipe.store.lease`), and the environment
#: variable that chooses it; child processes inherit the choice.
LOCKS = ("kernel", "exclusive-file")
LOCK_VARIABLE = "FEATPIPE_LOCK"

#: What a process that reads documents needs before the first one.
LEAST_WORKER_MEMORY_BYTES = 128 << 20


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
            default, for half of the machine's memory; at least 128 MiB.

    Raises:
        UsageError: no such level, no level, or a count or deadline of 0 or less or that is no
            number.
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
        given = self.levels
        unknown = [level for level in given if level not in LEVELS]
        if unknown or not given:
            raise UsageError(
                f"unknown level {', '.join(map(repr, unknown)) or '(none given)'}",
                hint=f"choose from {', '.join(LEVELS)}",
            )
        # In one order, and each once: levels are added up, and compared with a folder's.
        object.__setattr__(self, "levels", tuple(level for level in LEVELS if level in given))
        for name in ("document_deadline_s", "ocr_deadline_s", "unit_deadline_s"):
            check_number(name, getattr(self, name))
        check_number("lock_wait_s", self.lock_wait_s, may_be_zero=True)
        for name in ("n_prepare_workers", "max_document_bytes", "max_document_characters"):
            check_whole(name, getattr(self, name), least=1)
        check_whole(
            "max_worker_memory_bytes",
            self.max_worker_memory_bytes,
            least=LEAST_WORKER_MEMORY_BYTES,
            hint="each worker that reads documents needs it; they share shard prepare --memory",
        )
        check_flag("use_ocr", self.use_ocr)

    @property
    def task_deadline_s(self) -> float:
        """The deadline of one document, with or without OCR."""
        return self.ocr_deadline_s if self.use_ocr else self.document_deadline_s


def check_number(name: str, value: object, *, may_be_zero: bool = False) -> None:
    """Refuse the setting `name` unless it is a number above 0; infinity is one, NaN is not.

    Raises:
        UsageError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name} must be a number, not {value!r}")
    if not (value > 0 or (may_be_zero and value == 0)):
        raise UsageError(f"{name} must be {'0 or more' if may_be_zero else 'above 0'}, not {value}")


def check_whole(
    name: str, value: object, *, least: int | None = None, hint: str | None = None
) -> None:
    """Refuse the setting `name` unless it is None or a whole number, of `least` or more.

    Raises:
        UsageError: it is not.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    if least is not None and value < least:
        raise UsageError(f"{name} must be {least} or more, not {value}", hint=hint)


def check_n_hits(k: object) -> None:
    """Refuse `k` unless it is a whole number, of Python's or numpy's, of 1 or more.

    Raises:
        UsageError: it is not.
    """
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise UsageError(f"k must be a whole number, not {k!r}")
    if k < 1:
        raise UsageError(f"k must be at least 1, not {k}")


def check_flag(name: str, value: object) -> None:
    """Refuse the setting `name` unless it is True or False: a word such as "no" would be true.

    Raises:
        UsageError: it is not.
    """
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {value!r}")
