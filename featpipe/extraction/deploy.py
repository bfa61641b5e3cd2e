"""Deployment of templates: files on one side, the folder that workers watch on the other.

A publication reads and checks the template files of a service or a consumer, has their fields
fitted, and only then swaps them into the folder of the workers.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from hashlib import blake2b
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.atomic_write import write_atomically
from featpipe.encoders.memory import SMALLEST_KERNEL_CACHES
from featpipe.errors import FeatpipeError, PoolBroken, PoolClosed, TemplateError, raise_original
from featpipe.extraction.engine import ExtractionEngine
from featpipe.extraction.messages import FitTask
from featpipe.extraction.model_cache import ModelCache, default_folder
from featpipe.extraction.on_workers import extract_role
from featpipe.pool import Pool
from featpipe.store.owned_folder import OwnedFolder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from logging import Logger
    from typing import Literal

    from featpipe.documents import LoadLimits
    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.template import Template
    from featpipe.on_demand.space import Checkpoints, Chosen
    from featpipe.pool import Role

logger = getLogger("featpipe.templates")
_service_logger = getLogger("featpipe.service")

#: A template that takes longer than this to fit is refused.
_FIT_S = 600.0
#: Modules that the fork server imports once for all workers on the processor.
_PRELOAD = (
    "torch", "featpipe.encoders.encoder", "featpipe.encoders.tagger", "featpipe.extraction.worker",
)  # fmt: skip
#: Of the names of the folders that programs and their workers share in the temporary directory.
_PREFIX = "featpipe-serve-"


@dataclass(frozen=True, slots=True)
class Change:
    """Names of the templates that a publication changed."""

    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Publication:
    """Brings the template files of one program to its workers. One thread at a time publishes.

    Workers see no template before the first `publish`. This process loads no model: it lists
    templates, sees them change, and knows which of their fields are fitted.

    Args:
        templates: file or folder.
        cache: path of the file.
        chosen: models for texts that the cache does not hold.
        devices: of the workers that extract, and of those that fit; the latter end when all is
            fitted.
        space: which vectors, where ``chosen`` has none.
        limits: beyond which a document is refused.

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
        *,
        limits: LoadLimits | None = None,
    ) -> None:
        self.problem = ""
        """Why the files are not used, "" if they are."""
        self.templates: Mapping[str, FittedTemplate] = {}
        """The published templates."""
        self.devices, self.space = devices, chosen.space or space
        self._checkpoints: Checkpoints | Literal["none"] = chosen.checkpoints or "none"
        self._limits, self.files, self._cache = limits, templates, cache
        self._home = OwnedFolder(Path(tempfile.gettempdir()), _PREFIX)
        for name in self._home.removed:
            _service_logger.info("removed the folder of a service that was killed: %s", name)
        self.folder = self._home.path / "templates"
        """Watched by workers: one file per published template. ``files``: those of the users."""
        self.folder.mkdir()
        self.models = _place_for_models(self._home.path)
        """Folder of fitted fields."""
        try:
            self._engine = self.open_engine()
        except BaseException:
            self._home.close()
            raise
        self._refused: object = None
        self._fitting: Pool | None = None
        self._is_closed = False

    def open_engine(self) -> ExtractionEngine:
        """An engine over the template files, which loads no model; the caller closes it.

        Raises:
            TemplateError, DictionaryError: templates or cache cannot be used.

        """
        # With the names of the models, so that a sample has the same inputs as in a worker.
        return ExtractionEngine(
            self.files,
            self._cache,
            space=self.space,
            checkpoints=self._checkpoints,
            models=ModelCache(self.models),
            limits=self._limits,
        )

    def review_role(self, deadline_s: float, workers: int) -> Role:
        """The role ``review``: proposals of templates over the documents of the cache."""
        return replace(
            self._extract_role(()),
            name="review",
            target="featpipe.extraction.review_worker:ReviewRole",
            devices=("cpu",) * workers,
            deadline_s=deadline_s,
            bisect=None,
            prefetch=1,
            preload=("featpipe.extraction.review_worker",),
        )

    @property
    def is_behind(self) -> bool:
        """Whether the files are neither published nor known to be unusable."""
        found = self._engine.templates
        return found is not self.templates and found is not self._refused

    def role(self, deadline_s: float) -> Role:
        """The role ``extract`` over the published templates, one worker per device.

        A worker is ready when its models and the fitted fields are loaded, so that a document's
        time is spent on the document, also after a worker was replaced. ``deadline_s`` is that of a
        task.
        """
        role = self._extract_role(self.folder)
        return replace(
            role,
            arguments={**role.arguments, "is_warm": True},
            devices=self.devices,
            deadline_s=deadline_s,
            preload=_PRELOAD,
            environment=SMALLEST_KERNEL_CACHES,
            is_lazy=False,
        )

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

    def publish_or_log(self, to: Logger) -> None:
        """As `publish`, with the outcome in a log; an error is logged when it is a new one."""
        problem = self.problem
        try:
            change = self.publish()
        except TemplateError as error:
            if error.message != problem:
                to.warning("the templates are as they were: %s", error.message)
            return
        if change.changed or change.removed:
            to.info("templates changed: %s", ", ".join(change.changed + change.removed))

    def close(self) -> None:
        """Remove the published templates, and let go of the cache; fitted fields stay.

        Called from another thread while one publishes, it ends the fitting.
        """
        self._is_closed = True
        if self._fitting is not None:
            self._fitting.close(0.0)
        self._engine.close()
        self._home.close()

    def _read(self) -> Mapping[str, FittedTemplate]:
        found = self._engine.templates
        if self._engine.problem:
            self.problem = self._engine.problem
            raise TemplateError(self.problem)
        if found is self._refused:
            raise TemplateError(self.problem)
        return found

    def _fit(self, found: Mapping[str, FittedTemplate]) -> None:
        """Fit the fields that are not fitted, one template per task, in workers that then end."""
        missing = [one for one in found.values() if one.unfitted()]
        if not missing:
            return
        logger.info("fitting templates: %s", ", ".join(one.template.name for one in missing))
        # The longest first: the last one to end is then not the longest.
        missing.sort(key=lambda one: -len(one.template.samples) * len(one.template.fields))
        tasks = [FitTask(one.template.name, tuple(one.unfitted())) for one in missing]
        with Pool([self._fit_role([one.template for one in missing])]) as pool:
            self._fitting = pool
            if self._is_closed:  # in this order, so that one of the two sees the other
                raise PoolClosed("closed")
            try:
                for outcome in pool.map("fit", tasks):
                    if outcome.error is not None:
                        _raise_cause(outcome.error, tasks[outcome.index].template)
            except PoolBroken as error:
                raise_original(error)
        self._fitting = None

    def _fit_role(self, templates: Sequence[Template]) -> Role:
        return replace(
            self._extract_role(templates),
            name="fit",
            devices=self.devices[: len(templates)],
            deadline_s=_FIT_S,
            bisect=None,
            prefetch=1,
        )

    def _extract_role(self, templates: Path | Sequence[Template]) -> Role:
        return extract_role(
            self._engine.cache.path.absolute(),
            templates,
            space=self.space,
            checkpoints=self._checkpoints,
            folder=self._engine.folder.absolute(),
            models=self.models,
            limits=self._limits,
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


def _raise_cause(error: Exception, template: str) -> None:
    cause = error.__cause__
    if isinstance(cause, TemplateError):
        raise cause
    words = str(getattr(error, "message", error)).splitlines()[0]
    raise TemplateError(f"template {template} cannot be fitted: {words}") from error
