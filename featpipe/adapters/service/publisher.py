"""The publisher: brings changed template files to the workers, once they are valid and fitted.

Guarantees: workers only ever see templates that load and are fitted, whatever happens in the files,
and a worker that starts anew sees the same as the others; no model is loaded again; what cannot be
used leaves everything as it was, and says why.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import blake2b
from logging import getLogger
from typing import TYPE_CHECKING

from featpipe.adapters.service.private_folder import PrivateFolder
from featpipe.errors import FeatpipeError, TemplateError
from featpipe.pool import Pool, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.adapters.checkpoints import Chosen
    from featpipe.templates.extractor import Extractor
    from featpipe.templates.fitted import FittedTemplate
    from featpipe.templates.model import Template

logger = getLogger("featpipe.service")

#: Seconds between two looks at the files.
_WATCH_S = 1.0
#: A template that takes longer than this to fit is refused.
_FIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Change:
    """What a publication changed, by name."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]


class Publisher:
    """Watches the template files of an extractor, and publishes them.

    Args:
        extractor: over the files; it computes nothing and fits nothing.
        chosen: models for samples that the cache does not hold.
        devices: of the workers that fit, one each; they end when all is fitted.

    """

    def __init__(self, extractor: Extractor, chosen: Chosen, devices: tuple[str, ...]) -> None:
        self.problem = ""
        """Why the files are not what is at work, "" if they are."""
        self.templates: Mapping[str, FittedTemplate] = {}
        """What is at work."""
        self._extractor, self._chosen, self._devices = extractor, chosen, devices
        self._fitted: dict[str, str] = {}
        """Fingerprint as seen here, without models -> that of the fitted template."""
        self._home = PrivateFolder()
        self.published, self.models = self._home.path / "templates", self._home.path / "models"
        self.published.mkdir()
        self.models.mkdir()
        self._refused: object = None
        self._lock = asyncio.Lock()

    async def publish(self) -> Change:
        """Look at the files now.

        Raises:
            TemplateError: they cannot be used; everything is as it was.

        """
        async with self._lock:
            found = await asyncio.to_thread(self._read)
            if found is self.templates:
                return Change((), ())
            try:
                await asyncio.to_thread(self._fit, found)
            except FeatpipeError as error:
                self._refused, self.problem = found, error.message.splitlines()[0]
                raise TemplateError(self.problem) from error
            before, self.templates, self.problem = self.templates, found, ""
            await asyncio.to_thread(self._write, before)
        changed = [n for n in found if n not in before or _differ(before[n], found[n])]
        return Change(tuple(changed), tuple(n for n in before if n not in found))

    def fingerprint(self, name: str) -> str:
        """Of a template at work, as in the provenance of its results."""
        return self._fitted[self.templates[name].fingerprint]

    async def watch(self) -> None:
        """Publish whatever changes, until cancelled."""
        while True:
            await asyncio.sleep(_WATCH_S)
            if self._lock.locked():
                continue
            problem = self.problem
            try:
                change = await self.publish()
            except TemplateError as error:
                if error.message != problem:
                    logger.warning("the templates are as they were: %s", error.message)
                continue
            if change.changed or change.removed:
                logger.info("templates changed: %s", ", ".join(change.changed + change.removed))

    def close(self) -> None:
        """Remove what was published."""
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
        """Fit what no publication has fitted, in workers that end with it."""
        missing = [one for one in found.values() if one.fingerprint not in self._fitted]
        if not missing:
            return
        # The longest first: the last one to end is then not the longest.
        missing.sort(key=lambda one: -len(one.template.samples) * len(one.template.fields))
        with Pool([self._role(min(len(missing), len(self._devices)))]) as pool:
            for outcome in pool.map("fit", [one.template for one in missing]):
                one = missing[outcome.index]
                if outcome.error is not None:
                    _raise_cause(outcome.error, one.template)
                self._fitted[one.fingerprint] = str(outcome.value)

    def _role(self, n_workers: int) -> Role:
        return Role(
            name="fit",
            target="featpipe.adapters.service.fit_role:FitRole",
            arguments={
                "cache": str(self._extractor.cache.path.absolute()),
                "folder": str(self._extractor.folder.absolute()),
                "models": str(self.models),
                "space": self._chosen.space,
                "checkpoints": self._chosen.checkpoints,
            },
            devices=self._devices[:n_workers],
            threads=1,
            deadline_s=_FIT_S,
            prefetch=1,
        )

    def _write(self, before: Mapping[str, FittedTemplate]) -> None:
        """One file per template: each is swapped at once, so a worker sees the old or the new."""
        wanted = {_file_of(name): one.template for name, one in self.templates.items()}
        for name in before:
            if _file_of(name) not in wanted:
                (self.published / _file_of(name)).unlink(missing_ok=True)
        for file, template in wanted.items():
            content = template.model_dump_json()
            path = self.published / file
            if path.exists() and path.read_text("utf-8") == content:
                continue
            aside = path.with_suffix(".new")
            aside.write_text(content, "utf-8")
            aside.replace(path)


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
