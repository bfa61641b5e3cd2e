"""The processor, as it describes itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def lists_instructions(name: str) -> bool:
    """Whether the processor lists these instructions, such as ``amx_bf16``."""
    return name in describe_processor().split()


def describe_processor() -> str:
    """The processor's model and instruction sets."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n")[0].splitlines()
    except OSError:
        import platform

        return platform.processor()
    facts = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return "\n".join(facts)
