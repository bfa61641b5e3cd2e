"""Count: a worker that turns unit texts into BM25 terms. CPU only; each distinct text once ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.features.terms import Analyser
from featpipe.pipeline.messages import FeatureBatch, LocalTerms
from featpipe.pipeline.units import Texts

if TYPE_CHECKING:
    from featpipe.features.terms import AnalyserName
    from featpipe.pipeline.messages import FeatureTask


class CountRole:
    """Counts terms.

    Args:
        analyser: name of the term analyser.

    """

    def __init__(self, analyser: AnalyserName) -> None:
        self._analyser = Analyser(analyser)

    def run(self, task: FeatureTask) -> FeatureBatch:
        """Term ids of every unit of the task, against a vocabulary of their own."""
        counted = self._analyser.count(task.units.texts.strings())
        terms = LocalTerms(
            keys=task.units.keys,
            vocabulary=Texts.from_strings(counted.vocabulary),
            ids=counted.ids,
            lengths=counted.lengths.astype(np.int64),
        )
        return FeatureBatch(table=task.table, rows={}, terms=terms)
