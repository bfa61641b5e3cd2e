"""Spaces and checkpoints: which model filled a space, and which models serve a cache.

Decided from files alone, without torch. A model serves a space only if it gives the fingerprint of
the space. One exception is allowed for queries: where the machine cannot compute in the precision
of the space, they are encoded in float32 (cosines of .9999 and more), with a note.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from featpipe.cache import tables
from featpipe.encoders.builtin import find_builtin_model, space_name
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.precision import can_compute
from featpipe.encoders.spec import (
    CUT_RULE,
    EncoderSettings,
    TaggerSettings,
    encoder_spec,
    explain_difference,
    fingerprint_of,
    tagger_spec,
)
from featpipe.errors import CheckpointError, UnknownSpace, UsageError
from featpipe.on_demand.origin import candidates, describe_origins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.encoders.checkpoint import Checkpoint
    from featpipe.encoders.query_backend import QueryBackend
    from featpipe.encoders.spec import OnTruncate, Spec

#: What a search for a model's space gives: the space comes first.
FoundT = TypeVar("FoundT", bound="tuple[Dictionary, *tuple[object, ...]]")

#: Given in place of a tagger's name: no entities.
NO_ENTITIES = "none"
#: Parts of a spec that name the precision of the computation.
_PRECISION_PARTS = ("precision", "arithmetic")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Models for texts that a cache does not hold, as they were given to ``build-cache``."""

    model: str | None = None
    """Encoder by folder or hub name; None: such texts have no vectors."""
    ner: str | None = None
    """Tagger by folder or hub name; None: such texts have no entities."""
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    tagger: TaggerSettings = field(default_factory=TaggerSettings)
    device: str = "cpu"
    threads: int | None = None
    """Of the process that computes; None: all usable cores."""
    query_backend: QueryBackend = "torch"
    """What computes queries: `featpipe.encoders.query_backend`."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The models that serve a cache."""

    model: str
    """Folder of the encoder."""
    encoder: EncoderSettings
    space: str | None
    """The space that this encoder filled; None: it filled none."""
    checkpoints: Checkpoints | None
    """For texts that the cache does not hold; None: they get neither vectors nor entities."""
    notes: tuple[str, ...] = ()
    """What texts outside the cache will lack, and why."""

    @property
    def name(self) -> str:
        """Name of the encoder without its fingerprint."""
        return space_name(self.model)


class QuerySpace(NamedTuple):
    """A space, and how a query is encoded so that it can be compared with what the space holds."""

    dictionary: Dictionary
    settings: EncoderSettings
    note: str = ""
    """That the precision is not that of the space; else empty."""


def choose_checkpoints(
    cache: Cache,
    model: str | Path | None = None,
    ner: str | Path | None = None,
    space: str | None = None,
) -> Chosen:
    """The encoder and the tagger that filled ``cache``.

    By default the built-in ones if they did, else those that the cache knows where to find.

    Args:
        cache: open.
        model: folder or hub name of the encoder.
        ner: of the tagger; ``none`` for no entities.
        space: which vectors, when the cache has several.

    Raises:
        UnknownSpace: ``model`` filled no space, or another than ``space``.
        UsageError: ``ner`` did not find the cache's entities.
        CheckpointError: a folder that cannot be used.

    """
    notes: list[str] = []
    try:
        path, found, settings = _choose_encoder(cache, model, space)
    except UnknownSpace as error:
        if model is not None:
            raise
        notes.append(f"documents outside the cache get no vectors: {_in_one_line(error)}")
        path, found, settings = str(find_builtin_model()), None, EncoderSettings(precision="exact")
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


def _choose_encoder(
    cache: Cache, model: str | Path | None, space: str | None
) -> tuple[str, str, EncoderSettings]:
    """(folder, space that it filled, settings)."""
    if model is None:
        path, (dictionary, settings) = choose_model(cache, find_space, space)
        return path, dictionary.name, settings
    path = str(describe_checkpoint(model).folder)
    dictionary, settings = find_space(cache, path)
    found = dictionary.name
    if space is not None and space not in {found, found.partition("@")[0]}:
        raise UnknownSpace(f"{space} is not the space of {path}, which filled {found}")
    return path, found, settings


