"""Which kernels run: numba's when it is installed, numpy's otherwise. Both give the same bits.

numba costs a process about half a second at its first kernel: it is imported only when asked for.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from featpipe.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

#: What numba reads in the working folder, when imported and at each compilation.
_CONFIGURATION = ".numba_config.yaml"

Backend = Literal["auto", "numba", "numpy"]


@cache
def has_numba() -> bool:
    """Whether numba could be imported; does not import it."""
    return importlib.util.find_spec("numba") is not None


@cache
def numba_runs() -> bool:
    """Whether numba can be imported; does import it.

    A numba that is older than numpy refuses to load: one warning, and numpy's kernels run.
    """
    if not has_numba():
        return False
    if "numba" not in sys.modules and Path(_CONFIGURATION).exists():
        warnings.warn(
            f"{Path(_CONFIGURATION).absolute()} would tell numba where to load compiled code from,"
            " so numpy's slower kernels run: start elsewhere, or set NUMBA_ variables instead",
            stacklevel=2,
        )
        return False
    try:
        _import_numba()
    except (ImportError, OSError, SystemError) as error:
        warnings.warn(
            f"numba is installed and does not load, so numpy's slower kernels run: {error}",
            stacklevel=2,
        )
        return False
    return True


def _import_numba() -> None:
    """Import it so that it never takes settings from the working folder, now or at a later call.

    Such a folder may hold received documents; numba's settings name a folder of pickles.
    """
    is_ours = "numba" not in sys.modules
    import numba

    if is_ours:
        numba.core.config._config_fname = os.devnull


def choose_backend(asked: Backend) -> Literal["numba", "numpy"]:
    """The backend to run.

    Raises:
        MissingExtra: numba was asked for by name and is not installed.
        UsageError: an unknown name.
    """
    if asked == "numpy":
        return "numpy"
    if asked not in {"auto", "numba"}:
        raise UsageError(f"unknown backend {asked!r}", hint="choose from auto, numba, numpy")
    if numba_runs():
        return "numba"
    if asked == "numba":
        raise MissingExtra(
            "numba is not installed, or does not load", hint="pip install 'featpipe[fast]'"
        )
    return "numpy"


class Backends:
    """Chooses kernels call by call: with ``"auto"``, numpy's until ``warm_up`` items are done.

    Safe between threads: a lost count only delays the change.
    """

    def __init__(self, asked: Backend, *, warm_up: int) -> None:
        self._asked = asked
        self._warm_up = warm_up
        self._n_done = 0
        if asked != "auto":
            choose_backend(asked)

    @property
    def current(self) -> Literal["numba", "numpy"]:
        """The backend the next call runs on."""
        if self._asked != "auto":
            return self._asked
        return "numba" if self._n_done >= self._warm_up and numba_runs() else "numpy"

    def count(self, n_items: int) -> None:
        """Add to the work done, in the unit of ``warm_up``."""
        self._n_done += n_items


def compiled(function: Callable[..., Any]) -> Any:  # noqa: ANN401  # numba's dispatcher is untyped
    """Compile for numba, kept on disk between processes where a place for it can be written.

    No fast-math and no contraction: every operation rounds as numpy's does. The GIL is released.
    """
    import numba

    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for numba's cache can be written: compile in each process
        return numba.njit(nogil=True)(function)
