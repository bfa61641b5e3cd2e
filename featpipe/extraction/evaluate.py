"""How good a template is: its samples, or a gold file, against what it finds without them.

Guarantees: a document is judged by fields fitted without any sample of the same text; a field
counts only in documents that were read for it; a value that a sample states and its document does
not hold counts as missed; the same template, samples and inputs give the same figures.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents import load_document
from featpipe.errors import DocumentError, TemplateError, UsageError
from featpipe.extraction.evaluation import (
    Disagreement,
    Judgement,
    LeftOutOfEvaluation,
    Stated,
    TemplateEvaluation,
    score,
)
from featpipe.extraction.field_facts import hash_json, sample_name
from featpipe.extraction.fitted import FittedTemplate, SampleDocument
from featpipe.extraction.model_cache import ModelCache
from featpipe.extraction.results import meaning_of
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.scoring.page import page_of_document, page_of_text
from featpipe.extraction.values.values import Value, read_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from featpipe.extraction.results import FieldResult
    from featpipe.extraction.template import SampleSpec, Template
    from featpipe.extraction.values.values import FieldType

#: Parts of the samples that are left out one after the other.
PARTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class GoldDocument:
    """A document whose values are known, with its name, and its key where a cache holds it."""

    name: str
    key: str
    sample: SampleSpec
    features: PageFeatures


def evaluate_samples(fitted: FittedTemplate, parts: int = PARTS) -> TemplateEvaluation:
    """Judge each sample by the template without it.

    The samples are left out in parts, one by one where there are no more than parts; samples of the
    same text are left out together. A field that only one text was read for is not judged.

    Args:
        fitted: the template with its samples found. The models of its parts are kept in memory.
        parts: at least 2.

    Raises:
        UsageError: fewer than two parts, or than two texts to learn from.

    """
    by_text: dict[str, list[int]] = defaultdict(list)
    for number, identity in enumerate(fitted.sample_identities):
        by_text[identity].append(number)
    if parts < 2 or len(by_text) < 2:
        raise UsageError(
            f"template {fitted.template.name}: nothing can be left out of {len(by_text)} sample "
            f"texts in {parts} parts",
            hint="two samples and two parts at least, or a gold file (--gold)",
        )
    groups = list(by_text.values())
    judged: list[Judgement] = []
    alone = fields_of_one_text(fitted)
    for part in range(min(parts, len(groups))):
        left_out = [number for group in groups[part::parts] for number in group]
        kept = [n for n in range(len(fitted.template.samples)) if n not in set(left_out)]
        without = fitted.with_samples(kept, ModelCache(None, {}))
        for number in left_out:
            judged += judge(without, sample_document(fitted, number), alone)
    return score(fitted.template.name, "samples", field_names(fitted), judged)


def evaluate_gold(
    fitted: FittedTemplate,
    gold: Sequence[GoldDocument],
    left_out: Sequence[LeftOutOfEvaluation] = (),
) -> TemplateEvaluation:
    """Judge documents whose values are known by the whole template."""
    judged = [one for document in gold for one in judge(fitted, document, ())]
    return score(fitted.template.name, "gold", field_names(fitted), judged, left_out)


def field_names(fitted: FittedTemplate) -> list[str]:
    """Names of the template's fields, in order."""
    return [spec.name for spec in fitted.template.fields]


def fields_of_one_text(fitted: FittedTemplate) -> set[str]:
    """Fields that fewer than two texts were read for."""
    texts: dict[str, set[str]] = {spec.name: set() for spec in fitted.template.fields}
    for sample, identity in zip(fitted.template.samples, fitted.sample_identities, strict=True):
        for name, own in texts.items():
            if sample.is_read_for(name):
                own.add(identity)
    return {name for name, own in texts.items() if len(own) < 2}


def sample_document(fitted: FittedTemplate, number: int) -> GoldDocument:
    """A sample of a template as a document to judge."""
    sample = fitted.template.samples[number]
    key = fitted.sample_keys[number]
    name = sample_name(sample, number)
    return GoldDocument(name, key.hex() if key else "", sample, fitted.sample_pages[number])


def prepare_texts(template: Template, folder: Path) -> FittedTemplate:
    """A template without a cache: its samples hold their texts, or name files.

    There are no vectors then, so that values may be others than with a cache.

    Args:
        template: to prepare.
        folder: of its file, from which samples name theirs.

    Raises:
        TemplateError: a sample document is no file.
        DocumentError: a file that cannot be read.

    """
    documents = [_text_sample(template.name, sample, folder) for sample in template.samples]
    return FittedTemplate(template, documents, "", ModelCache(None, {}))


