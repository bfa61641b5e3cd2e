"""Labelled texts, as doccano and Label Studio hold them, and the samples that they stand for.

An exported text carries an :class:`Origin`: its sample. A field whose labels come back as they
went out is told by that sample, to the letter; one that was labelled anew is told by its labels.
Guarantees: what was exported and not changed comes back equal; unknown is not none: a field of
which one label cannot be used, or on which annotators differ, is unknown in its text; each thing
that is not taken is named with its reason.

A text from elsewhere was read for every label of its file: where it has none of a label, it has no
value of that field.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from featpipe.documents.load import hash_text
from featpipe.errors import TemplateError
from featpipe.extraction.corrections import Place
from featpipe.extraction.corrections_fold import without
from featpipe.extraction.template import SampleSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import TypeIs

#: Key of the origin among the data of a text.
ORIGIN = "featpipe"

_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a file that was not taken: ``line 3`` or ``task 17``, and why."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: left out: {self.reason}"


class Origin(BaseModel):
    """What an exported text carries of its sample.

    Attributes:
        text_hash: of the text, by ``hash_text``: labels of another text are of no use.
        names: the fields of the template.
        labels: places that were exported as labels, by field.
        none: fields that the file says to have no value in the text, in a way that can be undone.
        sample: as JSON; without its text if it holds it itself.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    text_hash: str
    names: tuple[str, ...] = ()
    labels: dict[str, tuple[Place, ...]] = {}
    none: tuple[str, ...] = ()
    sample: dict[str, Any]  # Any: JSON

    @classmethod
    def of(cls, one: SampleText, names: Sequence[str], none: Sequence[str] = ()) -> Origin:
        """The origin of a sample; ``none`` as the attribute."""
        dumped = one.sample.model_dump(mode="json", exclude_defaults=True, exclude={"text"})
        return cls(
            text_hash=hash_text(one.text),
            names=tuple(names),
            labels={name: tuple(places) for name, places in one.places.items()},
            none=tuple(none),
            sample=dumped,
        )

    @classmethod
    def read(cls, given: object, text: str) -> Origin | None:
        """The origin of a text, None for a text from elsewhere.

        Raises:
            ValueError: it is damaged, or of another text.

        """
        if given is None:
            return None
        try:
            origin = cls.model_validate_json(given if isinstance(given, str) else "")
            origin.sample_of(text)
        except ValidationError as error:
            raise ValueError(f"its {ORIGIN!r} is not as it was exported") from error
        if origin.text_hash != hash_text(text):
            raise ValueError("its text is not the one that was exported")
        return origin

    def sample_of(self, text: str) -> SampleSpec:
        """The sample that was exported."""
        own = {} if "document" in self.sample else {"text": text}
        return SampleSpec.model_validate({**self.sample, **own})


