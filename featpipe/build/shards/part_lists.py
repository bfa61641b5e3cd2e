"""The lists of a run: which sources belong to which part.

A run is there when its description, ``lists/RUN.json``, is: it is published last, after the list of
each part. Lists without one are of a planner that died, and are ignored.

A list has a line for each file, or for a range of a large file of records; what files hold is found
by the job that reads them. So the memory of a planner grows with files, not with documents.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from featpipe.documents.find import absolute
from featpipe.documents.media_type import DAMAGED_ZIP
from featpipe.documents.ranges import Range, in_range, ranges_of
from featpipe.documents.source import Source, expanded
from featpipe.errors import DocumentError, UnreadableDictionary
from featpipe.store.folder_layout import LISTS, PARTS, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from featpipe.build.publish import Publisher
    from featpipe.settings import BuildSettings

#: A part holds about so many bytes of files, where the number of parts is not given.
_PART_BYTES = 256 << 20
#: ... and at most so many files.
_PART_FILES = 50_000
#: Cost of a file besides its bytes.
_FILE_BYTES = 4 << 10

#: Settings that decide how documents of a run are read; others are those of the folder or seat.
_READING = (
    "document_deadline_s",
    "ocr_deadline_s",
    "unit_deadline_s",
    "max_document_bytes",
    "max_document_characters",
)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run over documents.

    Attributes:
        id: begins with the time; later than those of all earlier runs.
        n_parts: numbered from 0.
        settings: how documents are read.
        notes: what was passed over.
        digest: of the lists; runs over the same files have the same one.
        supersedes: ids of unfinished runs over the same files, whose jobs need not be done.
    """

    id: str
    n_parts: int
    n_files: int
    settings: Mapping[str, Any] = field(default_factory=dict)  # the values of a JSON object
    notes: tuple[str, ...] = ()
    digest: str = ""
    supersedes: tuple[str, ...] = ()

    def list_name(self, part: int) -> str:
        """Of the list of a part."""
        return f"{LISTS}/{self.id}-{part:04d}"

    def build_settings(self, of_folder: BuildSettings, use_ocr: bool) -> BuildSettings:
        """Those of the folder, with how this run reads documents."""
        return replace(of_folder, use_ocr=use_ocr, **self.settings)

    @classmethod
    def read(cls, folder: Publisher, name: str) -> Self:
        """From its description."""
        told = json.loads(folder.read(name))
        tuples = {name: tuple(told[name]) for name in ("notes", "supersedes")}
        return cls(**told | tuples)


def read_run_plans(folder: Publisher) -> list[RunPlan]:
    """Every run that was planned and not superseded, oldest first."""
    runs = _every_run(folder)
    gone = _superseded(runs)
    return [run for run in runs if run.id not in gone]


def is_superseded(folder: Publisher, name: str) -> bool:
    """Whether a published name is of a part of a run that was superseded."""
    return part_of(Path(name).stem).rpartition("-")[0] in _superseded(_every_run(folder))


def _every_run(folder: Publisher) -> list[RunPlan]:
    names = [name for name in folder.list(LISTS) if name.endswith(".json")]
    return [RunPlan.read(folder, name) for name in names]


def _superseded(runs: Iterable[RunPlan]) -> set[str]:
    return {id_ for run in runs for id_ in run.supersedes}


def plan_run(
    folder: Publisher,
    sources: Sequence[Source],
    settings: BuildSettings,
    *,
    is_unfinished: Callable[[RunPlan], bool],
    n_parts_asked: int | None = None,
    notes: Sequence[str] = (),
) -> RunPlan:
    """Cut the sources into parts and publish their lists.

    Args:
        folder: the cache.
        sources: files, not expanded, in the order of their ids.
        settings: of which those that decide how documents are read are kept.
        is_unfinished: whether jobs of an earlier run are left to do.
        n_parts_asked: by default as the files' bytes ask for.
        notes: to be kept with the run.

    Raises:
        WriteFailed: disk full ...

    """
    before = read_run_plans(folder)
    parts = [
        "".join(f"{json.dumps(piece.line())}\n" for piece in part).encode()
        for part in _cut(sources, n_parts_asked)
    ]
    digest = blake2b(b"".join(parts), digest_size=16).hexdigest()
    same = [other for other in before if other.digest == digest]
    run = RunPlan(
        _id_after(_last_id(folder, before)),
        n_parts=len(parts),
        n_files=len(sources),
        settings={name: getattr(settings, name) for name in _READING},
        notes=tuple(notes),
        digest=digest,
        supersedes=tuple(other.id for other in same if is_unfinished(other)),
    )
    while not _publish(folder, run, parts):  # another planner has taken this id
        run = replace(run, id=_id_after(run.id))
    return run


