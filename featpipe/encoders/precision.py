"""Devices by name (``cpu``, ``cuda:i``), and the precision that suits each and each model.

Guarantee: ``auto`` stays in float32 for a model whose vectors in ``mixed`` were found to be less
than `LEAST_COSINE` like those in float32, on texts of the documents themselves. That is measured by
the workers that compute the first texts, and remembered per weights, arithmetic and machine.

Imports torch only to measure or to find a device; uses CUDA only when a CUDA device is asked for.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from featpipe import user_cache
from featpipe.encoders.fingerprint import digest_text, remember_digests_in
from featpipe.encoders.processor import describe_processor
from featpipe.errors import MissingExtra, UnknownDevice, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    import torch
    from numpy.typing import NDArray

    from featpipe.encoders.linear import Linear
    from featpipe.encoders.spec import Spec

Resolved = Literal["exact", "mixed", "approx"]
_PRECISIONS: dict[str, Resolved] = {"exact": "exact", "mixed": "mixed", "approx": "approx"}

_CUDA = re.compile(r"cuda(:\d+)?")

#: Instructions that multiply bf16, on x86 and on ARM.
_BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})

#: ``auto`` becomes ``mixed`` where bf16 is at least this much faster than float32.
WORTHWHILE = 1.3

#: ``auto`` stays ``exact`` where a text's vector in ``mixed`` has a smaller cosine to its vector in
#: float32. Of BERT's kin the least one is .99994 (300 texts, built-in model) to .99997 (bge-small).
LEAST_COSINE = 0.9999

#: A cosine found on fewer texts is not remembered.
_FEW_TEXTS = 16


def find_device(name: str) -> torch.device:
    """The torch device called `name`.

    Raises:
        UnknownDevice: not a device's name, or not in this machine.
    """
    import torch

    if name == "cpu":
        return torch.device("cpu")
    if not _CUDA.fullmatch(name):
        raise UnknownDevice(f"device {name!r} is not understood", hint='"cpu" or "cuda:0"')
    if not torch.cuda.is_available():
        raise UnknownDevice(f"{name}: this machine has no CUDA device that torch can use")
    number = int(name.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        raise UnknownDevice(f"{name}: this machine has {torch.cuda.device_count()} CUDA device(s)")
    return torch.device("cuda", number)


@contextmanager
def running_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads of this process inside the block."""
    import torch

    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if before != count:
            torch.set_num_threads(before)


def resolve_precision(asked: str, *, device: str = "cpu") -> Resolved:
    """A stated precision stays; ``auto`` becomes ``mixed`` where that is >= 1.3x as fast.

    The measurement (about 50 ms, and torch's import) is made once per machine and torch version
    and kept on disk, so that a later run imports no torch.

    Raises:
        UsageError: another word.
        MissingExtra: torch is needed to measure, and not installed.
    """
    known = find_precision(asked, device=device)
    if known is not None:
        return known
    found: Resolved = "mixed" if measure_bf16_gain() >= WORTHWHILE else "exact"
    memo = _memo_file()
    if memo is not None:
        with suppress(OSError):  # measured again next time
            user_cache.keep(memo, found.encode("ascii"))
    return found


def find_precision(asked: str, *, device: str = "cpu") -> Resolved | None:
    """As `resolve_precision`, without measuring: None where ``auto`` was not measured here yet.

    A processor without bf16 instructions needs no measurement. Imports no torch.
    """
    known = _PRECISIONS.get(asked)
    if known is not None:
        return known
    if asked != "auto":
        raise UsageError(f"precision {asked!r} is none of {', '.join(_PRECISIONS)}, auto")
    if device != "cpu":
        return "mixed"
    if _lacks_bf16():
        return "exact"
    memo = _memo_file()
    try:
        return _PRECISIONS.get(memo.read_text("ascii")) if memo is not None else None
    except (OSError, ValueError):
        return None


def can_compute(precision: str, device: str) -> bool:
    """Whether `device` has the instructions for a resolved precision. Imports no torch."""
    return precision != "mixed" or device != "cpu" or not _lacks_bf16()


def find_least_cosine(spec: Spec) -> float | None:
    """The least cosine of vectors of this spec to those in float32, as found on this machine.

    None where it was not measured yet. Imports no torch.
    """
    memo = _memo_file(_identify(spec))
    try:
        return float(memo.read_text("ascii")) if memo is not None else None
    except (OSError, ValueError):
        return None


def is_coarse(spec: Spec) -> bool:
    """Whether vectors of this spec were found to be too unlike those in float32."""
    least = find_least_cosine(spec) if spec["precision"] == "mixed" else None
    return least is not None and least < LEAST_COSINE


def keep_least_cosine(spec: Spec, cosines: NDArray[np.float64]) -> None:
    """Remember the least of some texts' cosines, unless they are few or an earlier one is less."""
    memo = _memo_file(_identify(spec))
    if memo is None or len(cosines) < _FEW_TEXTS:
        return
    least = float(cosines.min())
    earlier = find_least_cosine(spec)
    with suppress(OSError):  # measured again next time
        user_cache.keep(memo, repr(least if earlier is None else min(least, earlier)).encode())


def _identify(spec: Spec) -> str:
    """The parts of a spec that decide the rounding, so that an encoder and a tagger share them."""
    parts = ("architecture", "weights", "config", "arithmetic", "version")
    return " ".join(str(spec[part]) for part in parts)


def measure_bf16_gain(*, threads: int = 1) -> float:
    """Speed of the packed forward's linear layer in bf16 over that in float32; best of 5 runs."""
    import torch

    from featpipe.encoders.linear import make_linear

    weight = torch.randn(1024, 768) / 32
    bias = torch.zeros(1024)
    x = torch.randn(256, 768)
    seconds: dict[torch.dtype, float] = {}
    with running_threads(threads), torch.inference_mode():
        for dtype in (torch.float32, torch.bfloat16):
            linear = make_linear([weight], [bias], dtype=dtype, device=torch.device("cpu"))
            given = x.to(dtype)
            linear(given)
            seconds[dtype] = min(_time(linear, given) for _ in range(5))
    return seconds[torch.float32] / seconds[torch.bfloat16]


def _time(linear: Linear, x: torch.Tensor) -> float:
    started = time.perf_counter()
    linear(x)
    return time.perf_counter() - started


def _memo_file(of_model: str = "") -> Path | None:
    from importlib.metadata import PackageNotFoundError, version

    if remember_digests_in() is None:
        return None
    try:
        torch_version = version("torch")
    except PackageNotFoundError as error:
        raise MissingExtra(
            "computing vectors needs torch, which is not installed", hint="pip install torch"
        ) from error
    return user_cache.folder("precision") / digest_text(
        f"{describe_processor()} {torch_version}{of_model}"
    )


def _lacks_bf16() -> bool:
    """Whether the processor lists its instructions, and none of them multiplies bf16."""
    words = set(describe_processor().split())
    return bool(words & {"flags", "Features"}) and not words & _BF16_FLAGS
