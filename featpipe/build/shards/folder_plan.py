"""The plan of a folder cache: what all jobs on it agree on, written once as ``cache.json``.

Guarantee: rows of two kinds never meet in one space of a folder. Precision and every other part of
a fingerprint are settled when the folder is planned; a job that would compute otherwise (other
weights under the same path, another featpipe, other loaders) is refused with the difference.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from featpipe.build.plan import make_plan
from featpipe.cache.places import Preparation, preparation_spec
from featpipe.encoders.builtin import BUILTIN, find_builtin_model, is_builtin
from featpipe.encoders.spec import EncoderSettings, TaggerSettings, explain_difference
from featpipe.errors import (
    CheckpointError,
    NewerDictionary,
    UnknownSpace,
    UnreadableDictionary,
    UsageError,
)
from featpipe.settings import BuildSettings
from featpipe.store.folder_layout import (
    DESCRIPTION,
    FORMAT,
    UNFINISHED,
    FolderLayout,
    unfinished_backup,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.build.messages import EncoderPlan, TaggerPlan
    from featpipe.build.plan import Plan
    from featpipe.build.publish import Publisher

_Settings = TypeVar("_Settings", EncoderSettings, TaggerSettings)

#: Folder of the plans of further models, one file each.
SPACES = "spaces"

#: The bounds of an outbox, an attribute, must fit into 60,000 bytes.
MOST_SHARDS = 4096


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model that fills one table of a folder.

    Attributes:
        model: the built-in one's name, a name in a hub, or a folder as the planner saw it.
        settings: with the precision that was settled.
        spec: every part of the fingerprint.
        note: why this precision, in words, where the user left it open.
    """

    table: str
    model: str
    settings: Mapping[str, Any]  # the values of a JSON object
    spec: Mapping[str, Any]
    fingerprint: str
    note: str = ""

    def path(self) -> str | Path:
        """The checkpoint on this machine."""
        return find_builtin_model() if self.model == BUILTIN else self.model


@dataclass(frozen=True, slots=True)
class FolderPlan:
    """What ``cache.json`` holds."""

    bits: int
    levels: tuple[str, ...]
    analyser: str
    preparation: Mapping[str, Any]
    """Every part of how documents become units; ``ocr`` is the engine that reads scans, or ""."""
    encoder: ModelPlan
    tagger: ModelPlan | None

    @property
    def n_shards(self) -> int:
        """A power of two."""
        return 1 << self.bits

    def to_json(self) -> bytes:
        """``cache.json``."""
        whole = {"format": FORMAT, **asdict(self)}
        return json.dumps(whole, ensure_ascii=False, indent=1).encode()

    @classmethod
    def read(cls, folder: Publisher) -> Self:
        """The plan of a folder.

        Raises:
            UnreadableDictionary: there is none, or it cannot be understood; or the folder is a
                backup that was interrupted.
            NewerDictionary: written by a later featpipe.

        """
        _refuse_unfinished(folder)
        try:
            told = json.loads(folder.read(DESCRIPTION))
        except FileNotFoundError:
            raise UnreadableDictionary(
                f"{folder.address} has no {DESCRIPTION}: nothing was planned there",
                hint=f"featpipe shard plan {folder.address} DOCS --shards 64",
            ) from None
        except ValueError as error:
            raise UnreadableDictionary(f"{folder.address}: {DESCRIPTION}: {error}") from error
        if told.pop("format", 0) > FORMAT:
            raise NewerDictionary(
                f"{folder.address} was planned by a later featpipe",
                hint="pip install --upgrade featpipe",
            )
        tagger = told["tagger"]
        return cls(
            **told
            | {
                "levels": tuple(told["levels"]),
                "encoder": ModelPlan(**told["encoder"]),
                "tagger": None if tagger is None else ModelPlan(**tagger),
            }
        )

    def for_space(self, folder: Publisher, space: str) -> FolderPlan:
        """The same with the models of a further space; itself for ``""``.

        Raises:
            UnknownSpace: none of this name was planned.

        """
        if not space:
            return self
        try:
            told = json.loads(folder.read(f"{SPACES}/{space}.json"))
        except FileNotFoundError:
            raise UnknownSpace(
                f"{folder.address} has no plan for the space {space}",
                hint=f"it has {', '.join(list_spaces(folder)) or 'none but its own'}",
            ) from None
        tagger = told["tagger"]
        return replace(
            self,
            encoder=ModelPlan(**told["encoder"]),
            tagger=None if tagger is None else ModelPlan(**tagger),
        )

    # ---- what a job computes

    def settings(self) -> BuildSettings:
        """Levels and analyser; the rest is that of a run."""
        return BuildSettings(levels=self.levels, analyser=self.analyser)  # type: ignore[arg-type]  # checked there

    def plan_encoding(self, devices: tuple[str, ...]) -> Plan:
        """The plan of a run that encodes on these devices.

        Raises:
            CheckpointError: the model there is another one than that of the folder.

        """
        encoder, tagger = self.encoder, self.tagger
        made = make_plan(
            encoder.path(),
            EncoderSettings(**encoder.settings),
            None if tagger is None else tagger.path(),
            TaggerSettings() if tagger is None else TaggerSettings(**tagger.settings),
            self.settings(),
            devices,
            held=frozenset(m.table for m in (encoder, tagger) if m is not None),
        )
        for expected, found in ((encoder, made.encoder), (tagger, made.tagger)):
            if expected is not None and found is not None:
                _refuse_other(expected, found, made)
        return made

    def check_preparation(self) -> Preparation:
        """How this installation reads documents.

        Raises:
            UsageError: otherwise than the folder's documents were read.

        """
        here = _preparation_here(use_ocr=bool(self.preparation["ocr"]))
        lines = list(explain_difference(self.preparation, here))
        if lines:
            raise UsageError(
                "this installation reads documents otherwise than the plan of the folder says:\n  "
                + "\n  ".join(lines),
                hint="install the same featpipe and extras on every machine; after an upgrade, "
                "build another folder, with --also and this one, from which vectors are copied",
            )
        return Preparation.of_spec(here)


