"""What can travel to another process, and, when something cannot, where it sits and what to do.

Pickling says "cannot pickle '_thread.lock' object" and nothing else. On failure the object is
pickled a second time by a tracer that remembers which object inside which it was saving, and the
chain is written as the expression a reader would type: ``task['opts'].cache``.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import types

from featpipe.errors import CannotTravel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def dumps(
    thing: object, name: str, buffer_callback: Callable[[pickle.PickleBuffer], object] | None = None
) -> bytes:
    """Pickle ``thing``, called ``name`` in the error.

    Raises:
        CannotTravel: with the path to the part that cannot be sent, and the cure.
    """
    try:
        data = pickle.dumps(thing, 5, buffer_callback=buffer_callback)
    except Exception as error:
        raise explain(thing, name, error) from error
    # The marks of what pickles well here and fails, or does harm, over there. Both are rare words,
    # so the second look costs nothing in the common case.
    if b"__main__" in data or (b"torch" in data and b"cuda" in data):
        _refuse_strangers(thing, name)
    return data


def explain(thing: object, name: str, error: BaseException) -> CannotTravel:
    """The error that says why ``thing`` cannot be pickled."""
    tracer = _Tracer()
    with contextlib.suppress(Exception):  # it fails again: we want to know where
        tracer.dump(thing)
    if not tracer.failed_at:
        return CannotTravel(f"{name} cannot be sent to another process: {error}")
    return _complaint(tracer.failed_at, name, str(error))


def _refuse_strangers(thing: object, name: str) -> None:
    tracer = _Tracer(is_stranger=_is_stranger)
    try:
        tracer.dump(thing)
    except _Stranger:
        raise _complaint(tracer.failed_at, name, "it would not arrive") from None


def _is_stranger(thing: object) -> bool:
    if isinstance(thing, (type, types.FunctionType)):
        return thing.__module__ == "__main__"
    return type(thing).__module__.partition(".")[0] == "torch" and bool(
        getattr(thing, "is_cuda", False)
    )


class _Stranger(Exception):
    """Something was met that pickles and must not travel."""


# The pure-Python pickler calls its own save() for every object, which is what we listen to.
class _Tracer(pickle._Pickler):
    def __init__(self, is_stranger: Callable[[object], bool] | None = None) -> None:
        super().__init__(io.BytesIO(), 5, buffer_callback=lambda _: None)
        self._is_stranger = is_stranger
        self._stack: list[object] = []
        self.failed_at: list[object] = []

    def save(
        self, obj: object, save_persistent_id: bool = True
    ) -> None:  # the signature it overrides
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
        if self._is_stranger is not None and self._is_stranger(thing):
            raise _Stranger


def _complaint(chain: Sequence[object], name: str, reason: str) -> CannotTravel:
    culprit = chain[-1]
    kind = type(culprit)
    what = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return CannotTravel(
        f"{name}{_path_of(chain)} cannot be sent to another process: {what} {_short(culprit)}"
        f" ({reason})",
        hint=_cure_of(culprit),
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
        owner = child
        anonymous = [child] if child is getattr(owner, "__dict__", None) else []
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


def _cure_of(culprit: object) -> str | None:
    for recognises, cure in _CURES:
        if recognises(culprit):
            return cure
    return None


def _short(thing: object) -> str:
    try:
        return repr(thing)[:80]
    except Exception:  # a stranger's repr may do anything; the path matters more
        return "(no repr)"


def _is_lambda(thing: object) -> bool:
    return isinstance(thing, types.FunctionType) and thing.__name__ == "<lambda>"


def _lives_in_main(thing: object) -> bool:
    return getattr(thing, "__module__", None) == "__main__" and isinstance(
        thing, (type, types.FunctionType)
    )


def _is_lock(thing: object) -> bool:
    return type(thing).__name__.lower().removeprefix("_thread.") in {
        "lock",
        "rlock",
        "condition",
        "semaphore",
        "local",
        "_local",
    }


_CURES: tuple[tuple[Callable[[object], bool], str], ...] = (
    (
        lambda thing: type(thing).__module__.partition(".")[0] == "h5py",
        "pass the path of the file and the name of the group; the worker opens it itself",
    ),
    (
        lambda thing: type(thing).__module__.partition(".")[0] == "torch",
        "send it as a CPU array: .detach().cpu().numpy()",
    ),
    (
        _is_lambda,
        "use a function of a module (for a defaultdict: a named function or functools.partial)",
    ),
    (_lives_in_main, "workers never import the program's main module: move it to a module"),
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
