"""The plan of a run: which tables it fills, for which units, with which checkpoints.

Made in the parent from files alone, without torch: an unchanged corpus is recognised in a fraction
of a second, and no worker starts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from featpipe.build.messages import EncoderPlan, TaggerPlan
from featpipe.build.precision import choose_precision
from featpipe.cache import tables
from featpipe.cache.places import Preparation, make_preparation
from featpipe.cache.texts import LEVEL_BIT
from featpipe.cache.write import TermTables
from featpipe.encoders.builtin import space_name
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.entities import Tags
from featpipe.encoders.spec import encoder_spec, fingerprint_of, tagger_spec
from featpipe.errors import UsageError
from featpipe.lexical.terms import Analyser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from featpipe.encoders.spec import EncoderSettings, Precision, Spec, TaggerSettings
    from featpipe.lexical.terms import AnalyserName
    from featpipe.settings import BuildSettings
    from featpipe.store import TableSpec


@dataclass(frozen=True, slots=True)
class Product:
    """A table of the cache that this run fills: one row for every unit of some levels."""

    role: str
    """Which workers compute it: ``encode`` or ``count``."""
    table: str
    levels: int
    """Bits of :data:`LEVEL_BIT`: the units that get a row."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is decided before the first file is read."""

    encoder: EncoderPlan
    tagger: TaggerPlan | None
    products: tuple[Product, ...]
    preparation: Preparation
    specs: Mapping[str, TableSpec]
    devices: tuple[str, ...]
    levels: tuple[str, ...]
    terms: TermTables
    vector_bytes: int
    """Stored size of one vector."""
    is_together: bool = False
    """Whether one forward gives a paragraph's vector and entities: the same trunk computes both."""
    notes: tuple[str, ...] = ()
    """What the user should know about these decisions."""


def make_plan(  # noqa: PLR0913  # the same decisions as Pipeline's, once
    model: Path | str,
    encoder: EncoderSettings,
    ner: Path | str | None,
    tagger: TaggerSettings,
    settings: BuildSettings,
    devices: tuple[str, ...],
    *,
    held: frozenset[str] = frozenset(),
) -> Plan:
    """Read the checkpoints' files and settle every table; ``held`` are those with rows already.

    Raises:
        CheckpointError: a model folder that cannot be used.
        UsageError: settings that the checkpoint cannot follow.
        MissingExtra: OCR is asked for and not installed.
    """
    encoder_plan, vectors, vector_bytes, note = _plan_encoder(model, encoder, devices, held)
    notes = {"vectors": note}
    every_level = sum(LEVEL_BIT[level] for level in settings.levels)
    products = [Product("encode", encoder_plan.table, every_level)]
    specs = {
        encoder_plan.table: vectors,
        tables.TEXTS: tables.texts_spec(),
        tables.DOCUMENTS: tables.documents_spec(),
        tables.SOURCES: tables.sources_spec(),
        tables.RUNS: tables.runs_spec(),
    }
    tagger_plan = None
    if ner is not None and "paragraph" in settings.levels:
        tagger_plan, specs_entities, note = _plan_tagger(ner, tagger, devices, held)
        notes["entities"] = note
        products.append(Product("encode", tagger_plan.table, LEVEL_BIT["paragraph"]))
        specs[tagger_plan.table] = specs_entities
    terms, specs_terms = _plan_terms(settings.analyser)
    if "sentence" in settings.levels:
        products.append(Product("count", terms.units, LEVEL_BIT["sentence"]))
    return Plan(
        encoder=encoder_plan,
        tagger=tagger_plan,
        products=tuple(products),
        preparation=make_preparation(use_ocr=settings.use_ocr),
        specs=specs | specs_terms,
        devices=devices,
        levels=settings.levels,
        terms=terms,
        vector_bytes=vector_bytes,
        is_together=tagger_plan is not None and _is_one_trunk(vectors, specs[tagger_plan.table]),
        notes=tuple(
            f"{' and '.join(what for what in notes if notes[what] == note)} {note}"
            for note in dict.fromkeys(notes.values())
            if note
        ),
    )


