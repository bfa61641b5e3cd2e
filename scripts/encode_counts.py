"""How often each text's vector was computed, by a log that every encode worker writes to.

See `encode_log/sitecustomize.py`, which processes load that are started with `log_environment`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: To be on PYTHONPATH of the processes.
LOG_PATH = Path(__file__).resolve().parent / "encode_log"
LOG_VARIABLE = "FEATPIPE_ENCODE_LOG"
#: While the file it names is there, encode workers stop after a batch.
HOLD_VARIABLE = "FEATPIPE_ENCODE_HOLD"


def n_computed(log: Path) -> int:
    """Vectors computed so far."""
    return log.stat().st_size // 16 if log.exists() else 0


def count_twice(log: Path) -> tuple[int, int]:
    """(distinct texts, computations beyond the first of each)."""
    keys = np.fromfile(log, np.uint8).reshape(-1, 16).view("V16").ravel()
    n_distinct = len(np.unique(keys))
    return n_distinct, len(keys) - n_distinct