def _text_sample(template: str, sample: SampleSpec, folder: Path) -> SampleDocument:
    if sample.text is not None:
        page = page_of_text(sample.text)
    else:
        name = str(sample.document)
        file = next((path for path in (folder / name, Path(name)) if path.is_file()), None)
        if file is None or sample.key is not None:
            raise TemplateError(
                f"template {template}: the sample document {name} is no file beside the template",
                hint="name the cache that holds it: --cache",
            )
        document = load_document(file.read_bytes(), source=name)
        page = page_of_document(document)
    return SampleDocument(hash_json([page.text]), lambda: PageFeatures(page))


def find_gold(
    prepare: Callable[[Template], FittedTemplate],
    fitted: FittedTemplate,
    samples: Sequence[SampleSpec],
) -> tuple[list[GoldDocument], list[LeftOutOfEvaluation]]:
    """The documents of gold samples, and those left out, each with its reason.

    A document that the template has a sample of tells nothing about others, and is left out.

    Args:
        prepare: :meth:`ExtractionEngine.prepare`, or :func:`prepare_texts` for some folder.
        fitted: the template that they are for.
        samples: whose values are known.

    """
    known = set(fitted.sample_identities)
    found: list[GoldDocument] = []
    left_out: list[LeftOutOfEvaluation] = []
    for number, sample in enumerate(samples):
        name = sample_name(sample, number)
        reason, own = _find_one(prepare, fitted.template, sample)
        if own is not None and own.sample_identities[0] in known:
            reason = "the template has a sample of it"
        if reason or own is None:
            left_out.append(LeftOutOfEvaluation(name, reason))
        else:
            found.append(replace(sample_document(own, 0), name=name))
    return found, left_out


def _find_one(
    prepare: Callable[[Template], FittedTemplate], template: Template, sample: SampleSpec
) -> tuple[str, FittedTemplate | None]:
    """Why a sample's document cannot be used, or a template with it alone."""
    try:
        own = prepare(template.model_copy(update={"samples": (sample,)}))
    except (TemplateError, DocumentError) as error:
        return error.message, None
    return ("", own) if own.has_samples else ("the cache holds another version of it", None)


def judge(
    fitted: FittedTemplate, document: GoldDocument, without: Collection[str]
) -> list[Judgement]:
    """Compare what a template finds in a document with what is known, field by field."""
    read_for = document.sample.is_read_for
    names = [name for name in field_names(fitted) if read_for(name) and name not in without]
    results = fitted.extract_fields(names, document.features)
    return [_judge_field(document, name, fitted.model(name).kind, results[name]) for name in names]


def _judge_field(
    document: GoldDocument, name: str, kind: FieldType, result: FieldResult
) -> Judgement:
    wanted = _distinct(document.sample.values_of(name), kind)
    missed, is_right = list(wanted), []
    for value in result.values:
        # As it is found, and as it is written: 3,000 of 3,000-5,000万元 is stated as either.
        read = (meaning_of(value, kind), read_value(value.text, kind))
        match = next((text for text in missed if any(map(wanted[text].means, read))), None)
        is_right.append(match is not None)
        if match is not None:
            missed.remove(match)
    wrong = tuple(v for v, right in zip(result.values, is_right, strict=True) if not right)
    found = tuple((v.probability, r) for v, r in zip(result.values, is_right, strict=True))
    places = (
        Stated(text, tuple(_places(document, name, text, kind, n_values=len(wanted))))
        for text in missed
    )
    disagreement = Disagreement(document.name, document.key, name, tuple(places), wrong)
    is_disagreement = bool(missed or wrong)
    return Judgement(
        document.name, name, len(wanted), found, disagreement if is_disagreement else None
    )


def _distinct(texts: Sequence[str], kind: FieldType) -> dict[str, Value]:
    """Stated values of different meanings; the first spelling of each."""
    found: dict[str, Value] = {}
    for text in texts:
        read = read_value(text, kind)
        if not any(read.means(other) for other in found.values()):
            found[text] = read
    return found


def _places(
    document: GoldDocument, name: str, text: str, kind: FieldType, *, n_values: int
) -> list[tuple[int, int]]:
    """Where a stated value stands: where it is located by meaning, or as the sample has it."""
    located = locate_value(document.features, text, kind)
    given = document.sample.spans.get(name, ())
    return located or (list(given) if n_values == 1 else [])
