"""Samples to and from labelling tools: with their documents found, and held against a template.

Guarantee: what cannot be exported or imported is named with its reason, and the rest is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents import LoadLimits, Source
from featpipe.errors import DocumentError
from featpipe.extraction.corrections_fold import without
from featpipe.extraction.doccano import read_doccano
from featpipe.extraction.label_studio import read_label_studio
from featpipe.extraction.labels import LabelFile, LeftOut, SampleText, as_samples
from featpipe.extraction.named_documents import (
    find_sample,
    find_version,
    read_source,
    stored_or_read,
)
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.locate import infer_type, locate_value
from featpipe.extraction.scoring.page import page_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.corrections import Place
    from featpipe.extraction.engine import ExtractionEngine
    from featpipe.extraction.template import FieldSpec, SampleSpec, Template

READERS = {"doccano": read_doccano, "label-studio": read_label_studio}


@dataclass(frozen=True, slots=True)
class Imported:
    """The samples of a file, and what was left out of it."""

    samples: tuple[SampleSpec, ...]
    left_out: tuple[LeftOut, ...]


def import_labels(
    path: str | Path,
    form: str,
    *,
    is_partial: bool = False,
    template: Template | None = None,
    cache: Cache | None = None,
    folder: Path | None = None,
) -> Imported:
    """The samples of a labelling tool's file.

    Args:
        path: of the file.
        form: ``doccano`` or ``label-studio``.
        is_partial: texts from elsewhere were read for their own labels only, not for all labels of
            the file.
        template: labels of other fields than its own are left out.
        cache: samples of documents that it does not hold with the very text are left out.
        folder: of the template, where sample documents may lie, too.

    Raises:
        TemplateError: it is no such file.

    """
    file = READERS[form](path)
    if template is not None:
        _keep_fields(file, template)
    samples = []
    for one, made in as_samples(file, is_partial=is_partial):
        sample = made if template is None else _known(one.where, made, template, file)
        fault = "" if cache is None else _fault_in(cache, sample, one.text, folder)
        if fault:
            file.leave_out(one.where, fault)
        else:
            samples.append(sample)
    return Imported(tuple(samples), tuple(file.left_out))


def _keep_fields(file: LabelFile, template: Template) -> None:
    """Leave out labels of other fields than the template's."""
    names = {spec.name for spec in template.fields}
    for place, one in enumerate(file.texts):
        for name in one.names():
            if name not in names:
                file.leave_out(one.where, f"the template has no field {name!r}")
        file.texts[place] = one.only(names)


def _known(where: str, sample: SampleSpec, template: Template, file: LabelFile) -> SampleSpec:
    """The sample without fields that the template has no longer."""
    gone = {str(place[-1]) for place in template.unknown_in(sample)}
    if not gone:
        return sample
    known = (LeftOut(where, f"the template has no field {name!r}") for name in sorted(gone))
    file.left_out += [one for one in known if one not in file.left_out]
    kept = without(sample, gone, [spec.name for spec in template.fields])
    return kept.model_copy(update={"complete": sample.complete})


def _fault_in(cache: Cache, sample: SampleSpec, text: str, folder: Path | None) -> str:
    """Why a sample's document cannot be used with its labels, "" if it can."""
    name = sample.document
    if name is None:
        return ""
    if sample.key is not None or folder is None:
        found: CachedDocument | Path | None = find_version(cache, name, sample.key)
    else:
        found = find_sample(cache, name, folder)
    if found is None:
        return f"the cache does not hold {name}" + (
            " in the version that was labelled" if sample.key else ""
        )
    if not isinstance(found, Path):
        now, where = found.text, f"the cache holds another text of {name}"
    else:
        try:
            data = read_source(Source(name, found))
            now = stored_or_read(cache, data, name, None, LoadLimits()).text
        except DocumentError as error:
            return error.message
        where = f"{found} holds another text"
    return "" if now == text else f"{where} than the one that was labelled"


@dataclass(frozen=True, slots=True)
class Exported:
    """Samples with their texts, in order, and those left out."""

    samples: tuple[SampleText, ...]
    left_out: tuple[LeftOut, ...]


def export_texts(template: Template) -> Exported:
    """The samples of a template that hold their texts; those of documents are left out."""
    samples, left_out = [], []
    for number, sample in enumerate(template.samples, start=1):
        if sample.text is None:
            reason = "its document is in a cache: name it by --cache"
            left_out.append(LeftOut(f"sample {number}, {sample.document}", reason))
        else:
            samples.append((sample, PageFeatures(page_of_text(sample.text))))
    return Exported(_placed(template, samples), tuple(left_out))


def export_cached(template: Template, engine: ExtractionEngine) -> Exported:
    """The samples of a template with the texts of their documents.

    Reviewed samples win over others of the same text.

    Raises:
        TemplateError: a sample document is nowhere.

    """
    left_out = [
        LeftOut(f"sample {number}, {sample.document}", "the cache holds another version of it")
        for number, sample in enumerate(template.samples, start=1)
        if sample.key and not engine.version(str(sample.document), sample.key)
    ]
    fitted = engine.prepare(template)
    samples = list(zip(fitted.template.samples, fitted.sample_pages, strict=True))
    return Exported(_placed(template, samples), tuple(left_out))


def _placed(
    template: Template, samples: Sequence[tuple[SampleSpec, PageFeatures]]
) -> tuple[SampleText, ...]:
    """The samples with places of their values: the given ones, else where they are located."""
    places: list[dict[str, list[Place]]] = [{} for _ in samples]
    for spec in template.fields:
        for found, given in zip(places, _places_of(spec, samples), strict=True):
            if given:
                found[spec.name] = given
    return tuple(
        SampleText(sample, features.page.text, found)
        for (sample, features), found in zip(samples, places, strict=True)
    )


def _places_of(
    spec: FieldSpec, samples: Sequence[tuple[SampleSpec, PageFeatures]]
) -> Iterator[list[Place]]:
    """Places of a field's values in each sample."""
    values = [(features, v) for one, features in samples for v in one.values_of(spec.name)]
    kind = spec.type or infer_type(values)
    for sample, features in samples:
        end = len(features.page.text)
        given = [place for place in sample.spans.get(spec.name, ()) if place[1] <= end]
        located = (locate_value(features, v, kind) for v in sample.values_of(spec.name) if v)
        yield given or sorted({place for places in located for place in places})
