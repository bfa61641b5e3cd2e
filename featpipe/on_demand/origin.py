"""Origins: where the models that filled a cache's tables lie, as far as the cache knows.

Every run of ``build-cache`` records the folders of its models. Caches of before that have no such
record; a model by the name of the space may then be in the local hub cache. A folder found here is
a candidate only: the fingerprint decides whether it holds that model still.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.cache.summary import read_runs
from featpipe.encoders.checkpoint import find_by_model_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from featpipe.cache.cache import Cache


def recorded_folders(cache: Cache, table: str) -> list[str]:
    """Folders of the models that filled `table`, each once, those of the latest runs first."""
    runs = reversed(read_runs(cache))
    return list(dict.fromkeys(run.checkpoints[table] for run in runs if table in run.checkpoints))


def candidates(cache: Cache, table: str) -> list[str]:
    """Folders on this machine that may hold the model that filled `table`."""
    recorded = [name for name in recorded_folders(cache, table) if Path(name).is_dir()]
    return list(dict.fromkeys([*recorded, *map(str, find_by_model_name(_model_name(table)))]))


def describe_origins(cache: Cache, tables: Iterable[str]) -> str:
    """The models that filled `tables`, with the folders where they were, in words."""
    return "; ".join(_describe(cache, table) for table in tables)


def _describe(cache: Cache, table: str) -> str:
    made = f"{table.partition('/')[2]} was made by the model {_model_name(table)}"
    recorded = recorded_folders(cache, table)
    if not recorded:
        return made
    is_there = Path(recorded[0]).is_dir()
    return f"{made}, then in {recorded[0]}{'' if is_there else ', which is there no longer'}"


def _model_name(table: str) -> str:
    return table.partition("/")[2].partition("@")[0]