@dataclass(frozen=True, slots=True)
class SampleText:
    """A sample with its text and the places of its values, by field."""

    sample: SampleSpec
    text: str
    places: Mapping[str, Sequence[Place]]

    def marks(self) -> list[tuple[int, int, str]]:
        """Start, end and field of every label, in the order of the text."""
        return sorted((a, b, name) for name, places in self.places.items() for a, b in places)


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text with its labels.

    Attributes:
        where: in the file.
        text: the offsets of its places count its code points.
        places: of values, by field.
        none: fields said to have no value.
        unknown: fields of which the labels cannot be used.
        origin: None for a text from elsewhere.

    """

    where: str
    text: str
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    none: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    origin: Origin | None = None

    def told_of(self, name: str) -> tuple[frozenset[Place], bool]:
        """What is said of a field, to be compared."""
        return frozenset(self.places.get(name, ())), name in self.none

    def names(self) -> list[str]:
        """Fields that it says something of."""
        return list(dict.fromkeys((*self.places, *sorted(self.none | self.unknown))))

    def only(self, names: Iterable[str]) -> LabelledText:
        """The text with what is said of some fields."""
        kept = set(names)
        return replace(
            self,
            places={name: places for name, places in self.places.items() if name in kept},
            none=self.none & kept,
            unknown=self.unknown & kept,
        )


@dataclass(slots=True)
class LabelFile:
    """The texts of a file, and what was left out of it so far."""

    texts: list[LabelledText] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, where: str, reason: object) -> None:
        """Name a part of the file that is not taken."""
        self.left_out.append(LeftOut(where, str(reason)))


@dataclass(frozen=True, slots=True)
class Mark:
    """A label as a file has it; ``fault`` is why it cannot be used, "" where that is not known."""

    start: object
    end: object
    name: object
    fault: str = ""

    def fault_in(self, text: str) -> str:
        """Why it cannot be used, "" if it can."""
        if not is_name(self.name):
            return self.fault or f"the label {self.name!r} is no name of a field"
        return f"{self.name}: {fault}" if (fault := self.fault or self._misplaced(text)) else ""

    def _misplaced(self, text: str) -> str:
        start, end = self.start, self.end
        if not is_offset(start) or not is_offset(end) or start >= end:
            return f"{start!r}:{end!r} is no place in a text"
        if end > len(text):
            return f"{start}:{end} is beyond the text, which has {len(text)} characters"
        return ""


def is_offset(given: object) -> TypeIs[int]:
    """Whether it counts characters; ``True`` is an int, and does not."""
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def is_name(given: object) -> TypeIs[str]:
    """Whether it can name a field."""
    return isinstance(given, str) and bool(given) and not _LONE.search(given)


def read_marks(base: LabelledText, marks: Iterable[Mark], file: LabelFile) -> LabelledText:
    """A text with its labels; those that cannot be used make their field unknown."""
    places: defaultdict[str, dict[Place, None]] = defaultdict(dict)
    unknown = set(base.unknown)
    for mark in marks:
        fault = mark.fault_in(base.text)
        if fault:
            file.leave_out(base.where, fault)
            unknown |= {mark.name} if is_name(mark.name) else set()
        else:
            places[str(mark.name)][mark.start, mark.end] = None  # type: ignore[index]  # checked
    for name in sorted(base.none & places.keys()):
        file.leave_out(base.where, f"{name}: has labels, and is said to have no value")
        unknown.add(name)
    found = {name: tuple(at) for name, at in places.items() if name not in unknown}
    none = base.none - unknown
    return replace(base, places=found, none=none, unknown=frozenset(unknown))


def read_label_file(path: str | Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises:
        TemplateError: it cannot be read.

    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TemplateError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: is not in UTF-8") from error


def check_text(text: object) -> str:
    """A text that can be kept.

    Raises:
        ValueError: it is none.

    """
    if not isinstance(text, str) or not text:
        raise ValueError("it has no text")
    if _LONE.search(text):
        raise ValueError("its text holds half a character (a lone surrogate)")
    return text


def agreed(texts: Sequence[LabelledText], file: LabelFile) -> LabelledText:
    """What several annotators of one text agree on; the rest is unknown, and named."""
    first, *others = texts
    if not others:
        return first
    unknown = set().union(*(one.unknown for one in texts))
    for name in dict.fromkeys(name for one in texts for name in one.names()):
        if name not in unknown and len({one.told_of(name) for one in texts}) > 1:
            by = ", ".join(one.where for one in others)
            file.leave_out(first.where, f"{name}: labelled otherwise than by {by}")
            unknown.add(name)
    names = [name for name in first.names() if name not in unknown]
    return replace(first.only(names), unknown=frozenset(unknown))


def as_samples(
    file: LabelFile, *, is_partial: bool = False
) -> list[tuple[LabelledText, SampleSpec]]:
    """The samples of a file, each with the text that it was made of.

    Args:
        file: what is left out is added to it.
        is_partial: texts from elsewhere were read for their own labels only, not for all of them.

    """
    groups: dict[object, list[LabelledText]] = {}
    for number, one in enumerate(file.texts):
        groups.setdefault(number if one.origin else one.text, []).append(one)
    texts = [agreed(group, file) for group in groups.values()]
    foreign = [one for one in texts if one.origin is None]
    read_for = () if is_partial else dict.fromkeys(n for one in foreign for n in one.names())
    return [
        (one, _returned(one, one.origin, file) if one.origin else _foreign(one, read_for))
        for one in texts
    ]


def _foreign(one: LabelledText, read_for: Iterable[str]) -> SampleSpec:
    names = [name for name in dict.fromkeys((*read_for, *one.names())) if name not in one.unknown]
    return SampleSpec(
        text=one.text,
        fields={name: _values(one, name) for name in names},
        spans=dict(one.places),
    )


def _values(one: LabelledText, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.text[a:b] for a, b in one.places.get(name, ())))


def _returned(one: LabelledText, origin: Origin, file: LabelFile) -> SampleSpec:
    """The sample that was exported, with what is told of it now."""
    sample = origin.sample_of(one.text)
    told = {
        name
        for name in {*origin.labels, *one.places, *one.none} - one.unknown
        if _is_changed(one, origin, sample, name)
    }
    unsaid = {*origin.none} - one.none - told
    gone = told | unsaid | one.unknown
    for name in sorted(gone & {name for record in sample.records for name in record}):
        reason = f"{name}: is labelled anew, so that its values are no longer parts of records"
        file.leave_out(one.where, reason)
    kept = without(sample, gone, origin.names)
    spans = {name: tuple(sorted(one.places[name])) for name in sorted(told & one.places.keys())}
    return kept.model_copy(
        update={
            "fields": kept.fields | {name: _values(one, name) for name in sorted(told)},
            "spans": kept.spans | spans,
            "complete": sample.complete and not unsaid and not one.unknown,
        }
    )


def _is_changed(one: LabelledText, origin: Origin, sample: SampleSpec, name: str) -> bool:
    if name in one.none:
        return bool(sample.values_of(name)) or not sample.is_read_for(name)
    return {*one.places.get(name, ())} != {*origin.labels.get(name, ())}
