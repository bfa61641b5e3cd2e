"""Copies between the processor and a card that run beside the computation.

Each direction has its own stream, so that a copy waits neither for the other direction nor for the
computation; events order them where one needs the other's data. The host's memory is pinned and
comes from torch's pool, which reuses a block once its copy is over: a ring that grows to the bytes
in flight. Memory on the card is marked as used by both streams, so it is not reused before the
later one is done.

Events also tell how long the card took for each pack. On a processor nothing is copied, and no time
is taken.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np
    import numpy.typing as npt

    Rows = npt.NDArray[np.float32]

CPU = torch.device("cpu")


def send(array: npt.NDArray[np.generic], device: torch.device) -> torch.Tensor:
    """A copy of `array` on `device` for the computation that follows; does not block."""
    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor
    stream = _stream(device, "to the card")
    with torch.cuda.stream(stream):
        there = tensor.pin_memory().to(device, non_blocking=True)
    computing = torch.cuda.current_stream(device)
    computing.wait_stream(stream)
    there.record_stream(computing)
    return there


def mark(device: torch.device) -> torch.cuda.Event | None:
    """The point in the card's work that what was sent off until now leads to; None without card."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch left it unannotated
    event.record(torch.cuda.current_stream(device))
    return event


def computing_first(device: torch.device) -> AbstractContextManager[object]:
    """What is sent off within neither waits for what the card was given before, nor follows it.

    The card prefers it. Only of data that are on the host, or are sent within.
    """
    if device.type != "cuda":
        return nullcontext()
    return torch.cuda.stream(_stream(device, "first"))


class Arrival:
    """Rows on their way from the device; the copy starts as soon as they are computed.

    Args:
        rows: as computed, perhaps not yet.
        begun: the `mark` before their computation.

    """

    def __init__(self, rows: torch.Tensor, begun: torch.cuda.Event | None = None) -> None:
        self._rows = rows
        self._begun = begun
        self._computed = mark(rows.device)
        self._event: torch.cuda.Event | None = None
        if rows.is_cuda:
            stream = _stream(rows.device, "from the card")
            stream.wait_stream(torch.cuda.current_stream(rows.device))
            with torch.cuda.stream(stream):
                self._rows = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
                self._rows.copy_(rows, non_blocking=True)
                self._event = stream.record_event()
            rows.record_stream(stream)

    def take(self) -> Rows:
        """Wait until the rows are here."""
        if self._event is not None:
            self._event.synchronize()
        rows: Rows = self._rows.numpy()
        return rows

    @property
    def card_s(self) -> float:
        """Seconds from the first to the last operation of the card for them, once they are here."""
        if self._begun is None or self._computed is None:
            return 0.0
        return float(self._begun.elapsed_time(self._computed)) / 1000


@lru_cache
def _stream(device: torch.device, purpose: str) -> torch.cuda.Stream:
    """One per card and purpose, for the life of the process."""
    priority = -1 if purpose == "first" else 0
    return torch.cuda.Stream(device, priority)  # type: ignore[no-untyped-call]  # torch left it unannotated
