"""The plan of a run: which tables it fills, for which units, with which checkpoints.

Guarantees:
- It is made in the parent from files alone, without torch: an unchanged set of documents is
  recognised in a fraction of a second, and no worker starts.
- Vectors of two precisions never meet in one space, as the precision is part of the fingerprint. A
  cache that was begun in one precision goes on in it on every machine, instead of being encoded a
  second time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from featpipe.build.messages import EncoderPlan, TaggerPlan
from featpipe.cache import tables
from featpipe.cache.places import Preparation, make_preparation
from featpipe.cache.texts import LEVEL_BIT
from featpipe.cache.write import TermTables
from featpipe.encoders.builtin import space_name
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.entities import Tags
from featpipe.encoders.precision import (
    LEAST_COSINE,
    find_least_cosine,
    find_precision,
    resolve_precision,
)
from featpipe.encoders.spec import encoder_spec, fingerprint_of, tagger_spec
from featpipe.errors import UsageError
from featpipe.lexical.terms import Analyser
from featpipe.pool import Pool, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from featpipe.encoders.precision import Resolved
    from featpipe.encoders.spec import EncoderSettings, Precision, Spec, TaggerSettings
    from featpipe.lexical.terms import AnalyserName
    from featpipe.settings import BuildSettings
    from featpipe.store import TableSpec

    #: Whether the cache holds rows of this model and these settings, computed in a precision on
    #: such a device.
    IsHeld = Callable[[Resolved, str], bool]

#: What ``auto`` may become.
_AUTOMATIC: tuple[Resolved, ...] = ("exact", "mixed")

_LOWER = "their linear layers multiply bfloat16 (float16 on a card)"


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
    is_together: bool = False
    """Whether one forward gives a paragraph's vector and entities: the same trunk computes both."""
    notes: tuple[str, ...] = ()
    """What the user should know about these decisions."""

    @property
    def checkpoints(self) -> dict[str, str]:
        """Folder of the checkpoint, by the table that it fills."""
        plans = [plan for plan in (self.encoder, self.tagger) if plan is not None]
        return {plan.table: plan.path for plan in plans}

    @property
    def vector_bytes(self) -> int:
        """Stored size of one vector."""
        column = self.specs[self.encoder.table].columns[0]
        return column.shape[0] * (4 if column.dtype == "float32" else 2)


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
    encoder_plan, vectors, note = _plan_encoder(model, encoder, devices, held)
    notes = {"vectors": note}
    specs = {
        encoder_plan.table: vectors,
        tables.TEXTS: tables.texts_spec(),
        tables.TEXT_LEVELS: tables.levels_spec(),
        tables.DOCUMENTS: tables.documents_spec(),
        tables.SOURCES: tables.sources_spec(),
        tables.RUNS: tables.runs_spec(),
    }
    tagger_plan, is_together = None, False
    if ner is not None and "paragraph" in settings.levels:
        tagger_plan, entities, notes["entities"] = _plan_tagger(ner, tagger, devices, held)
        specs[tagger_plan.table] = entities
        is_together = _is_one_trunk(vectors, entities)
    terms, specs_of_terms = _plan_terms(settings.analyser)
    return Plan(
        encoder=encoder_plan,
        tagger=tagger_plan,
        products=tuple(_products(encoder_plan, tagger_plan, terms, settings)),
        preparation=make_preparation(use_ocr=settings.use_ocr),
        specs=specs | specs_of_terms,
        devices=devices,
        levels=settings.levels,
        terms=terms,
        is_together=is_together,
        notes=tuple(_join_notes(notes)),
    )


def _products(
    encoder: EncoderPlan, tagger: TaggerPlan | None, terms: TermTables, settings: BuildSettings
) -> Iterator[Product]:
    yield Product("encode", encoder.table, sum(LEVEL_BIT[level] for level in settings.levels))
    if tagger is not None:
        yield Product("encode", tagger.table, LEVEL_BIT["paragraph"])
    if "sentence" in settings.levels:
        yield Product("count", terms.units, LEVEL_BIT["sentence"])


def _join_notes(notes: Mapping[str, str]) -> Iterator[str]:
    """Notes by feature as sentences; features with the same note share one."""
    for note in dict.fromkeys(notes.values()):
        if note:
            yield f"{' and '.join(what for what in notes if notes[what] == note)} {note}"


def _plan_encoder(
    model: Path | str, settings: EncoderSettings, devices: tuple[str, ...], held: frozenset[str]
) -> tuple[EncoderPlan, TableSpec, str]:
    checkpoint = describe_checkpoint(model)

    def place(precision: Precision, device: str) -> _Place:
        spec = encoder_spec(checkpoint, replace(settings, precision=precision), device)
        return _Place.of(spec, partial(tables.space_table, space_name(model)), held)

    choice, found = _settle(place, settings.precision, devices, held)
    chosen = replace(settings, precision=choice.precision)
    folder = str(checkpoint.folder)
    return (
        EncoderPlan(found.table, folder, chosen, found.fingerprint, choice.is_unproven),
        tables.vectors_spec(found.spec, found.fingerprint, checkpoint.dim, settings.dtype),
        choice.note,
    )


def _plan_tagger(
    ner: Path | str, settings: TaggerSettings, devices: tuple[str, ...], held: frozenset[str]
) -> tuple[TaggerPlan, TableSpec, str]:
    checkpoint = describe_checkpoint(ner)

    def place(precision: Precision, device: str) -> _Place:
        spec = tagger_spec(checkpoint, replace(settings, precision=precision), device)
        return _Place.of(spec, partial(tables.entities_table, space_name(ner)), held)

    choice, found = _settle(place, settings.precision, devices, held)
    chosen = replace(settings, precision=choice.precision)
    return (
        TaggerPlan(found.table, str(checkpoint.folder), chosen, found.fingerprint),
        tables.entities_spec(found.spec, found.fingerprint, Tags.of(checkpoint.labels).types),
        choice.note,
    )


