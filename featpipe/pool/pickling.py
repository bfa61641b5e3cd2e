"""Pickling for another process, with errors that name the path to the part that cannot be sent.

The error of pickling itself is only "cannot pickle '_thread.lock' object". On failure the object is
pickled a second time by a tracer that keeps the chain of objects being saved, and the chain is
written as a Python expression: ``task['opts'].cache``.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import types
from typing import TYPE_CHECKING

from featpipe.errors import CannotTravel
from featpipe.pool.payloads import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def dumps(thing: object, name: str, buffers: list[pickle.PickleBuffer] | None = None) -> bytes:
    """Pickle ``thing``, called ``name`` in the error; with ``buffers``, as `payloads.dump` does.

    Raises:
        CannotTravel: with the path to the part that cannot be sent, and the cure.
    """
    try:
        data = pickle.dumps(thing, 5) if buffers is None else dump(thing, buffers)
    except Exception as error:
        raise explain(thing, name, error) from error
    # Marks of objects that pickle here and cannot be loaded, or do harm, in a child. Both are rare
    # words, so the common case pays nothing for the second pass.
    if b"__main__" in data or (b"torch" in data and b"cuda" in data):
        _refuse_unloadable(thing, name)
    return data


def explain(thing: object, name: str, error: BaseException) -> CannotTravel:
    """The error for a ``thing`` that cannot be pickled."""
    tracer = _Tracer()
    with contextlib.suppress(Exception):  # it fails again, and the tracer knows where
        tracer.dump(thing)
    if not tracer.failed_at:
        return CannotTravel(f"{name} cannot be sent to another process: {error}")
    return _error_at(tracer.failed_at, name, str(error))


def _refuse_unloadable(thing: object, name: str) -> None:
    tracer = _Tracer(is_refused=_is_unloadable)
    try:
        tracer.dump(thing)
    except _Refused:
        raise _error_at(tracer.failed_at, name, "it would not arrive") from None


def _is_unloadable(thing: object) -> bool:
    if isinstance(thing, (type, types.FunctionType)):
        return thing.__module__ == "__main__"
    return _package_of(thing) == "torch" and bool(getattr(thing, "is_cuda", False))


class _Refused(Exception):
    """An object was met that pickles and cannot be loaded in a child."""


class _Tracer(pickle._Pickler):
    """The pure-Python pickler: it calls its own `save` for every object."""

    def __init__(self, is_refused: Callable[[object], bool] | None = None) -> None:
        super().__init__(io.BytesIO(), 5, buffer_callback=lambda _: None)
        self._is_refused = is_refused
        self._stack: list[object] = []
        self.failed_at: list[object] = []

    def save(self, obj: object, save_persistent_id: bool = True) -> None:
        self._stack.append(obj)
        try:
            self._refuse(obj)
            super().save(obj, save_persistent_id)  # type: ignore[misc]  # not in typeshed
        except BaseException:
            # The innermost save sees the failure first.
            self.failed_at = self.failed_at or list(self._stack)
            raise
        finally:
            self._stack.pop()

    def _refuse(self, thing: object) -> None:
        if self._is_refused is not None and self._is_refused(thing):
            raise _Refused


def _error_at(chain: Sequence[object], name: str, reason: str) -> CannotTravel:
    culprit = chain[-1]
    kind = type(culprit)
    class_name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return CannotTravel(
        f"{name}{_path_of(chain)} cannot be sent to another process: {class_name} {_short(culprit)}"
        f" ({reason})",
        hint=_hint_for(culprit),
    )


def _path_of(chain: Sequence[object]) -> str:
    """The chain of saved objects as an expression.

    The tuples and dicts that ``__reduce__`` makes on the way have no name of their own: their
    members are looked up in the last object that has one.
    """
    path = ""
    owner = chain[0]
    anonymous: list[object] = []
    for child in chain[1:]:
        step = _step(owner, child)
        if step is None and isinstance(child, (tuple, dict, list)):
            anonymous.append(child)
            continue
        for container in reversed(anonymous):
            step = step if step is not None else _step(container, child)
        if step is None:
            step = f".<{type(child).__name__}>"
        path += step
        owner, anonymous = child, []
    return path


def _step(owner: object, child: object) -> str | None:
    for name, member in _members(owner):
        if member is child:
            return name
    return None


def _members(owner: object) -> Iterator[tuple[str, object]]:
    yield from _elements(owner)
    state = getattr(owner, "__dict__", None)
    if isinstance(state, dict) and not isinstance(owner, type):
        for key, value in state.items():
            yield f".{key}", value
    for name in ("default_factory", "func", "__self__", "__func__", *_slots_of(owner)):
        value = getattr(owner, name, None)
        if value is not None:
            yield f".{name}", value


def _elements(owner: object) -> Iterator[tuple[str, object]]:
    if isinstance(owner, dict):
        for key, value in owner.items():
            yield f"[{key!r}]", value
            yield f".<key {key!r}>", key
    elif isinstance(owner, (list, tuple)):
        for place, value in enumerate(owner):
            yield f"[{place}]", value
    elif isinstance(owner, (set, frozenset)):
        for value in owner:
            yield ".<element>", value


def _slots_of(owner: object) -> Iterator[str]:
    for kind in type(owner).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def _hint_for(culprit: object) -> str | None:
    return next((hint for applies, hint in _HINTS if applies(culprit)), None)


def _short(thing: object) -> str:
    try:
        return repr(thing)[:80]
    except Exception:  # a foreign class's repr may raise anything; the path matters more
        return "(no repr)"


def _is_lambda(thing: object) -> bool:
    return isinstance(thing, types.FunctionType) and thing.__name__ == "<lambda>"


def _is_in_main(thing: object) -> bool:
    return getattr(thing, "__module__", None) == "__main__" and isinstance(
        thing, (type, types.FunctionType)
    )


def _is_lock(thing: object) -> bool:
    kinds = {"lock", "rlock", "condition", "semaphore", "local", "_local"}
    return type(thing).__name__.lower().removeprefix("_thread.") in kinds


def _package_of(thing: object) -> str:
    """Of its class."""
    return type(thing).__module__.partition(".")[0]


_HINTS: tuple[tuple[Callable[[object], bool], str], ...] = (
    (
        lambda thing: _package_of(thing) == "h5py",
        "pass the path of the file and the name of the group; the worker opens it itself",
    ),
    (
        lambda thing: _package_of(thing) == "torch",
        "send it as a CPU array: .detach().cpu().numpy()",
    ),
    (
        _is_lambda,
        "use a function of a module (for a defaultdict: a named function or functools.partial)",
    ),
    (_is_in_main, "workers never import the program's main module: move it to a module"),
    (
        lambda thing: isinstance(thing, types.FunctionType),
        "move the function to the top level of a module",
    ),
    (lambda thing: isinstance(thing, type), "move the class to the top level of a module"),
    (
        lambda thing: isinstance(thing, (types.GeneratorType, types.CoroutineType)),
        "send the list, or the arguments that make it",
    ),
    (_is_lock, "leave it out in __getstate__"),
    (lambda thing: isinstance(thing, types.ModuleType), "send the module's name"),
    (lambda thing: hasattr(thing, "fileno"), "send the path; the worker opens the file itself"),
)
