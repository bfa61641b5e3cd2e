"""Sends packs through a trunk and falls back where a card is too small.

On a processor each thread computes whole packs: two threads over one pack would wait for each other
hundreds of times per layer. A single pack runs on as many threads as its size is worth, or on one
where bits depend on their number (`Trunk.needs_one_thread`).

Guarantees:

* A pack that does not fit the card's memory is halved until it does; a single sequence that does
  not fit is computed on the CPU. Nothing is skipped; `Forwarder.counts` reports both.
* On CUDA every pack has as many rows, so that the same kernels compute each: kernels are chosen by
  the number of rows, and other kernels round otherwise. Where memory ran out, packs are smaller.
* On CUDA the host stays ahead (`transfer`): a pack's ids are copied while the pack before it is
  computed, its rows while the next one is. `run` waits for the rows of a pack only after it sent
  off the next, `start` not before they are asked for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch

from featpipe.encoders.packing import plan_packs
from featpipe.encoders.precision import running_threads
from featpipe.encoders.transfer import CPU, Arrival, mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from featpipe.encoders.packing import Pack, Sequences
    from featpipe.encoders.tokens import Ints
    from featpipe.encoders.transfer import Rows
    from featpipe.encoders.trunk import Trunk

    Compute = Callable[[Trunk, Pack], torch.Tensor]

#: Tokens of a pack: large enough to fill the kernels, small enough for the processor's cache.
CPU_BUDGET = 4096
CUDA_BUDGET = 16384

#: Numbers in the hidden states (tokens times width) that are worth a thread: with fewer, waking it
#: takes as long as what it computes, and where the processors are busy all wait for it.
NUMBERS_A_THREAD = 12 * 384


class Forwarder:
    """Sends packs to one trunk and returns what is computed from each."""

    def __init__(self, trunk: Trunk) -> None:
        self._trunk = trunk
        self._on_cpu: Trunk | None = None
        self.n_halved = 0
        self.n_on_cpu = 0
        self._card_s = 0.0
        self._n_rows = 0 if trunk.device == CPU else CUDA_BUDGET

    @property
    def counts(self) -> dict[str, int]:
        """Number of fallbacks by kind, for the run record; kinds that did not occur are absent."""
        happened = {
            "packs were too large for the card and were halved": self.n_halved,
            "sequences did not fit the card and were computed on the CPU": self.n_on_cpu,
        }
        return {kind: n for kind, n in happened.items() if n}

    def take_card_s(self) -> float:
        """Seconds that the card computed for rows since the last call; 0 on a processor."""
        seconds, self._card_s = self._card_s, 0.0
        return seconds

    def run(
        self, sequences: Sequences, compute: Compute, *, threads: int = 1, only: Ints | None = None
    ) -> Iterator[tuple[Pack, Rows]]:
        """Yield (pack, rows) for every pack or part of one, in any order.

        Args:
            sequences: the sequences to compute.
            compute: called with a trunk and a pack, from several threads at a time; returns rows.
            threads: of the processor.
            only: numbers of the sequences to compute; all by default.

        Raises:
            torch.OutOfMemoryError: the CPU's memory is too small as well.
        """
        # Where bits depend on the pack, the packs must not depend on the number of threads.
        shares = threads if self._trunk.device == CPU and self._trunk.is_invariant else 1
        lengths = sequences.lengths_with_special
        if only is not None:
            lengths = lengths[only]
        plan = self._plan(lengths, shares)
        if only is not None:
            plan = [only[part] for part in plan]
        n_threads = min(shares, len(plan))
        if n_threads > 1:
            yield from self._run_in_threads(plan, sequences, compute, n_threads)
            return
        within = 1 if self._trunk.needs_one_thread else torch.get_num_threads()
        if shares > 1 and not self._trunk.needs_one_thread:
            worth = int(lengths.sum()) * self._trunk.width // NUMBERS_A_THREAD
            within = min(threads, max(1, worth))
        with running_threads(within):
            yield from self._run_one_by_one(plan, sequences, compute)

    def start(
        self, sequences: Sequences, compute: Compute, *, threads: int = 1
    ) -> Iterator[tuple[Pack, Rows]]:
        """As `run`; to a card all packs are sent off before this returns.

        Few sequences, then: what waits on the way to the card and back is not bounded here.
        """
        if self._trunk.device == CPU:
            return self.run(sequences, compute, threads=threads)
        plan = self._plan(sequences.lengths_with_special, shares=1)
        return self._take(list(self._send_off(plan, sequences, compute)))

    def _plan(self, lengths: Ints, shares: int) -> list[Ints]:
        budget = CPU_BUDGET if self._trunk.device == CPU else CUDA_BUDGET
        return plan_packs(lengths, budget=budget, shares=shares)

    def _run_one_by_one(
        self, plan: Sequence[Ints], sequences: Sequences, compute: Compute
    ) -> Iterator[tuple[Pack, Rows]]:
        waiting: list[tuple[Pack, Arrival]] = []
        for sent in self._send_off(plan, sequences, compute):
            waiting.append(sent)
            if len(waiting) > 1:
                yield from self._take([waiting.pop(0)])
        yield from self._take(waiting)

    def _send_off(
        self, plan: Sequence[Ints], sequences: Sequences, compute: Compute
    ) -> Iterator[tuple[Pack, Arrival]]:
        for numbers in plan:
            yield from self._try(numbers, sequences, compute)

    def _take(self, sent: Sequence[tuple[Pack, Arrival]]) -> Iterator[tuple[Pack, Rows]]:
        for pack, arrival in sent:
            rows = arrival.take()
            self._card_s += arrival.card_s
            yield pack, rows

    def _run_in_threads(
        self, plan: Sequence[Ints], sequences: Sequences, compute: Compute, n_threads: int
    ) -> Iterator[tuple[Pack, Rows]]:
        def run(numbers: Ints) -> tuple[Pack, Rows]:
            pack = sequences.pack(numbers)
            with torch.inference_mode():
                return pack, compute(self._trunk, pack).numpy()

        with (
            running_threads(1),  # each thread of the pool starts with this setting
            ThreadPoolExecutor(n_threads, "featpipe-pack") as threads,
        ):
            yield from threads.map(run, plan)

    def _try(
        self, numbers: Ints, sequences: Sequences, compute: Compute
    ) -> Iterator[tuple[Pack, Arrival]]:
        pack = sequences.pack(numbers, n_rows=self._n_rows)
        begun = mark(self._trunk.device)
        rows = self._compute_where_it_fits(pack, compute)
        if rows is not None:
            yield pack, Arrival(rows, begun)
            return
        torch.cuda.empty_cache()
        if self._n_rows and len(pack.ids) <= self._n_rows:
            self.n_halved += 1
            self._n_rows //= 2
            yield from self._try(numbers, sequences, compute)
            return
        if len(pack.sequences) == 1:
            yield pack, Arrival(self._compute_on_cpu(pack, compute))
            return
        self.n_halved += 1
        middle = len(pack.sequences) // 2
        for part in (pack.sequences[:middle], pack.sequences[middle:]):
            yield from self._try(part, sequences, compute)

    def _compute_where_it_fits(self, pack: Pack, compute: Compute) -> torch.Tensor | None:
        """None where a card's memory ran out.

        The error ends here: its traceback would keep the failed pack's tensors alive.
        """
        try:
            return compute(self._trunk, pack)
        except torch.OutOfMemoryError:
            if self._trunk.device == CPU:
                raise
            return None

    def _compute_on_cpu(self, pack: Pack, compute: Compute) -> torch.Tensor:
        self.n_on_cpu += 1
        if self._on_cpu is None:
            self._on_cpu = self._trunk.copy_to(device=CPU)
        return compute(self._on_cpu, pack)
