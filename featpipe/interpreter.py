"""The Python interpreters this package starts, and where they look for modules.

Guarantee: a child never imports a file only because it lies in the working folder, which may be a
folder of received documents with a ``pickle.py`` in it. ``-P`` keeps the folder of the moment off
the child's path; `module_path` hands over the parent's path without entries that mean the working
folder, unless the program itself has its modules there.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from featpipe.errors import PoolBroken

#: Exit code of one whose card computes no more for it; see `featpipe.encoders.lost_card`.
EXIT_CARD_LOST = 72

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from subprocess import CompletedProcess


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return os.sep


_AT_START = _working_folder()

#: Working folders that hold modules of the program; kept when the program goes elsewhere.
_own_folders: dict[str, None] = {}


def interpreter() -> str:
    """The Python that children run; FEATPIPE_PYTHON overrides.

    In an embedded interpreter (uwsgi ...) ``sys.executable`` is the host program.

    Raises:
        PoolBroken: none is known.
    """
    chosen = os.environ.get("FEATPIPE_PYTHON")
    if chosen:
        return chosen
    candidates = (
        sys.executable,
        getattr(sys, "_base_executable", None),
        str(Path(sys.exec_prefix) / "bin" / "python3"),
    )
    for candidate in candidates:
        if candidate and Path(candidate).name.lower().startswith(("python", "pypy")):
            return candidate
    raise PoolBroken(
        f"this process runs {sys.executable!r}, which is not a Python interpreter",
        hint="set FEATPIPE_PYTHON to the python of this environment",
    )


def command(code: str, *arguments: str) -> list[str]:
    """The command line that runs ``code`` with the parent's own -W, -X, -O ... options."""
    import subprocess

    # As multiprocessing hands them on.
    flags = getattr(subprocess, "_args_from_interpreter_flags", None)
    own = list(flags()) if flags is not None else []
    return [interpreter(), "-P", *own, "-c", code, *arguments]


def environment() -> dict[str, str]:
    """The parent's; of PYTHONPATH the entries that `module_path` holds, made absolute."""
    found = dict(os.environ)
    path = set(map(os.path.realpath, module_path()))
    entries = [str(Path(_AT_START, entry)) for entry in _python_path()]
    entries = [entry for entry in entries if os.path.realpath(entry) in path]
    if entries:
        found["PYTHONPATH"] = os.pathsep.join(entries)
    else:
        found.pop("PYTHONPATH", None)
    return found


def module_path(wanted: Iterable[str] = ()) -> list[str]:
    """sys.path for a child: absolute, with the featpipe that is running.

    An entry that means the working folder ('', a relative one, what ``python -m`` puts first) is
    left out, unless a module of this process, or one of ``wanted``, is from there.

    Args:
        wanted: names of modules that the child is told to import.
    """
    named = {os.path.realpath(entry) for entry in _python_path() if Path(entry).is_absolute()}
    doubtful = {os.path.realpath(folder) for folder in (_AT_START, _working_folder())} - named
    path: dict[str, None] = {}
    for entry in map(os.fspath, sys.path):
        if Path(entry).is_absolute() and os.path.realpath(entry) not in doubtful:
            path[entry] = None
        else:
            places = {os.path.realpath(Path(at, entry)) for at in (_AT_START, _working_folder())}
            _own_folders.update(dict.fromkeys(places & _folders_in_use(wanted)))
            path.update(_own_folders)
    path.setdefault(str(Path(__file__).absolute().parents[1]))
    return list(path)


def run_python(code: str, *arguments: str, timeout_s: float) -> CompletedProcess[str]:
    """Run ``code`` in an interpreter that finds the modules this one finds.

    Raises:
        subprocess.TimeoutExpired: it was killed after ``timeout_s``.
    """
    import subprocess

    code = f"import sys\nsys.path[:] = {module_path()!r}\n{code}"
    return subprocess.run(  # noqa: S603  # our own interpreter and program
        command(code, *arguments),
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def _python_path() -> list[str]:
    value = os.environ.get("PYTHONPATH")
    return value.split(os.pathsep) if value and not sys.flags.ignore_environment else []


def _folders_in_use(wanted: Iterable[str]) -> set[str]:
    """Folders that modules of this process, or the wanted ones, were found in."""
    return {os.path.realpath(folder) for folder in {*_folders_of_modules(), *_folders_of(wanted)}}


def _folders_of_modules() -> Iterator[str]:
    """Of each top-level module the folder it was found in. Thousands of modules: no `Path` here."""
    for name, module in list(sys.modules.items()):
        if "." in name or not isinstance(module, ModuleType):
            continue
        # Not by getattr, which would load a lazy module.
        file = ModuleType.__getattribute__(module, "__dict__").get("__file__")
        if not isinstance(file, str) or not file.startswith(os.sep):  # torch has an "_ops.py"
            continue
        folder, _, base = file.rpartition(os.sep)
        is_package = base.startswith("__init__.") and name != "__main__"
        yield (folder.rpartition(os.sep)[0] if is_package else folder) or os.sep


def _folders_of(wanted: Iterable[str]) -> Iterator[str]:
    for name in wanted:
        top, *rest = name.partition(":")[0].split(".")
        try:
            spec = find_spec(top)
        except (ImportError, ValueError):  # the child will give the reason
            continue
        if spec is None:
            continue
        if spec.origin is not None and top not in sys.modules:
            is_package = spec.submodule_search_locations is not None
            yield str(Path(spec.origin).parents[1 if is_package else 0])
        if spec.origin is None:
            # Without an __init__.py every folder of that name is part of the package: the one
            # that has the wanted module counts.
            for place in spec.submodule_search_locations or ():
                if rest and _has_module(Path(place, *rest)):
                    yield str(Path(place).parent)


def _has_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
