"""The status of a folder cache: which jobs are left, and what they will cost.

Texts and tokens are counted, not estimated, as far as parts are prepared: no card need be rented to
know for how long.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.messages import FeatureTask
from featpipe.build.roles import encode_role
from featpipe.build.shards.encode import Listing, Shard
from featpipe.build.shards.folder_plan import FolderPlan, list_spaces
from featpipe.build.shards.job import Job
from featpipe.build.shards.part_lists import read_run_plans
from featpipe.build.shards.prepare import report_name
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.spec import CUT_RULE
from featpipe.encoders.tokenizer import Tokenizer
from featpipe.encoders.windows import plan_windows
from featpipe.errors import UsageError
from featpipe.pool import Pool
from featpipe.pool.devices import check_devices
from featpipe.store.folder_layout import REPORTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.build.plan import Plan
    from featpipe.build.publish import Publisher
    from featpipe.cache.texts import Units

#: Texts of a sample whose rate is measured, and the least time that it should take.
_SAMPLE, _SAMPLE_S = 1 << 14, 2.0


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """One space of a folder.

    Attributes:
        name: such as ``zh-small@3f2a9c71b0de``.
        missing: numbers of the shards whose job is left to do.
        n_texts: that lack a vector in these; None where they were not counted.
        n_tokens: of these texts, special ones and overlaps of windows included; None likewise.
    """

    name: str
    missing: tuple[int, ...]
    n_texts: int | None = None
    n_tokens: int | None = None

    def hours(self, tokens_per_s: float) -> float:
        """Of one device that computes so many tokens a second."""
        return (self.n_tokens or 0) / tokens_per_s / 3600


@dataclass(frozen=True, slots=True)
class FolderStatus:
    """What is left to do on a folder.

    Attributes:
        n_parts: of all runs that count.
        missing_parts: jobs ``prepare`` that are left to do.
        n_shards: of each space.
        spaces: the folder's own first.
    """

    n_parts: int
    missing_parts: tuple[str, ...]
    n_shards: int
    spaces: tuple[SpaceStatus, ...]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not self.missing_parts and not any(space.missing for space in self.spaces)

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self) | {"is_done": self.is_done}


def read_status(folder: Publisher, *, with_costs: bool = False) -> FolderStatus:
    """What is left to do; with its costs every missing shard's texts are read.

    Raises:
        UnreadableDictionary: the folder has no plan.
        CheckpointError: with costs, a model that is not here.

    """
    plan = FolderPlan.read(folder)
    listing = Listing.of(folder)
    spaces = []
    for space in ("", *list_spaces(folder)):
        mine = plan.for_space(folder, space)
        shards = [Shard(folder, mine, Job("encode", n, "", space), listing) for n in _all(plan)]
        left = [shard for shard in shards if shard.done() is None]
        missing = tuple(shard.job.number for shard in left)
        found = SpaceStatus(mine.encoder.table.partition("/")[2], missing)
        spaces.append(_with_costs(found, mine, left) if with_costs else found)
    return FolderStatus(
        n_parts=sum(run.n_parts for run in read_run_plans(folder)),
        missing_parts=list_missing_parts(folder),
        n_shards=plan.n_shards,
        spaces=tuple(spaces),
    )


def list_missing_parts(folder: Publisher) -> tuple[str, ...]:
    """Names of the parts that are left to do, of all runs that count."""
    runs = read_run_plans(folder)
    done = set(folder.list(REPORTS))
    parts = [(run, number) for run in runs for number in range(run.n_parts)]
    return tuple(f"{r.id}-{n:04d}" for r, n in parts if report_name(r, n) not in done)


def measure_rate(folder: Publisher, device: str) -> float:
    """Tokens a second of the folder's own model on a device of this machine.

    Raises:
        UsageError: no text is left to measure it on.
        UnknownDevice, CheckpointError: the device or the model is not here.

    """
    plan = FolderPlan.read(folder)
    devices = check_devices([device])
    made = plan.plan_encoding(devices)
    listing = Listing.of(folder)
    shards = (Shard(folder, plan, Job("encode", n), listing) for n in _all(plan))
    sample = next((units for s in shards for units in s.lacking(plan.encoder.table)), None)
    if sample is None:
        raise UsageError("nothing is left to encode, so no rate can be measured")
    sample = sample.take(np.arange(min(len(sample), _SAMPLE)))
    counter = TokenCounter(plan)
    role = replace(encode_role(made.encoder, None, devices, plan.settings()), bisect=None)
    with Pool([role]) as pool:
        pool.call("encode", FeatureTask(made.encoder.table, sample.take(np.arange(1))))
        return _measure(pool, made, sample, counter)


class TokenCounter:
    """Counts the tokens that the folder's encoder computes for some texts."""

    def __init__(self, plan: FolderPlan) -> None:
        self._spec = plan.encoder.spec
        self._tokenizer = Tokenizer.load(describe_checkpoint(plan.encoder.path()))

    def count(self, texts: Sequence[str]) -> int:
        """Of all windows, special tokens included."""
        prompt = str(self._spec["prompt"])
        lengths = self._tokenizer.encode([prompt + text for text in texts]).lengths
        capacity = int(self._spec["max_length"]) - self._tokenizer.n_special
        windows = plan_windows(
            lengths,
            capacity=capacity,
            stride=min(int(self._spec["stride"]), capacity),
            only_first=self._spec["window_rule"] == CUT_RULE,
        )
        n_windows = int(windows.n_windows.sum())
        return int(windows.length.sum()) + n_windows * self._tokenizer.n_special


def _all(plan: FolderPlan) -> range:
    return range(plan.n_shards)


def _with_costs(status: SpaceStatus, plan: FolderPlan, left: Sequence[Shard]) -> SpaceStatus:
    n_texts = n_tokens = 0
    counter = TokenCounter(plan) if left else None
    table = plan.encoder.table
    for units in (units for shard in left for units in shard.lacking(table)):
        n_texts += len(units)
        n_tokens += counter.count(units.texts.strings()) if counter is not None else 0
    return replace(status, n_texts=n_texts, n_tokens=n_tokens)


def _measure(pool: Pool, plan: Plan, sample: Units, counter: TokenCounter) -> float:
    """With more texts each time, until they take long enough, or there are no more."""
    n = 64
    while True:
        some = sample.take(np.arange(min(n, len(sample))))
        pool.submit("encode", FeatureTask(plan.encoder.table, some))
        [outcome] = pool.completed()
        if outcome.error is not None:
            raise outcome.error
        if outcome.seconds >= _SAMPLE_S or n >= len(sample):
            return counter.count(some.texts.strings()) / max(outcome.seconds, 1e-9)
        n *= 4