def _refuse_other(expected: ModelPlan, found: EncoderPlan | TaggerPlan, made: Plan) -> None:
    if found.fingerprint == expected.fingerprint:
        return
    spec = json.loads(made.specs[found.table].attributes["spec"])
    lines = list(explain_difference(expected.spec, spec))
    raise CheckpointError(
        f"{found.path} gives other rows here than the plan of the folder says:\n  "
        + "\n  ".join(lines),
        hint="use the same checkpoint, featpipe and kind of device on every machine",
    )


# ---- making it


@dataclass(frozen=True, slots=True)
class Models:
    """What the user asks for, as `featpipe.Pipeline` takes it; None for the folder's own."""

    model: str | Path | None = None
    ner: str | Path | None = None
    encoder: EncoderSettings | None = None
    tagger: TaggerSettings | None = None


def plan_folder(
    folder: Publisher,
    models: Models,
    settings: BuildSettings | None,
    devices: tuple[str, ...],
    n_shards: int | None,
) -> FolderPlan:
    """The plan of a folder, written if there is none; None stands for what the folder has.

    Raises:
        UsageError: the folder has another plan than what is asked for.

    """
    plan = find_plan(folder, models, settings, devices, n_shards)
    is_there = folder.exists(DESCRIPTION)
    if not is_there and not folder.write(DESCRIPTION, plan.to_json()):
        # Another planner was faster.
        return plan_folder(folder, models, settings, devices, n_shards)
    return plan


def find_plan(
    folder: Publisher,
    models: Models,
    settings: BuildSettings | None,
    devices: tuple[str, ...],
    n_shards: int | None,
) -> FolderPlan:
    """As `plan_folder`, without writing: the plan of a folder, or the one that it would get."""
    if not folder.exists(DESCRIPTION):
        _refuse_unfinished(folder)
        return _make(models, settings or BuildSettings(), devices, n_shards or 64)
    plan = FolderPlan.read(folder)
    _refuse_changes(plan, models, settings, devices, n_shards)
    return plan


