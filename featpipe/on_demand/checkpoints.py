"""Which models a running program serves a cache with: those that filled it, by fingerprint.

Decided from files alone, without torch; what had to be left out is said in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.encoders.builtin import find_builtin_model, space_name
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.spec import (
    EncoderSettings,
    TaggerSettings,
    explain_difference,
    fingerprint_of,
    tagger_spec,
)
from featpipe.errors import CheckpointError, UnknownSpace, UsageError
from featpipe.on_demand.live import Checkpoints
from featpipe.on_demand.space import find_space

if TYPE_CHECKING:
    from featpipe.cache.cache import Cache

#: Said instead of a tagger's name.
NO_ENTITIES = "none"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Models for a cache. ``notes`` say what is missing, and what that means."""

    model: str
    """Folder of the encoder."""
    encoder: EncoderSettings
    space: str | None
    """The space that this encoder filled; None: it filled none, and its vectors stand alone."""
    checkpoints: Checkpoints | None
    """For texts that the cache does not hold; None: they are extracted by words and shapes."""
    notes: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """What people call the encoder."""
        return space_name(self.model)


def choose_checkpoints(
    cache: Cache, model: str | None = None, ner: str | None = None, space: str | None = None
) -> Chosen:
    """The encoder and the tagger to serve ``cache`` with; by default the built-in ones.

    Args:
        cache: open.
        model: folder or hub name of the encoder.
        ner: of the tagger; ``none`` for no entities.
        space: which vectors, when the cache has several.

    Raises:
        UnknownSpace: a model was named that filled no space, or another than ``space``.
        UsageError: a tagger was named that did not find the cache's entities.
        CheckpointError: a folder that cannot be used.

    """
    notes: list[str] = []
    path = str(describe_checkpoint(model or find_builtin_model()).path)
    settings, found = EncoderSettings(precision="exact"), None
    try:
        found, settings = _find_space(cache, path, space)
    except UnknownSpace as error:
        if model is not None:
            raise
        found = None
        notes.append(f"documents outside the cache get no vectors: {error.message}")
    tagger, tagger_settings = _choose_tagger(cache, ner, notes)
    checkpoints = None
    if found is not None or tagger is not None:
        checkpoints = Checkpoints(
            model=path if found is not None else None,
            ner=tagger,
            encoder=settings,
            tagger=tagger_settings,
        )
    return Chosen(path, settings, found, checkpoints, tuple(notes))


def _find_space(cache: Cache, path: str, wanted: str | None) -> tuple[str, EncoderSettings]:
    dictionary, settings = find_space(cache, path)
    found = dictionary.name
    if wanted is not None and wanted not in {found, found.partition("@")[0]}:
        raise UnknownSpace(f"{wanted} is not the space of {path}, which filled {found}")
    return found, settings


def _choose_tagger(
    cache: Cache, ner: str | None, notes: list[str]
) -> tuple[str | None, TaggerSettings]:
    names = cache.stored_documents.taggers()
    if ner == NO_ENTITIES or not names:
        return None, TaggerSettings()
    if len(names) > 1:
        notes.append(f"documents outside the cache get no entities: it holds {', '.join(names)}")
        return None, TaggerSettings()
    attributes = cache.reader.table(f"entities/{names[0]}").attributes
    try:
        return _fit_tagger(ner or str(find_builtin_model()), attributes)
    except (UsageError, CheckpointError) as error:
        if ner is not None:
            raise
        notes.append(f"documents outside the cache get no entities: {error.message}")
        return None, TaggerSettings()


def _fit_tagger(ner: str, attributes: dict[str, str]) -> tuple[str, TaggerSettings]:
    """The tagger with the settings that filled the table, if it did.

    Raises:
        UsageError: it did not; says in what it differs.

    """
    import json

    checkpoint = describe_checkpoint(ner)
    stored = json.loads(attributes["spec"])
    names = ("max_length", "overlap", "precision")
    settings = TaggerSettings(**{name: stored[name] for name in names})
    own = tagger_spec(checkpoint, settings)
    if fingerprint_of(own) != attributes["fingerprint"]:
        different = ", ".join(explain_difference(own, stored))
        raise UsageError(
            f"the entities of the cache are not by {ner}: it differs in {different}",
            hint="name the tagger that built the cache with --ner",
        )
    return str(checkpoint.path), settings
