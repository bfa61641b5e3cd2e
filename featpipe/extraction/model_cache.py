"""Fitted fields, each fitted once per (template, samples, their inputs, code) and then read back.

They are files in the user's cache folder, one per field, named by its fingerprint and checked by a
hash. They are not beside the HDF5 file, whose folder may be read-only or hold documents.

Guarantees: a model is found only by the fingerprint of everything it was learned from and of the
code that learned it, so it is never stale; a damaged or foreign file is fitted again and replaced;
any number of processes may share the folder, which is held to a size and an age
(:class:`featpipe.user_cache.KeptFiles`); where it cannot be written, models are fitted in memory
and one warning is logged. Reading a file executes nothing.
"""

from __future__ import annotations

import ast
from functools import cache
from hashlib import blake2b
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from cachetools import LRUCache

from featpipe import user_cache
from featpipe.extraction.scoring.model_file import UnreadableModel, pack_model, unpack_model
from featpipe.extraction.scoring.pretrained import SHIPPED
from featpipe.fork_lock import make_lock
from featpipe.user_cache import KeptFiles

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, MutableMapping

    from featpipe.extraction.scoring.field_model import FieldModel

logger = getLogger(__name__)

#: Models in memory, about a megabyte each; the ones used longest ago are read back when needed.
_MOST_IN_MEMORY = 512
#: The folder is swept after the first model written, and then after every so many.
_SWEEP_EVERY = 256
#: Folders of the code that fits and scores.
_CODE = ("values", "names", "tables", "statements", "scoring")


class ModelCache:
    """Fitted fields by fingerprint. Any thread may use it.

    Args:
        folder: of the files; None to keep models in ``memory`` alone.
        memory: models in memory by fingerprint; by default the most recently used ones.

    """

    def __init__(
        self, folder: Path | None, memory: MutableMapping[str, FieldModel] | None = None
    ) -> None:
        self._folder = None if folder is None else KeptFiles(folder)
        self._lock = make_lock()
        self._models = LRUCache(_MOST_IN_MEMORY) if memory is None else memory
        self._busy: dict[str, threading.Lock] = {}
        self._is_writable, self._n_written = folder is not None, 0
        self.n_fitted = 0
        """Fields fitted by this object, not read from a file."""

    def get(self, fingerprint: str, fit: Callable[[], FieldModel]) -> FieldModel:
        """The model of a field; fitted at most once, however many threads ask at once."""
        with self._lock:
            model = self._models.get(fingerprint)
            if model is not None:
                return model
            busy = self._busy.setdefault(fingerprint, make_lock())
        with busy:
            with self._lock:
                model = self._models.get(fingerprint)
            if model is None:
                model = self._read(fingerprint) or self._fit(fingerprint, fit)
                self._remember(fingerprint, model)
        return model

    def has(self, fingerprint: str) -> bool:
        """Whether a field is fitted: in memory, or as a file, which is not checked here."""
        with self._lock:
            is_here = fingerprint in self._models
        return is_here or (
            self._folder is not None and self._folder.file(_name_of(fingerprint)).is_file()
        )

    def _fit(self, fingerprint: str, fit: Callable[[], FieldModel]) -> FieldModel:
        model = fit()
        with self._lock:
            self.n_fitted += 1
        self._write(fingerprint, model)
        # As read from a file, so that every process gets the same bits.
        return unpack_model(pack_model(model, ""), "")

    def _remember(self, fingerprint: str, model: FieldModel) -> None:
        with self._lock:
            self._models[fingerprint] = model
            self._busy.pop(fingerprint, None)

    def _read(self, fingerprint: str) -> FieldModel | None:
        if self._folder is None:
            return None
        name = _name_of(fingerprint)
        try:
            return unpack_model(self._folder.read(name), fingerprint)
        except FileNotFoundError:
            return None
        except (OSError, UnreadableModel) as error:
            logger.warning("%s is fitted again: %s", self._folder.file(name), error)
            return None

    def _write(self, fingerprint: str, model: FieldModel) -> None:
        if self._folder is None or not self._is_writable:
            return
        try:
            self._folder.write(_name_of(fingerprint), pack_model(model, fingerprint))
        except OSError as error:
            self._is_writable = False
            logger.warning("fitted templates are not kept: %s", error)
            return
        with self._lock:
            is_due = self._n_written % _SWEEP_EVERY == 0
            self._n_written += 1
        if is_due:
            self._folder.sweep()


def _name_of(fingerprint: str) -> str:
    return f"{fingerprint}-{code_version()}"


def default_folder() -> Path:
    """``fitted`` in the user's cache folder."""
    return user_cache.folder("fitted")


@cache
def code_version() -> str:
    """12 hex digits over the code that fits and scores, and what it ships: others fit anew."""
    folders = (Path(__file__).with_name(name) for name in _CODE)
    code = hash_code(file for folder in folders for file in sorted(folder.glob("*.py")))
    return blake2b(code.encode() + SHIPPED.read_bytes(), digest_size=6).hexdigest()


def hash_code(files: Iterable[Path]) -> str:
    """12 hex digits over names and syntax trees of source files.

    Docstrings, comments and layout have no effect.
    """
    digest = blake2b(digest_size=6)
    for file in files:
        tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = [line for line in node.body if not _is_docstring(line)]
        digest.update(f"{file.name}\0{ast.dump(tree)}\0".encode())
    return digest.hexdigest()


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