def _refuse_unfinished(folder: Publisher) -> None:
    """Documents may be there without their texts, which no job would miss."""
    if folder.exists(UNFINISHED):
        raise unfinished_backup(folder.address)


def list_spaces(folder: Publisher) -> list[str]:
    """Names of the further spaces that were planned."""
    names = folder.list(SPACES)
    return [name.removeprefix(f"{SPACES}/").removesuffix(".json") for name in names]


def plan_space(
    folder: Publisher, plan: FolderPlan, models: Models, devices: tuple[str, ...]
) -> str:
    """Plan a further model for all texts of a folder; the name of its space.

    Returns "" for the folder's own models. Entities are found where a model for them is named. A
    precision that is left open is the folder's for its own model, and that of a space that there is
    by the same model and settings.

    Raises:
        UsageError, CheckpointError: as `plan_folder`.

    """
    if models == Models():
        return ""
    is_own = models.model is None or _stable_name(models.model) == plan.encoder.model
    models = replace(models, model=_given(models.model, plan.encoder.model))
    models = replace(models, ner=_given(models.ner, "none"))
    planned = _planned_tables(folder, plan, models)
    asked = models.encoder or EncoderSettings()
    kept = replace(models, encoder=_keep_precision(asked, plan.encoder) if is_own else asked)
    encoder, tagger = plan_model(kept, plan.settings(), devices, planned)
    if encoder.table not in planned:
        found = plan_model(models, plan.settings(), devices, planned)
        encoder, tagger = found if found[0].table in planned else (encoder, tagger)
    if encoder.fingerprint == plan.encoder.fingerprint and tagger in (None, plan.tagger):
        return ""
    space = encoder.table.partition("/")[2]
    if tagger is not None:
        space += f"+{tagger.table.partition('/')[2]}"
    content = {"encoder": asdict(encoder), "tagger": tagger and asdict(tagger)}
    folder.write(f"{SPACES}/{space}.json", json.dumps(content, ensure_ascii=False).encode())
    return space


def _planned_tables(folder: Publisher, plan: FolderPlan, models: Models) -> frozenset[str]:
    """Those of the folder's spaces that these models fill, with whatever settings."""
    plans = [plan, *(plan.for_space(folder, space) for space in list_spaces(folder))]
    planned = [model for one in plans for model in (one.encoder, one.tagger) if model is not None]
    names = [_stable_name(model) for model in (models.model, models.ner) if model is not None]
    return frozenset(model.table for model in planned if model.model in names)


def plan_model(
    models: Models,
    settings: BuildSettings,
    devices: tuple[str, ...],
    held: frozenset[str] = frozenset(),
) -> tuple[ModelPlan, ModelPlan | None]:
    """The plans of an encoder and of a tagger, precision settled for these devices.

    Mixed precision is chosen by itself only where it was measured to be safe for this model;
    ``held`` are tables that rows of theirs are in.
    """
    model = _given(models.model, BUILTIN)
    ner = None if models.ner == "none" else _given(models.ner, BUILTIN)
    of_encoder, of_tagger = models.encoder or EncoderSettings(), models.tagger or TaggerSettings()
    tagger_path = None if ner is None else _path(ner)
    plan = partial(make_plan, settings=settings, devices=devices, held=held)
    made = plan(_path(model), of_encoder, tagger_path, of_tagger)
    note = ""
    if made.encoder.is_unproven:
        note = "vectors in precision exact: mixed was not measured with this model yet"
        if made.is_together:
            of_tagger = replace(of_tagger, precision="exact")
        of_encoder = replace(of_encoder, precision="exact")
        made = plan(_path(model), of_encoder, tagger_path, of_tagger)
    encoder = _model_plan(model, made.encoder, made, note or "; ".join(made.notes))
    if made.tagger is None or ner is None:
        return encoder, None
    return encoder, _model_plan(ner, made.tagger, made)