def choose_model(
    cache: Cache, find: Callable[[Cache, str], FoundT], space: str | None = None
) -> tuple[str, FoundT]:
    """The model of a cache's vectors, where none was named, and what `find` says of it.

    The built-in one if it filled a space; else the one that filled the only space, if the cache
    knows where it is and it is still there.

    Args:
        cache: open.
        find: its space in the cache, as `find_space` or `find_query_space`.
        space: the one wanted, when the cache has several.

    Raises:
        UnknownSpace: neither; the message names the models that made the vectors.

    """
    wanted = tables.find_named([found.name for found, _ in _embeddings(cache)], space)
    filled = [f"embeddings/{name}" for name in wanted]
    known = candidates(cache, filled[0]) if len(filled) == 1 else []
    for path in (str(find_builtin_model()), *known):
        try:
            found = find(cache, path)
        except (UnknownSpace, CheckpointError):
            continue
        if found[0].name in wanted:
            return path, found
    if not filled:
        what = f"no vectors{' in ' + space if space else ''} by a model"
        raise UnknownSpace(f"{cache.path} holds {what}", hint="run build-cache")
    raise UnknownSpace(
        f"{cache.path} holds no vectors by the built-in model: {describe_origins(cache, filled)}",
        hint=_name_option("model"),
    )


def refuse_unknown_models(cache: Cache, space: str | None = None) -> None:
    """Refuse a cache whose vectors are by models of which none can be found; `choose_model`.

    Raises:
        UnknownSpace: as `choose_model`; not for a cache without vectors by a model.

    """
    if any(True for _ in _embeddings(cache)):
        choose_model(cache, find_space, space)


def _choose_tagger(
    cache: Cache, ner: str | Path | None, notes: list[str]
) -> tuple[str | None, TaggerSettings]:
    names = cache.stored_documents.taggers()
    if ner == NO_ENTITIES or not names:
        return None, TaggerSettings()
    if len(names) > 1:
        notes.append(f"documents outside the cache get no entities: it holds {', '.join(names)}")
        return None, TaggerSettings()
    table = f"entities/{names[0]}"
    attributes = cache.reader.table(table).attributes
    if ner is not None:
        return _fit_tagger(ner, attributes)
    for path in (str(find_builtin_model()), *candidates(cache, table)):
        with suppress(UsageError, CheckpointError):
            return _fit_tagger(path, attributes)
    origin = describe_origins(cache, [table])
    notes.append(f"documents outside the cache get no entities: {origin}; {_name_option('ner')}")
    return None, TaggerSettings()


def _in_one_line(error: UnknownSpace) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _fit_tagger(ner: str | Path, attributes: dict[str, str]) -> tuple[str, TaggerSettings]:
    """The tagger with the settings that filled the table.

    Raises:
        UsageError: it did not fill it; the message names the differences.

    """
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
    return str(checkpoint.folder), settings


def find_space(cache: Cache, model: Path | str) -> tuple[Dictionary, EncoderSettings]:
    """The space of the cache that ``model`` filled on a processor, with its settings.

    Raises:
        UnknownSpace: no space of these weights; the message names the models that made what is
            there, and the differences.
        CheckpointError: a model folder that cannot be used.

    """
    checkpoint = describe_checkpoint(model)
    differences: list[str] = []
    for dictionary, settings in _embeddings(cache):
        # None: another model's settings, such as a layer that this one does not have.
        own = _spec_on("cpu", checkpoint, settings)
        if own is not None and fingerprint_of(own) == fingerprint_of(dictionary.spec):
            return dictionary, settings
        comparable = own or encoder_spec(checkpoint, EncoderSettings(precision="exact"))
        lines = explain_difference(comparable, dictionary.spec)
        differences.append(f"{dictionary.name} differs in " + ", ".join(lines))
    filled = [f"embeddings/{found.name}" for found, _ in _embeddings(cache)]
    if not filled:
        raise UnknownSpace(
            f"{cache.path} holds no vectors by {model}: it has no space",
            hint="run build-cache with this model",
        )
    raise UnknownSpace(
        f"{cache.path} holds no vectors by {model}: {describe_origins(cache, filled)}"
        f" ({'; '.join(differences)})",
        hint=f"{_name_option('model', _find_own(cache))}, or run build-cache with this one",
    )


