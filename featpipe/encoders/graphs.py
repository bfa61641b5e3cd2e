"""CUDA graphs: all operations of a forward are launched by one call.

A small model's operations take a card less time than the host takes to launch them. A graph records
them once and repeats them over the same memory, into which each pack's inputs are copied. The same
kernels run as without, so the bytes are the same. Recorded are forwards in half precision, of packs
with a fixed number of rows, and with one attention kernel for all lengths; others run as they are.

On, unless FEATPIPE_CUDA_GRAPHS is 0. What a recorded forward needs stays allocated on the card; the
records of one computation share it, as each result is used up before the next is computed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from featpipe.encoders.attention import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

    Compute = Callable[["Inputs"], torch.Tensor]
    Record = Callable[[Callable[[], torch.Tensor]], tuple[Callable[[], None], torch.Tensor]]
    """Runs a computation; gives what repeats it, and the tensor in which its result then lies."""

_VARIABLE = "FEATPIPE_CUDA_GRAPHS"

#: Least sequences and least length that a record is for; it is for a power of two of each.
_LEAST = 16


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a forward reads. Shapes: ids and positions (rows,), on the device."""

    ids: torch.Tensor
    positions: torch.Tensor
    layout: Layout


@dataclass(frozen=True, slots=True)
class _Recorded:
    inputs: Inputs
    repeat: Callable[[], None]
    result: torch.Tensor


class Graphs:
    """The recorded forwards of one computation; a result holds until the next call."""

    def __init__(self, compute: Compute, record: Record) -> None:
        self._compute = compute
        self._record = record
        self._known: dict[tuple[int, int, int], _Recorded | None] = {}

    @classmethod
    def wanted(cls, compute: Compute, device: torch.device, dtype: torch.dtype) -> Graphs | None:
        """None on a processor, in float32, or where they are turned off."""
        is_half = dtype in {torch.float16, torch.bfloat16}
        if device.type != "cuda" or not is_half or os.environ.get(_VARIABLE) == "0":
            return None
        return cls(compute, recorder())

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether some forward could not be recorded."""
        failed = None in self._known.values()
        return ("CUDA graphs could not be recorded for all packs",) if failed else ()

    def run(self, inputs: Inputs, n_rows: int) -> torch.Tensor:
        """As the computation itself, of a pack that has `n_rows`, where that number is fixed."""
        edges = inputs.layout.edges
        if edges is None or len(inputs.ids) != n_rows:
            return self._compute(inputs)
        key = n_rows, _power_of_two(len(edges)), _power_of_two(inputs.layout.longest)
        if key not in self._known:
            self._known[key] = self._try_to_record(inputs, key)
        known = self._known[key]
        if known is None:
            return self._compute(inputs)
        _fill(known.inputs, inputs)
        known.repeat()
        return known.result

    def _try_to_record(self, inputs: Inputs, key: tuple[int, int, int]) -> _Recorded | None:
        _, n_edges, longest = key
        ids, positions = torch.empty_like(inputs.ids), torch.empty_like(inputs.positions)
        edges = torch.zeros(n_edges, dtype=torch.int32, device=ids.device)
        own = Inputs(ids, positions, Layout((), edges, longest))
        _fill(own, inputs)
        self._compute(own)  # kernels are loaded, and memory found to suffice, outside the record
        try:
            return _Recorded(own, *self._record(lambda: self._compute(own)))
        except RuntimeError:  # of torch: each operation that cannot be recorded has its own text
            return None


def recorder() -> Record:
    """See `Record`; of a card, with one pool of memory for all that it records."""
    pools: list[Any] = []  # Any: a handle, of a type that is torch's own

    def record(work: Callable[[], torch.Tensor]) -> tuple[Callable[[], None], torch.Tensor]:
        if not pools:
            pools.append(torch.cuda.graph_pool_handle())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pools[0], capture_error_mode="thread_local"):
            result = work()
        return graph.replay, result

    return record


def _fill(own: Inputs, given: Inputs) -> None:
    """Copy a pack's inputs to those of a record; sequences that it lacks are empty."""
    own.ids.copy_(given.ids)
    own.positions.copy_(given.positions)
    edges, known = own.layout.edges, given.layout.edges
    if edges is not None and known is not None:
        edges[: len(known)].copy_(known)
        edges[len(known) :].copy_(known[-1:].expand(len(edges) - len(known)))


def _power_of_two(number: int) -> int:
    """The least one that is not below `number` and `_LEAST`."""
    return 1 << (max(number, _LEAST) - 1).bit_length()
