"""The publication: template files on one side, the folder that workers watch on the other."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import FeatpipeError, PoolClosed, TemplateError
from featpipe.extraction.extractor import Extractor
from featpipe.extraction.model_cache import ModelCache, default_folder
from featpipe.pool import Pool, Role
from featpipe.user_cache import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.template import Template
    from featpipe.on_demand.checkpoints import Chosen

# A private folder: for one service and its workers, and gone with it or with the next one.
#
# A service that is ended by SIGKILL cannot remove its folder; the next one of the same user
# does. Who
# lives is told by a lock on a file in the folder, which the kernel releases however its holder
# ends,
# and which no other process inherits.


logger = getLogger("featpipe.service")

_PREFIX = "featpipe-serve-"
_LOCK = "lock"


class PrivateFolder:
    """Made in the temporary directory, readable for this user alone."""

    def __init__(self) -> None:
        remove_abandoned(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        aside = self.path / f"{_LOCK}.new"
        self._lock = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Named only when it is held: whoever finds it by its name and free knows that we are gone.
        aside.rename(self.path / _LOCK)

    def close(self) -> None:
        """Remove it, with all there is in it."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(directory: Path) -> None:
    """Remove this user's folders whose service is no more; others are left alone."""
    for folder in directory.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # no lock in it: not one of ours, or one that is being made
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            logger.info("removed the folder of a service that was killed: %s", folder.name)
        finally:
            os.close(lock)


logger = getLogger("featpipe.templates")

#: A template that takes longer than this to fit is refused.
_FIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Change:
    """What a publication changed, by name."""

    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Publication:
    """Brings the template files of one program to its workers. One thread at a time publishes.

    Nothing is at work before the first `publish`. This process loads no model: it lists templates,
    sees them change, and knows what is fitted.

    Args:
        templates: file or folder.
        cache: path of the file.
        chosen: models for samples that the cache does not hold.
        devices: of the workers that fit, one each; they end when all is fitted.
        space: which vectors, where ``chosen`` has none.

    Raises:
        TemplateError, DictionaryError: neither can be used.

    """

    def __init__(
        self,
        templates: Path,
        cache: Path,
        chosen: Chosen,
        devices: tuple[str, ...],
        space: str | None = None,
    ) -> None:
        self.problem = ""
        """Why the files are not what is at work, "" if they are."""
        self.templates: Mapping[str, FittedTemplate] = {}
        """What is at work."""
        self.chosen, self.devices, self.space = chosen, devices, chosen.space or space
        self._home = PrivateFolder()
        self.folder = self._home.path / "templates"
        """What workers watch: one file per template at work."""
        self.folder.mkdir()
        self.models = _place_for_models(self._home.path)
        """Where fitted fields are kept for them."""
        try:
            # With the names of the models, so that a sample has the same evidence as in a worker.
            self._extractor = Extractor(
                templates,
                cache,
                space=self.space,
                checkpoints=chosen.checkpoints,
                models=ModelCache(self.models),
            )
        except BaseException:
            self._home.close()
            raise
        self._refused: object = None
        self._fitting: Pool | None = None
        self._is_closed = False

    @property
    def cache(self) -> Path:
        """Path of the file, absolute."""
        return self._extractor.cache.path.absolute()

    @property
    def samples(self) -> Path:
        """Where sample documents lie."""
        return self._extractor.folder.absolute()

    @property
    def is_behind(self) -> bool:
        """Whether the files are neither at work nor known to be unusable."""
        found = self._extractor.templates
        return found is not self.templates and found is not self._refused

    def publish(self) -> Change:
        """Look at the files now; fit what was never fitted, and bring all to work.

        Raises:
            TemplateError: they cannot be used; everything is as it was.

        """
        found = self._read()
        if found is self.templates:
            return Change()
        try:
            self._fit(found)
        except FeatpipeError as error:
            self._refused, self.problem = found, error.message.splitlines()[0]
            raise TemplateError(self.problem) from error
        before, self.templates, self.problem = self.templates, found, ""
        self._write(before)
        changed = [n for n in found if n not in before or _differ(before[n], found[n])]
        return Change(tuple(changed), tuple(n for n in before if n not in found))

    def close(self) -> None:
        """Remove what was published, and let go of the cache; what was fitted stays.

        Called from another thread while one publishes, it ends the fitting.
        """
        self._is_closed = True
        if self._fitting is not None:
            self._fitting.close(0.0)
        self._extractor.close()
        self._home.close()

    def _read(self) -> Mapping[str, FittedTemplate]:
        found = self._extractor.templates
        if self._extractor.problem:
            self.problem = self._extractor.problem
            raise TemplateError(self.problem)
        if found is self._refused:
            raise TemplateError(self.problem)
        return found

    def _fit(self, found: Mapping[str, FittedTemplate]) -> None:
        """Fit what nobody has fitted, in workers that end with it."""
        missing = {one.template.name: one.template for one in found.values() if one.unfitted()}
        if not missing:
            return
        logger.info("fitting templates: %s", ", ".join(missing))
        # The longest first: the last one to end is then not the longest.
        waiting = sorted(missing.values(), key=lambda one: -len(one.samples) * len(one.fields))
        with Pool([self._role(min(len(waiting), len(self.devices)))]) as pool:
            self._fitting = pool
            if self._is_closed:  # in this order, so that one of the two sees the other
                raise PoolClosed("closed")
            for outcome in pool.map("fit", waiting):
                if outcome.error is not None:
                    _raise_cause(outcome.error, waiting[outcome.index])
        self._fitting = None

    def _role(self, n_workers: int) -> Role:
        return Role(
            name="fit",
            target="featpipe.extraction.fit_worker:FitRole",
            arguments={
                "cache": str(self.cache),
                "folder": str(self.samples),
                "models": str(self.models),
                "space": self.space,
                "checkpoints": self.chosen.checkpoints,
            },
            devices=self.devices[:n_workers],
            threads=1,
            deadline_s=_FIT_S,
            prefetch=1,
        )

    def _write(self, before: Mapping[str, FittedTemplate]) -> None:
        """One file per template: each is swapped at once, so a worker sees the old or the new."""
        wanted = {_file_of(name): one.template for name, one in self.templates.items()}
        for name in before:
            if _file_of(name) not in wanted:
                (self.folder / _file_of(name)).unlink(missing_ok=True)
        for file, template in wanted.items():
            content = template.model_dump_json()
            path = self.folder / file
            if path.exists() and path.read_text("utf-8") == content:
                continue
            write_atomically(path, content.encode())


def _place_for_models(home: Path) -> Path:
    """Where they outlive this program; where that cannot be written, they last as long as it."""
    kept = default_folder()
    try:
        kept.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=kept).close()
    except OSError as error:
        logger.warning("fitted templates are not kept for the next start: %s", error)
        kept = home / "models"
        kept.mkdir()
    return kept


def _differ(one: FittedTemplate, other: FittedTemplate) -> bool:
    return one.fingerprint != other.fingerprint or one.template != other.template


def _file_of(name: str) -> str:
    return blake2b(name.encode(), digest_size=12).hexdigest() + ".json"


def _raise_cause(error: Exception, template: Template) -> None:
    cause = error.__cause__
    if isinstance(cause, TemplateError):
        raise cause
    words = str(getattr(error, "message", error)).splitlines()[0]
    raise TemplateError(f"template {template.name} cannot be fitted: {words}") from error
