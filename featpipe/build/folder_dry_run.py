"""A dry run for a folder cache, by one process: nothing is written into the folder."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from featpipe.build.dry_run import DryRun, open_or_empty
from featpipe.build.folder_sync import find_gone
from featpipe.build.intake import Intake
from featpipe.build.roles import prepare_role, read_limits
from featpipe.cache import tables
from featpipe.pool import Pool
from featpipe.store import open_reader
from featpipe.store.folder_layout import DESCRIPTION
from featpipe.store.object_store import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.build.dry_run import DryRunReport
    from featpipe.build.intake import KnownUnits
    from featpipe.build.publish import Publisher
    from featpipe.build.shards.folder_plan import FolderPlan
    from featpipe.documents.find import Found
    from featpipe.report import Counts
    from featpipe.settings import BuildSettings
    from featpipe.store import Reader


def dry_run_folder(
    folder: Publisher,
    plan: FolderPlan,
    settings: BuildSettings,
    found: Found,
    devices: tuple[str, ...],
    *,
    sync: bool,
) -> DryRunReport:
    """Count what a build would do.

    Args:
        folder: the cache; it need not exist.
        plan: of the folder, or the one that a build would make.
        settings: how documents are read; levels are those of the plan.
        found: the documents.
        devices: that a build would encode on, by whose arithmetic vectors are looked up.
        sync: name what would leave the cache.

    Raises:
        UsageError, CheckpointError: this machine reads or computes otherwise than planned.

    """
    made, preparation = plan.plan_encoding(devices), plan.check_preparation()
    settings = replace(settings, levels=made.levels, use_ocr=bool(preparation.ocr))
    roles = [prepare_role(preparation, settings)]
    with _reader_of(folder) as reader, Pool(roles) as pool:
        intake = _Intake(found.sources, preparation, reader, read_limits(settings))
        place = reader.path if is_url(folder.address) else Path(folder.address)
        report = DryRun(made, pool, intake, reader).finish(place, len(found.sources))
        gone = find_gone(reader, found) if sync else {}
    leaving = (f"{id_} would leave the cache" for id_ in gone.values())
    return replace(report, notes=(*found.notes, *leaving))


class _Intake(Intake):
    """Documents of a folder of which some may have been prepared, and no text encoded yet."""

    def _look_up(self, keys: Sequence[bytes]) -> tuple[KnownUnits | None, Counts] | None:
        return super()._look_up(keys) if tables.TEXTS in self._reader else None


@contextmanager
def _reader_of(folder: Publisher) -> Iterator[Reader]:
    """The cache's reader, or that of an empty file beside it that is gone afterwards."""
    if folder.exists(DESCRIPTION):
        with open_reader(folder.address) as reader:
            yield reader
        return
    with TemporaryDirectory() as place, open_or_empty(Path(place) / "none.h5") as reader:
        yield reader