def _publish(folder: Publisher, run: RunPlan, parts: Sequence[bytes]) -> bool:
    """Put the lists of a run under its id, if that is free."""
    description = json.dumps(asdict(run), ensure_ascii=False).encode()
    are_written = all(folder.write(run.list_name(at), lines) for at, lines in enumerate(parts))
    return are_written and folder.write(f"{LISTS}/{run.id}.json", description)


def read_list(folder: Publisher, run: RunPlan, part: int) -> list[Source]:
    """The documents of a part, as far as its files can be listed now.

    Raises:
        UnreadableDictionary: the list is missing.

    """
    name = run.list_name(part)
    try:
        lines = folder.read(name).decode().splitlines()
    except FileNotFoundError:
        raise UnreadableDictionary(
            f"{folder.address} lacks {name}", hint="plan the documents again: featpipe shard plan"
        ) from None
    return [source for line in lines for source in _sources_of(json.loads(line))]


def _last_id(folder: Publisher, before: Sequence[RunPlan]) -> str:
    # Of parts as well: one that forgets documents has no list, and lists may have been removed.
    parts = (part_of(Path(name).stem).rpartition("-")[0] for name in folder.list(PARTS))
    return max([*(run.id for run in before), *parts], default="")


def _id_after(last: str) -> str:
    """The time, where that is later: clocks may differ, and the later run is planned later."""
    now = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    if now > last:
        return now
    time, mark, number = last.rpartition("Z")
    if mark and not number:
        return f"{last}100000"
    # As long as the last one, so that ids do not grow until the clocks have caught up.
    following = str(int(number) + 1) if number.isdecimal() else ""
    return time + mark + following if len(following) == len(number) else f"{last}1"


class _Piece(NamedTuple):
    """A file, or a range of one."""

    source: Source
    cost: int
    part: Range | None = None

    def line(self) -> dict[str, object]:
        """As a list has it."""
        # JSON in ASCII: a path may hold bytes that are not UTF-8, as lone surrogates.
        line: dict[str, object] = {"id": self.source.id, "path": str(absolute(self.source.path))}
        return line if self.part is None else line | {"range": self.part}


def _cut(sources: Sequence[Source], n_parts: int | None) -> Iterator[list[_Piece]]:
    """Parts of about the same cost, in order; none is empty."""
    costs = [_cost(source) for source in sources]
    total = sum(costs)
    n = n_parts or max(-(-total // _PART_BYTES), -(-len(sources) // _PART_FILES))
    pieces = (p for s, c in zip(sources, costs, strict=True) for p in _pieces(s, c, total // n))
    part: list[_Piece] = []
    before, current = 0, 0
    for piece in pieces:
        place = (2 * before + piece.cost) * n // (2 * total)
        if part and place != current:
            yield part
            part = []
        part.append(piece)
        before, current = before + piece.cost, place
    if part:
        yield part


def _pieces(source: Source, cost: int, most: int) -> Iterator[_Piece]:
    """Ranges of a file that is larger than a part."""
    ranges = ranges_of(source, max(1, most)) if cost > most else []
    if not ranges:
        yield _Piece(source, cost)
    for part in ranges:
        yield _Piece(source, cost // len(ranges), part)


def _cost(source: Source) -> int:
    try:
        return source.n_bytes() + _FILE_BYTES
    except DocumentError:  # reading it says so
        return _FILE_BYTES


def _sources_of(line: Mapping[str, Any]) -> Iterable[Source]:
    source = Source(line["id"], Path(line["path"]))
    if "range" not in line:
        return sorted(expanded(source))
    try:
        return sorted(in_range(source, Range(*line["range"])))
    except DAMAGED_ZIP:
        return [source]  # gone or changed since: reading it says so