def check_shards(n_shards: int) -> int:
    """The bits of a number of shards.

    Raises:
        UsageError: no power of two, or too many.

    """
    bits = n_shards.bit_length() - 1
    if n_shards != 1 << bits or n_shards > MOST_SHARDS:
        raise UsageError(
            f"{n_shards} is no number of shards",
            hint=f"a power of two up to {MOST_SHARDS}: about one for 1 M texts, and per card",
        )
    return bits


def _make(
    models: Models, settings: BuildSettings, devices: tuple[str, ...], n_shards: int
) -> FolderPlan:
    bits = check_shards(n_shards)
    encoder, tagger = plan_model(models, settings, devices)
    preparation = _preparation_here(use_ocr=settings.use_ocr)
    return FolderPlan(bits, settings.levels, settings.analyser, preparation, encoder, tagger)


def _preparation_here(*, use_ocr: bool) -> dict[str, Any]:
    """As it comes back from a file."""
    spec: dict[str, Any] = json.loads(json.dumps(preparation_spec(use_ocr=use_ocr)))
    return spec


def _refuse_changes(
    plan: FolderPlan,
    models: Models,
    settings: BuildSettings | None,
    devices: tuple[str, ...],
    n_shards: int | None,
) -> None:
    lines = []
    if n_shards is not None and n_shards != plan.n_shards:
        lines.append(f"shards: {plan.n_shards} | {n_shards}")
    own: dict[str, object] = {"levels": list(plan.levels), "analyser": plan.analyser}
    own["ocr"] = bool(plan.preparation["ocr"])
    if settings is not None:
        asked = {"levels": list(settings.levels), "analyser": settings.analyser}
        lines += explain_difference(own, asked | {"ocr": settings.use_ocr})
    if models != Models():
        lines += _explain_models(plan, models, devices)
    if lines:
        raise UsageError(
            "the folder was planned otherwise:\n  " + "\n  ".join(lines),
            hint="leave these options out, or name another folder; "
            "featpipe build-cache FOLDER --model OTHER adds a model",
        )


def _explain_models(plan: FolderPlan, models: Models, devices: tuple[str, ...]) -> list[str]:
    """Parts in which models asked for differ from those of the folder; its precision is kept."""
    asked = replace(
        models,
        model=_given(models.model, plan.encoder.model),
        ner=_given(models.ner, _name(plan.tagger)),
        encoder=_keep_precision(models.encoder or EncoderSettings(), plan.encoder),
        tagger=_keep_precision(models.tagger or TaggerSettings(), plan.tagger),
    )
    encoder, tagger = plan_model(asked, plan.settings(), devices)
    lines = [*explain_difference(plan.encoder.spec, encoder.spec)]
    if (tagger is None) != (plan.tagger is None):
        lines.append(f"entities: {_name(plan.tagger)} | {_name(tagger)}")
    elif tagger is not None and plan.tagger is not None:
        lines += explain_difference(plan.tagger.spec, tagger.spec)
    return lines


def _keep_precision(asked: _Settings, kept: ModelPlan | None) -> _Settings:
    if kept is None or asked.precision != "auto":
        return asked
    return replace(asked, precision=kept.settings["precision"])


def _name(model: ModelPlan | None) -> str:
    return "none" if model is None else model.model


def _given(model: str | Path | None, default: str) -> str | Path:
    """What is asked for; an empty name is one, which no model has."""
    return default if model is None else model


def _path(model: str | Path) -> str | Path:
    return find_builtin_model() if is_builtin(model) else model


def _model_plan(
    asked: str | Path, made: EncoderPlan | TaggerPlan, plan: Plan, note: str = ""
) -> ModelPlan:
    spec = json.loads(plan.specs[made.table].attributes["spec"])
    return ModelPlan(
        made.table, _stable_name(asked), asdict(made.settings), spec, made.fingerprint, note
    )


def _stable_name(model: str | Path) -> str:
    """A name that means the same from every folder."""
    if is_builtin(model):
        return BUILTIN
    return str(Path(model).absolute()) if Path(model).is_dir() else str(model)


def layout_of(plan: FolderPlan) -> FolderLayout:
    """Names of the folder's files, relative to it."""
    return FolderLayout(Path(), plan.bits)
