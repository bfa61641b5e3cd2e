"""The records that runs of ``build-cache`` leave in a cache, read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import UsageError
from featpipe.outcome import FailedUnits, Quarantined, RunReport
from featpipe.pipeline import layout
from featpipe.pipeline.units import Texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.pipeline.lookup import Cache


def read_runs(cache: Cache) -> list[RunReport]:
    """Every run, oldest first; what a later featpipe adds to a record is passed over."""
    if layout.RUNS not in cache.reader:
        return []
    table = cache.reader.table(layout.RUNS)
    texts = Texts(*table.ragged_many("record", np.arange(table.n_rows))).strings()
    return [_report_of(json.loads(text)) for text in texts]


def find_run(runs: Sequence[RunReport], name: str) -> RunReport:
    """One run by its id, the beginning of its id, or ``last``.

    Raises:
        UsageError: no such run, or several.

    """
    if name == "last" and runs:
        return runs[-1]
    found = [run for run in runs if run.run_id.startswith(name)]
    exact = [run for run in found if run.run_id == name]
    if len(found) != 1 and not exact:
        what = "several runs begin with" if found else "no run"
        raise UsageError(f"{what} {name!r}", hint="featpipe runs list CACHE")
    return (exact or found)[0]


def _report_of(record: dict[str, Any]) -> RunReport:
    known = RunReport.__dataclass_fields__
    content = {name: value for name, value in record.items() if name in known}
    content["quarantined"] = tuple(Quarantined(**lost) for lost in record["quarantined"])
    content["failed"] = tuple(FailedUnits(**failed) for failed in record["failed"])
    content["notes"] = tuple(record["notes"])
    return RunReport(**content)
