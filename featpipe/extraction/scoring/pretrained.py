"""Pretrained fields: what many labelled documents have taught of fields that often occur.

A template's samples are few, and a field called 甲方 is much the same in all announcements of
contracts. Weights of the mention model (:mod:`featpipe.extraction.scoring.mentions`) for fields of
such names were learnt once, by ``scripts/pretrain_fields.py``, from the development parts of four
public sets; they are the prior mean of a field of that name, or of a synonym of it in the same
script, and of a like type. The samples move them, and where the samples' values are ranked better
without them, they are not used (:func:`featpipe.extraction.scoring.field_fitting.fit_field`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.extraction.names.kinds_of_names import kind_of_names
from featpipe.extraction.names.synonyms import synonyms_of
from featpipe.extraction.scoring.candidates import SHAPED
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.context import N_HASHED
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.scoring.sentence_model import SentenceModel
from featpipe.extraction.scoring.sentence_words import N_PLACES
from featpipe.extraction.values.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.values.values import FieldType

    Floats = NDArray[np.float64]

#: The weights that the package ships.
SHIPPED = Path(__file__).with_name("pretrained.npz")
#: Types that samples of one field are easily taken for.
_LIKE: tuple[frozenset[FieldType], ...] = (
    frozenset(("text", "organisation", "person")),
    frozenset(("money", "number")),
)


@dataclass(frozen=True, slots=True, eq=False)
class PretrainedField:
    """Added to the prior of the mention model, sparsely.

    Shapes: ``columns`` (n,) int32 places in the hashed space and their ``weights`` (n,) float16;
    ``measured`` (len(MEASURED),).
    """

    name: str
    kind: FieldType
    columns: NDArray[np.int32]
    weights: NDArray[np.float16]
    measured: Floats
    bias: float
    sentences: SentenceModel | None = None
    """Of a field of clauses."""
    several: float = 0.0
    """Share of the documents with a value that have several."""

    @property
    def hashed(self) -> NDArray[np.float32]:
        """(N_HASHED,)."""
        table = np.zeros(N_HASHED, np.float32)
        table[self.columns] = self.weights
        return table

    def is_like(self, kind: FieldType) -> bool:
        """Whether a field of that type may be this one."""
        return kind == self.kind or any({kind, self.kind} <= alike for alike in _LIKE)


class PretrainedFields:
    """Pretrained fields by name and type; none by default."""

    def __init__(self, fields: Iterable[PretrainedField] = ()) -> None:
        self._by_name: dict[str, list[PretrainedField]] = {}
        # Of fields of one name, the type with a shape is the likelier one.
        for field in sorted(fields, key=lambda one: one.kind not in SHAPED):
            self._by_name.setdefault(fold(field.name), []).append(field)

    def __iter__(self) -> Iterator[PretrainedField]:
        return (field for fields in self._by_name.values() for field in fields)

    def find(self, names: Sequence[str], kind: FieldType | None = None) -> PretrainedField | None:
        """The field of the first name, or of a synonym, that there is one of.

        Args:
            names: of the field.
            kind: its type, None for any.

        """
        for name in (*names, *synonyms_of(tuple(names))):
            for field in self._by_name.get(fold(name), ()):
                # A synonym in another language stands in other documents.
                is_same_script = any(own.isascii() == field.name.isascii() for own in names)
                # Nor is a clause meant by it: an end date is a date, whatever Expiration Date was.
                is_meant = name in names or field.kind != "clause"
                if is_same_script and is_meant and (kind is None or field.is_like(kind)):
                    return field
        return None

    @classmethod
    def load(cls, path: Path) -> PretrainedFields:
        """From a file of :meth:`save`."""
        with np.load(path, allow_pickle=False) as kept:
            arrays = dict(kept)
        fields = []
        for number, one in enumerate(json.loads(str(arrays["head"]))):
            sentences = None
            if one["sentence_bias"] is not None:
                table = np.zeros(N_PLACES, np.float32)
                table[arrays[f"places {number}"]] = arrays[f"word weights {number}"]
                sentences = SentenceModel(table, one["sentence_bias"])
            fields.append(
                PretrainedField(
                    one["name"],
                    one["kind"],
                    arrays[f"columns {number}"],
                    arrays[f"weights {number}"],
                    np.array([one["measured"].get(name, 0.0) for name in MEASURED]),
                    one["bias"],
                    sentences,
                    one["several"],
                )
            )
        return cls(fields)

    def save(self, path: Path) -> None:
        """Write a file; equal fields give equal bytes."""
        head: list[dict[str, object]] = []
        arrays: dict[str, Any] = {}  # Any: numpy takes flags among the arrays
        for number, field in enumerate(self):
            arrays |= {f"columns {number}": field.columns, f"weights {number}": field.weights}
            if field.sentences is not None:
                places = np.flatnonzero(field.sentences.weights).astype(np.int32)
                arrays[f"places {number}"] = places
                arrays[f"word weights {number}"] = field.sentences.weights[places].astype(
                    np.float16
                )
            measured = zip(MEASURED, field.measured.tolist(), strict=True)
            head.append(
                {
                    "name": field.name,
                    "kind": field.kind,
                    "bias": field.bias,
                    "several": field.several,
                    "measured": {name: weight for name, weight in measured if weight},
                    "sentence_bias": None if field.sentences is None else field.sentences.bias,
                }
            )
        arrays["head"] = np.array(json.dumps(head, ensure_ascii=False))
        np.savez_compressed(path, **arrays)


@cache
def shipped_fields() -> PretrainedFields:
    """Those that the package ships, read once."""
    return PretrainedFields.load(SHIPPED)


def kind_of_values(
    values: Sequence[tuple[PageFeatures, str]], names: Sequence[str], pretrained: PretrainedFields
) -> FieldType:
    """The type of a field: of its samples' values, else of the pretrained field or the name.

    Args:
        values: each with the document it was taken from.
        names: of the field.
        pretrained: fields to look among.

    """
    if values:
        return infer_type(values)
    known = pretrained.find(names)
    return kind_of_names(names) if known is None else known.kind