def _plan_terms(name: AnalyserName) -> tuple[TermTables, dict[str, TableSpec]]:
    analyser = Analyser(name)
    group = tables.terms_group(name, analyser.fingerprint)
    terms = TermTables(vocabulary=f"{group}/vocabulary", units=f"{group}/units")
    return terms, {
        terms.vocabulary: tables.vocabulary_spec(analyser.spec, analyser.fingerprint),
        terms.units: tables.term_units_spec(analyser.spec, analyser.fingerprint),
    }


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


class _Place(NamedTuple):
    """The table for a checkpoint's rows at one precision."""

    spec: Spec
    fingerprint: str
    table: str

    @classmethod
    def of(cls, spec: Spec, name: Callable[[str], str], held: frozenset[str]) -> _Place:
        """The table of this fingerprint in the cache, whatever name its model's folder had then."""
        fingerprint = fingerprint_of(spec)
        table = name(fingerprint)
        group, _, identity = table.partition("/")
        end = f"@{identity.rpartition('@')[2]}"
        same = (t for t in held if t.startswith(f"{group}/") and t.endswith(end))
        return cls(spec, fingerprint, table if table in held else min(same, default=table))


def _settle(
    place: Callable[[Precision, str], _Place],
    asked: Precision,
    devices: tuple[str, ...],
    held: frozenset[str],
) -> tuple[Choice, _Place]:
    """The precision to compute in, and where its products go."""

    def is_held(precision: Resolved, device: str) -> bool:
        return place(precision, device).table in held

    def least_cosine(device: str) -> float | None:
        return find_least_cosine(place("mixed", device).spec)

    choice = choose_precision(asked, devices, is_held, least_cosine)
    _refuse_two_arithmetics(choice.precision, devices)
    return choice, place(choice.precision, devices[0])


def _refuse_two_arithmetics(precision: str, devices: tuple[str, ...]) -> None:
    """Mixed precision gives other vectors on a card than on a processor."""
    if precision != "exact" and len({device == "cpu" for device in devices}) > 1:
        raise UsageError(
            f"precision {precision} on {', '.join(devices)} would put two kinds of vectors"
            " in one space",
            hint="use precision exact, or devices of one kind",
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A precision, and a note on it for the run; empty where the user asked for it."""

    precision: Resolved
    note: str = ""
    is_unproven: bool = False
    """Whether it was not measured yet how far its vectors are from float32's."""


def choose_precision(
    asked: str,
    devices: Sequence[str],
    is_held: IsHeld,
    least_cosine: Callable[[str], float | None] = lambda _: None,
) -> Choice:
    """Settle ``asked`` for a run on ``devices``.

    Args:
        asked: a precision, or ``auto``: what the cache holds already; else ``mixed`` where
            `featpipe.encoders.precision` finds it worthwhile and safe, and ``exact`` elsewhere and
            where processors and cards work together.
        devices: of this run.
        is_held: looks into the cache.
        least_cosine: of this model's vectors in ``mixed`` on a device to those in float32, where
            that was measured.

    Raises:
        UsageError: no such precision.

    """
    if asked != "auto":
        return Choice(resolve_precision(asked))
    held = [precision for precision in _AUTOMATIC if is_held(precision, devices[0])]
    cosine = least_cosine(devices[0])
    if len(held) == 1:
        return Choice(held[0], _note_held(held[0], devices, cosine))
    if len({device == "cpu" for device in devices}) > 1 or probe(devices[0]) == "exact":
        return Choice("exact")
    if cosine is not None and cosine < LEAST_COSINE:
        return Choice("exact", f"in precision exact: {note_coarse(cosine)}")
    other, kind = ("cuda:0", "a card") if devices[0] == "cpu" else ("cpu", "a processor")
    beside = ""
    if not held and is_held("mixed", other):
        beside = f"; those that the cache holds were made on {kind} and stay beside them"
    return Choice(
        "mixed",
        f"in mixed precision, worthwhile here: {_LOWER}; --precision exact for float32" + beside,
        is_unproven=cosine is None,
    )


def note_coarse(cosine: float) -> str:
    """Why ``mixed`` is not chosen."""
    return f"in mixed precision this model's cosines to float32 fall to {cosine:.4f}"


def _note_held(held: Resolved, devices: Sequence[str], cosine: float | None) -> str:
    is_coarse = cosine is not None and cosine < LEAST_COSINE
    if held == "mixed" and cosine is not None and is_coarse:
        return (
            f"in mixed precision, as the cache holds them, and {note_coarse(cosine)}; --precision"
            " exact makes them anew"
        )
    if held == "mixed":
        return f"in mixed precision, as the cache holds them: {_LOWER}"
    if find_precision("auto", device=devices[0]) == "mixed" and not is_coarse:
        return "in precision exact, as the cache holds them; mixed would be faster here"
    return ""


def probe(device: str) -> Resolved:
    """The precision that ``auto`` means on a device; measured once per machine, by a child.

    The measurement needs torch.
    """
    known = find_precision("auto", device=device)
    if known is not None:
        return known
    with Pool([Role("probe", "featpipe.build.plan:ProbeRole", threads=1)]) as pool:
        return cast("Resolved", pool.call("probe", device))


class ProbeRole:
    """Measures how much faster bfloat16 is on this processor."""

    def run(self, device: str) -> Resolved:
        """Measure, or read what an earlier measurement left."""
        return resolve_precision("auto", device=device)
