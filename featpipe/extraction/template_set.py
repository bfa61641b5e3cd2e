"""Template set: the templates in a file or folder as they are now, or some that were given.

Guarantees: changed files are seen by the next call; files that have become invalid change nothing,
so that the last good templates are used, and `TemplateSet.problem` names the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import TemplateError, UnlikeTemplates, UsageError
from featpipe.extraction.choose import Chooser, is_meant
from featpipe.extraction.corrections_log import SUFFIX
from featpipe.extraction.template_file import load_templates
from featpipe.fork_lock import make_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.template import Template

    #: Names, times and sizes of files.
    State = tuple[tuple[str, int, int], ...]

logger = getLogger("featpipe.extraction.extractor")


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Templates as they were in the files of this state."""

    state: State
    fitted: dict[str, FittedTemplate]
    read: tuple[Template, ...] = ()
    """As in the files."""
    problem: str = ""
    """Why the files could not be read again, "" if these are what is in them."""
    chooser: list[Chooser] = field(default_factory=list)
    """Made when first needed."""


class TemplateSet:
    """Templates by name. Any thread may ask.

    Args:
        templates: file or folder, or templates already loaded.
        prepare: makes a template ready.

    Raises:
        TemplateError: a template cannot be used.

    """

    def __init__(
        self,
        templates: str | Path | Sequence[Template],
        prepare: Callable[[Template], FittedTemplate],
    ) -> None:
        self._path = Path(templates) if isinstance(templates, str | Path) else None
        self._given = [] if isinstance(templates, str | Path) else list(templates)
        self._prepare = prepare
        self._lock = make_lock()
        self._loaded = self._load()

    @property
    def fitted(self) -> dict[str, FittedTemplate]:
        """By name, as the files are now."""
        if self._path is not None and _state_of(self._path) != self._loaded.state:
            with self._lock:
                if _state_of(self._path) != self._loaded.state:
                    self._reload()
        return self._loaded.fitted

    @property
    def problem(self) -> str:
        """Why changed template files are not used, "" if they are."""
        return self._loaded.problem

    def choose(self, name: str | None) -> FittedTemplate:
        """One template by name; the only one without.

        Raises:
            UsageError: no such template, or several and no name.

        """
        templates = self.fitted
        if name is None and len(templates) == 1:
            return next(iter(templates.values()))
        if name is None or name not in templates:
            asked = "a template must be named" if name is None else f"no template {name!r}"
            raise UsageError(f"{asked}: there are {', '.join(templates) or 'none'}")
        return templates[name]

    def choose_for(self, features: PageFeatures, how: str) -> list[FittedTemplate]:
        """Templates for one document: all that are meant for it ("*"), or the likeliest ("auto").

        Raises:
            UsageError: "auto" without a sample in any template.
            UnlikeTemplates: "auto", and no template fits.

        """
        templates = self.fitted
        if how == "*":
            return [fitted for fitted in templates.values() if is_meant(fitted, features.page.id)]
        choice = self.chooser().choose(features)
        if not choice.fits:
            raise UnlikeTemplates(
                f"{features.page.id or 'text'}: no template fits: the likeliest, "
                f"{choice.fitted.template.name}, has a likeness of {choice.likeness:.2f} where "
                f"{choice.needed:.2f} is needed",
                hint="name the template, or add a sample of this kind of document",
            )
        return [choice.fitted]

    def chooser(self) -> Chooser:
        """Of the templates as they are, made when first needed."""
        loaded = self._loaded
        if not loaded.chooser:
            loaded.chooser.append(Chooser(list(loaded.fitted.values())))
        return loaded.chooser[0]

    def _load(self) -> _Loaded:
        state = _state_of(self._path) if self._path is not None else ()
        read = tuple(load_templates(self._path) if self._path is not None else self._given)
        return _Loaded(state, {t.name: self._prepare(t) for t in read}, read)

    def _reload(self) -> None:
        before = self._loaded
        try:
            self._loaded = self._load_corrected(before) or self._load()
        except TemplateError as error:
            logger.warning("keeping the templates as they were: %s", error.message)
            state = _state_of(self._path) if self._path is not None else ()
            self._loaded = replace(before, state=state, problem=error.message)

    def _load_corrected(self, before: _Loaded) -> _Loaded | None:
        """What was there before, where only corrections were added that are not accepted yet.

        Raises:
            TemplateError: as for `load_templates`.

        """
        if self._path is None or before.problem:
            return None
        state = _state_of(self._path)
        if _without_corrections(state) != _without_corrections(before.state):
            return None
        is_same = tuple(load_templates(self._path)) == before.read
        return replace(before, state=state) if is_same else None


def folder_of(templates: str | Path | Sequence[Template]) -> Path:
    """Where sample documents named by a relative path lie."""
    if not isinstance(templates, str | Path):
        return Path()
    path = Path(templates)
    return path if path.is_dir() else path.parent


def _state_of(path: Path) -> State:
    """Names, times and sizes of the template files, which tell a change."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path, *_beside(path)]
    found = []
    for file in files:
        if file.suffix in {".toml", ".json", ".jsonl"} and file.is_file():
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)


def _beside(file: Path) -> list[Path]:
    return [*file.parent.glob("*.samples.jsonl"), *file.parent.glob(f"*{SUFFIX}")]


def _without_corrections(state: State) -> State:
    return tuple(one for one in state if not one[0].endswith(SUFFIX))
