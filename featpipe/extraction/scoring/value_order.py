"""The order of a field's values, and how sure each is: by the field's curve, or by its name.

Where samples have what stands behind the field's names, a name counts in documents that are
written otherwise than the samples, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.candidates import CELL, LABELLED, SHAPE, SHAPED
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.confidence import confidences_of, untaught_confidences_of
from featpipe.extraction.scoring.field_names import RELATED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.confidence import FieldTraits

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: How sure a value of a field with samples is by a name before it at most. On the parts for
#: development of announcements and freezes, fewer than said were right of those that names alone
#: made surer.
_MOST_BY_NAME = 0.85
_BEHIND_ALIAS = MEASURED.index("behind alias")


class Places(NamedTuple):
    """Of the best mention of each value (n,): see ``Scored``, and :func:`are_parts`."""

    is_headed: Bools
    fills_cell: Bools
    is_part: Bools


def are_parts(model: FieldTraits, found: Candidates, chosen: Ints) -> Bools:
    """Whether some (n,) are no whole values, though they begin behind a name of the field.

    Names begin where a label's value, or a cell, does, and end elsewhere; what has no shape of the
    type is none of its values.
    """
    is_whole = (found.origin & (SHAPE | LABELLED | CELL)) > 0
    if model.kind in SHAPED:
        return np.asarray(~is_whole[chosen])
    begins = np.zeros(int(found.first.max(initial=0)) + 1, bool)
    begins[found.first[is_whole]] = True
    return np.asarray(begins[found.first[chosen]] & ~is_whole[chosen])


def order_values(
    model: FieldTraits,
    rows: Floats,
    measured: Floats,
    probabilities: Floats,
    places: Places,
) -> tuple[Ints, Floats]:
    """Numbers of all values, likeliest first, and their confidences in that order."""
    order = np.argsort(-probabilities, kind="stable")
    is_headed, fills_cell, is_part = (own[order] for own in places)
    rows, measured, probabilities = rows[order], measured[order], probabilities[order]
    if model.is_untaught:
        return order, untaught_confidences_of(model.values, rows, measured)
    confidences = confidences_of(model, rows, measured, probabilities, fills_cell)
    if not model.is_unshown:
        if not model.trusts_names:
            return order, confidences
        is_named = measured[:, _BEHIND_ALIAS] >= RELATED
        is_named &= ~is_part
        by_name = is_named * untaught_confidences_of(model.values, rows, measured)
        confidences = np.maximum(confidences, np.minimum(by_name, _MOST_BY_NAME))
        again = np.argsort(-confidences, kind="stable")
        return order[again], confidences[again]
    is_named = measured[:, _BEHIND_ALIAS] >= 1
    by_name = is_named * untaught_confidences_of(model.values, rows, measured)
    confidences = np.minimum.accumulate(np.maximum(confidences, by_name))
    in_column = is_headed & is_named
    if not in_column.any():
        return order, confidences
    # The field's name heads a column: whatever pretraining tells, cells below other headers are
    # no likelier than those below it.
    by_header = untaught_confidences_of(model.values, rows[in_column], measured[in_column])
    confidences[in_column] = np.maximum(confidences[in_column], by_header)
    in_other = is_headed & ~is_named
    confidences[in_other] = np.minimum(confidences[in_other], confidences[in_column].max())
    again = np.lexsort((in_other, -confidences))
    return order[again], confidences[again]
