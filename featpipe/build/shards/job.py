"""A job on a folder cache, the seat that does it, and its report: frozen values that travel."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from featpipe.report import Counts, FailedUnits, Quarantined, RunReport, report_from_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.store.folder_layout import FolderLayout

Kind = Literal["prepare", "encode"]

#: Between a shard and a further space in the names of reports.
SPACE_MARK = "+"

#: Numbers of a run that are those of its jobs added up.
_SUMMED = ("n_documents", "n_unique", "n_hits", "n_encoded", "n_departed")

#: Notes of a run beyond this many are in the reports of the jobs only.
_MOST_NOTES = 200


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """One job: ``prepare`` reads a part's documents, ``encode`` computes a shard's features.

    It may be killed, repeated, or run twice at once, anywhere: its only state is in files.

    Attributes:
        kind: ``prepare`` or ``encode``.
        number: of the shard, or of the part within its run.
        run: that planned the part; "" for the last one.
        space: of a further model, such as ``bge@3f2a9c71b0de``; "" for the folder's own.
    """

    kind: Kind
    number: int
    run: str = ""
    space: str = ""

    def __str__(self) -> str:
        number = f"{self.run}-{self.number:04d}" if self.run else str(self.number)
        return f"{self.kind} {number}{f' for {self.space}' if self.space else ''}"

    def name(self, layout: FolderLayout) -> str:
        """Of its reports."""
        if self.kind == "prepare":
            return f"prepare-{self.run}-{self.number:04d}"
        space = f"{SPACE_MARK}{self.space}" if self.space else ""
        return f"encode-{layout.shard_name(self.number)}{space}"


@dataclass(frozen=True, slots=True)
class Seat:
    """What a job may use of a machine. Nothing is taken from the machine besides.

    Attributes:
        devices: one encode worker each, ``"cpu"`` or ``"cuda:0"``; a name may be repeated. By
            default every visible card, else one CPU worker per core of the seat, eight at most.
        threads: cores of the seat, shared out among its workers; by default those that this
            process may use (its affinity and quota).
        memory: bytes that the workers reading documents may use together; by default half of the
            machine's for each.
        scratch: a local folder for files that are being written, which are then published whole;
            None: they grow in a hidden folder of the cache, where a loss costs a batch only.
        wait_s: how long to wait for another process that writes the same file in place.
        also: further caches, files or folders, whose rows are copied instead of computed.
        publish_every_s: on scratch, a job that encodes for longer publishes what it has, and goes
            on in a further file; ``inf``: only at its end.
    """

    devices: tuple[str, ...] = ()
    threads: int | None = None
    memory: int | None = None
    scratch: str | None = None
    wait_s: float = 600.0
    also: tuple[str, ...] = ()
    publish_every_s: float = 600.0


@dataclass(frozen=True, slots=True)
class JobReport:
    """What came of one job.

    Attributes:
        job: that ran.
        run: counts, quarantined documents and failed units; what earlier attempts had published
            counts as hits.
        files: names of the files that it published.
        was_done: it had been done before, and nothing was computed.
        is_done: nothing is left to do. Else it was stopped, or outboxes are missing: run it again.
    """

    job: Job
    run: RunReport
    files: tuple[str, ...] = ()
    was_done: bool = False
    is_done: bool = True

    def to_json(self, **facts: object) -> bytes:
        """The content of its file in ``reports``; ``facts`` come besides."""
        return json.dumps(asdict(self) | facts, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes) -> tuple[Self, Mapping[str, object]]:
        """The report in such a file, and the facts besides."""
        told = json.loads(content)
        report = cls(
            Job(**told.pop("job")),
            report_from_dict(told.pop("run")),
            tuple(told.pop("files")),
            told.pop("was_done"),
            told.pop("is_done"),
        )
        return report, told


@dataclass(slots=True)
class Total:
    """The sum of job reports, as the report of one run.

    Documents are counted by the jobs that read them, texts by those that encode them. Memory: what
    is named (quarantined documents, failed units, checkpoints), and a few notes.
    """

    run_id: str
    notes: dict[str, None] = field(default_factory=dict)
    n_unfinished: int = 0
    _counts: Counts = field(default_factory=Counts)
    _numbers: Counter[str] = field(default_factory=Counter)
    _quarantined: list[Quarantined] = field(default_factory=list)
    _failed: list[FailedUnits] = field(default_factory=list)
    _checkpoints: dict[str, str] = field(default_factory=dict)

    def add(self, report: JobReport) -> None:
        """Count one more job."""
        run = report.run
        self.n_unfinished += not report.is_done
        self._counts += _counts_of(run)
        self._numbers.update({name: getattr(run, name) for name in _SUMMED})
        self._quarantined.extend(run.quarantined)
        self._failed.extend(run.failed)
        self._checkpoints.update(run.checkpoints)
        for note in run.notes:
            if len(self.notes) < _MOST_NOTES:
                self.notes[note] = None

    def finish(self, seconds: float) -> RunReport:
        """The whole."""
        return RunReport(
            run_id=self.run_id,
            n_loaded=self._counts.n_loaded,
            n_unchanged=self._counts.n_unchanged,
            quarantined=tuple(sorted(self._quarantined, key=lambda q: q.source)),
            units_by_level=self._counts.units_by_level,
            failed=tuple(self._failed),
            n_entities=self._counts.n_entities,
            n_long=self._counts.n_long,
            n_extra_windows=self._counts.n_extra_windows,
            seconds=seconds,
            was_interrupted=self.n_unfinished > 0,
            notes=tuple(self.notes),
            n_long_tokens=self._counts.n_long_tokens,
            n_cut_tokens=self._counts.n_cut_tokens,
            checkpoints=self._checkpoints,
            **{name: self._numbers[name] for name in _SUMMED},
        )


def _counts_of(run: RunReport) -> Counts:
    return Counts(
        n_loaded=run.n_loaded,
        n_unchanged=run.n_unchanged,
        units_by_level=run.units_by_level,
        n_entities=run.n_entities,
        n_long=run.n_long,
        n_extra_windows=run.n_extra_windows,
        n_long_tokens=run.n_long_tokens,
        n_cut_tokens=run.n_cut_tokens,
    )