def _find_own(cache: Cache) -> str:
    """A folder that holds a model of the cache's vectors; empty where none is known."""
    for dictionary, settings in _embeddings(cache):
        for path in candidates(cache, f"embeddings/{dictionary.name}"):
            with suppress(CheckpointError, UsageError):
                own = encoder_spec(describe_checkpoint(path), settings)
                if fingerprint_of(own) == fingerprint_of(dictionary.spec):
                    return path
    return ""


def _name_option(option: str, folder: str = "") -> str:
    return f"name that model with --{option} {folder or 'PATH'} (in Python: {option}=...)"


def find_query_space(cache: Cache, model: Path | str, device: str = "cpu") -> QuerySpace:
    """The space that ``model`` filled, on any machine, for queries encoded on ``device``.

    Raises:
        UnknownSpace: no space of these weights; the message names the nearest one's differences.
        CheckpointError: a model folder that cannot be used.

    """
    checkpoint = describe_checkpoint(model)
    near: list[QuerySpace] = []
    for dictionary, settings in _embeddings(cache):
        own = _spec_on(device, checkpoint, settings)
        if own == dictionary.spec and can_compute(settings.precision, device):
            return QuerySpace(dictionary, settings)
        exact = replace(settings, precision="exact")
        in_float32 = _spec_on(device, checkpoint, exact)
        if in_float32 is not None and is_comparable(in_float32, dictionary.spec):
            near.append(QuerySpace(dictionary, exact, _note_precision(dictionary, device)))
    if near:
        return near[0]
    return QuerySpace(*find_space(cache, model))


def is_comparable(own: Spec, other: Spec) -> bool:
    """Whether vectors of two specs differ by the rounding of ``exact`` and ``mixed`` alone."""
    if not {own["precision"], other["precision"]} <= {"exact", "mixed"}:
        return False
    rest_of_own, rest_of_other = (
        {part: spec[part] for part in spec if part not in _PRECISION_PARTS} for spec in (own, other)
    )
    return rest_of_own == rest_of_other


def _embeddings(cache: Cache) -> Iterator[tuple[Dictionary, EncoderSettings]]:
    """Every space of vectors, with the settings that it was filled with."""
    for name in cache.spaces():
        dictionary = cache.dictionary(name)
        if dictionary.spec.get("feature") == "embedding":
            yield dictionary, _settings_of(dictionary.spec)


def _settings_of(spec: Spec) -> EncoderSettings:
    """The settings that give this spec again, with the same weights."""
    names = ("pooling", "layer", "normalise", "max_length", "stride", "prompt", "precision")
    on_truncate: OnTruncate = "warn" if spec["window_rule"] == CUT_RULE else "window"
    return EncoderSettings(
        dtype=spec["dtype"], on_truncate=on_truncate, **{name: spec[name] for name in names}
    )


def _spec_on(device: str, checkpoint: Checkpoint, settings: EncoderSettings) -> Spec | None:
    """The spec of these settings there; None for those of another model or kind of device."""
    try:
        return encoder_spec(checkpoint, settings, device)
    except UsageError:
        return None


def _note_precision(dictionary: Dictionary, device: str) -> str:
    held = dictionary.spec["arithmetic"]
    return (
        f"{dictionary.name} was computed in {held}, as {device} of this machine does not compute;"
        " what is asked is encoded in float32, and cosines differ from the fourth digit on"
    )
