"""Whether a card has the kernels of `card_kernels`, which do in one step what takes torch several.

Triton, which torch's builds for cards bring along, compiles them at the first use, with a C
compiler for the call from Python; what it made is kept in featpipe's own folder of the user. Where
it cannot, torch's kernels are used, and `why_not_fused` says why.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec

import torch

from featpipe import user_cache

_HALF = frozenset({torch.float16, torch.bfloat16})

#: First compute capability whose matrix units Triton uses.
_FIRST = (8, 0)


def is_fused(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether layers of this dtype on this device use the kernels."""
    return dtype in _HALF and has_kernels(device)


def has_kernels(device: torch.device) -> bool:
    """Whether this device is a card that has the kernels."""
    return device.type == "cuda" and not why_not_fused(device)


def describe_missing(device: torch.device, dtype: torch.dtype) -> tuple[str, ...]:
    """A note where such layers would use the kernels and cannot."""
    reason = why_not_fused(device) if device.type == "cuda" and dtype in _HALF else ""
    return (f"the card computes by torch's own, slower kernels: {reason}",) if reason else ()


@lru_cache
def why_not_fused(device: torch.device) -> str:
    """Why this card does not have the kernels; empty where a first use has shown that it does."""
    if find_spec("triton") is None:
        return "triton is not installed"
    if torch.cuda.get_device_capability(device) < _FIRST:
        return "the card is older than compute capability 8.0"
    os.environ.setdefault("TRITON_CACHE_DIR", str(user_cache.folder("triton")))
    try:
        user_cache.make_folder(user_cache.folder("triton"))
        from featpipe.encoders.card_kernels import add_norm

        x = torch.ones(2, 16, device=device, dtype=torch.float16)
        norm = torch.ones(16, device=device), torch.ones(16, device=device)
        add_norm(x, x, norm, 1e-12, torch.float16)
    except Exception as error:  # of a compiler, a linker, a driver; the reason is told
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""
