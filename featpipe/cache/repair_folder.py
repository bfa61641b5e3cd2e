"""Repairs a cache in a folder: each damaged file, and what must be done again because of it.

The reports of a job whose file lost rows, or is missing, are removed, and those of the jobs on its
shard for further spaces: the next build has them done again, and computes what is missing and
nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from featpipe.cache.repair import repair_cache
from featpipe.errors import UnreadableDictionary
from featpipe.store.disk import Disk, writing
from featpipe.store.folder_layout import PARTS, REPORTS, FolderLayout, part_of

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.store.repair import Repair


@dataclass(frozen=True, slots=True)
class FolderRepair:
    """Result of a repair: ``again`` are the files whose jobs are to be done again.

    ``put_back`` are outboxes that were made anew, since shards lacked texts of theirs.
    """

    path: Path
    files: tuple[Repair, ...]
    missing: tuple[Path, ...]
    again: tuple[Path, ...]
    put_back: tuple[Path, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost."""
        is_lost = self.missing or self.again or self.put_back
        return not is_lost and all(file.is_whole for file in self.files)

    def __str__(self) -> str:
        damaged = [file for file in self.files if file.kept_as is not None]
        if not (damaged or self.missing or self.again or self.put_back):
            return f"{self.path}: good, nothing to repair"
        lines = [*map(str, damaged), *(f"{file}: missing" for file in self.missing)]
        lines += [f"{file}: made anew, since shards lack its texts" for file in self.put_back]
        lines += [f"{file.name}: its job is to be done again" for file in self.again]
        return "\n".join((f"{self.path}: repaired; build it again for what was lost", *lines))


def repair_folder(path: str | Path) -> FolderRepair:
    """Put files of the sound rows in the place of damaged ones; good ones are left as they are.

    Where an earlier file of a shard is missing, its additions take its name. Killed at any point,
    the same call does the rest.

    Raises:
        UnreadableDictionary: a file of another name; or one of which nothing can be saved, after
            all others were repaired.
        DictionaryLocked, WriteFailed: what was repaired before stays so.
    """
    layout = FolderLayout.read(path)
    missing = list(layout.missing_files())
    again: list[Path] = []
    for file in missing:
        have_done_again(layout, file, again)
    for file in layout.second_names():
        with writing(file):
            file.unlink(missing_ok=True)
    for file, name in layout.misnamed_files().items():
        # Reports first, here and below: were it killed in between, nothing would tell of the loss.
        have_done_again(layout, name, again)
        missing += [name] * (name not in missing)
        with writing(name):
            Disk().link(file, name)
            Disk().sync_directory(name.parent)
    files = [*layout.part_files(), *(f for each in layout.shard_files().values() for f in each)]
    files += [layout.results_file] if layout.results_file.exists() else []
    done: list[Repair] = []
    hopeless: list[str] = []
    for file in files:
        before_loss = partial(have_done_again, layout, file, again)
        try:
            done.append(repair_cache(file, before_loss=before_loss))
        except UnreadableDictionary as error:
            hopeless.append(error.message)
    if hopeless:
        raise UnreadableDictionary(
            "\n".join(hopeless), hint="move these files out of the folder, and repair it again"
        )
    return FolderRepair(layout.path, tuple(done), tuple(missing), tuple(again))


def have_done_again(layout: FolderLayout, file: Path, again: list[Path]) -> None:
    """Remove the reports of the jobs that made a file, and add it to ``again``, if it is of one.

    Raises:
        WriteFailed: disk read-only ...
    """
    if file == layout.results_file:
        return
    if file.parent.name == PARTS:
        names = f"prepare-{part_of(file.stem)}.done"
    else:  # of every space: each calls the texts that it has seen done
        names = f"encode-{file.stem.partition('.')[0]}[-+]*.done"
    reports = list((layout.path / REPORTS).glob(names))
    for report in reports:
        with writing(report):
            report.unlink(missing_ok=True)
    if reports:
        with writing(layout.path / REPORTS):
            Disk().sync_directory(layout.path / REPORTS)
        again.append(file)