def _plan_encoder(
    model: Path | str, settings: EncoderSettings, devices: tuple[str, ...], held: frozenset[str]
) -> tuple[EncoderPlan, TableSpec, int, str]:
    checkpoint = describe_checkpoint(model)

    def place(precision: Precision, device: str) -> _Place:
        spec = encoder_spec(checkpoint, replace(settings, precision=precision), device)
        fingerprint = fingerprint_of(spec)
        table = tables.space_table(space_name(model), fingerprint)
        return _Place(spec, fingerprint, _known_by_any_name(table, held))

    precision, found, note = _settle(place, settings.precision, devices, held)
    chosen = replace(settings, precision=precision)
    return (
        EncoderPlan(found.table, str(checkpoint.path), chosen, found.fingerprint),
        tables.vectors_spec(found.spec, found.fingerprint, checkpoint.dim, settings.dtype),
        checkpoint.dim * (4 if settings.dtype == "float32" else 2),
        note,
    )


def _plan_tagger(
    ner: Path | str, settings: TaggerSettings, devices: tuple[str, ...], held: frozenset[str]
) -> tuple[TaggerPlan, TableSpec, str]:
    checkpoint = describe_checkpoint(ner)

    def place(precision: Precision, device: str) -> _Place:
        spec = tagger_spec(checkpoint, replace(settings, precision=precision), device)
        fingerprint = fingerprint_of(spec)
        table = tables.entities_table(space_name(ner), fingerprint)
        return _Place(spec, fingerprint, _known_by_any_name(table, held))

    precision, found, note = _settle(place, settings.precision, devices, held)
    chosen = replace(settings, precision=precision)
    return (
        TaggerPlan(found.table, str(checkpoint.path), chosen, found.fingerprint),
        tables.entities_spec(found.spec, found.fingerprint, Tags.of(checkpoint.labels).types),
        note,
    )


class _Place(NamedTuple):
    """Where the products of a checkpoint go at one precision."""

    spec: Spec
    fingerprint: str
    table: str


def _settle(
    place: Callable[[Precision, str], _Place],
    asked: Precision,
    devices: tuple[str, ...],
    held: frozenset[str],
) -> tuple[Precision, _Place, str]:
    """The precision to compute in, where its products go, and what to tell the user."""
    choice = choose_precision(asked, devices, lambda p, d: place(p, d).table in held)
    _refuse_two_arithmetics(choice.precision, devices)
    return choice.precision, place(choice.precision, devices[0]), choice.note


def _is_one_trunk(vectors: TableSpec, entities: TableSpec) -> bool:
    """Whether both are computed from the same hidden states of the same tokens."""
    of_vectors, of_entities = (json.loads(t.attributes["spec"]) for t in (vectors, entities))
    parts = ("weights", "tokenizer", "config", "precision", "arithmetic", "max_length")
    return (
        all(of_vectors[part] == of_entities[part] for part in parts)
        and not of_vectors["prompt"]
        and not of_vectors["lowercase"]
        and of_vectors["architecture"] in {"bert", "roberta", "xlm-roberta", "electra"}
    )


def _known_by_any_name(table: str, held: frozenset[str]) -> str:
    """The table that holds these rows: a model folder that was renamed fills no second one."""
    group, _, identity = table.partition("/")
    fingerprint = identity.rpartition("@")[2]
    same = (t for t in held if t.startswith(f"{group}/") and t.endswith(f"@{fingerprint}"))
    return table if table in held else min(same, default=table)


def _refuse_two_arithmetics(precision: str, devices: tuple[str, ...]) -> None:
    """One space, one arithmetic: mixed precision is another one on a card than on the processor."""
    if precision != "exact" and len({device == "cpu" for device in devices}) > 1:
        raise UsageError(
            f"precision {precision} on {', '.join(devices)} would put two kinds of vectors"
            " in one space",
            hint="use precision exact, or devices of one kind",
        )


def _plan_terms(name: AnalyserName) -> tuple[TermTables, dict[str, TableSpec]]:
    analyser = Analyser(name)
    group = tables.terms_group(name, analyser.fingerprint)
    terms = TermTables(vocabulary=f"{group}/vocabulary", units=f"{group}/units")
    return terms, {
        terms.vocabulary: tables.vocabulary_spec(analyser.spec, analyser.fingerprint),
        terms.units: tables.term_units_spec(analyser.spec, analyser.fingerprint),
    }
