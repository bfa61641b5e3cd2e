"""Every error featpipe raises on purpose, as one tree.

    FeatpipeError
    ├── UsageError                  the caller's arguments are wrong (exit code 2)
    │   ├── MissingDocuments        a path that does not exist, a folder without documents
    │   ├── UnknownDevice           a device this machine does not have
    │   ├── MissingExtra            an optional dependency is needed and not installed
    │   └── TemplateError           a template that cannot be used; names file, field and line
    ├── DocumentError               one document cannot be used; the others go on (quarantine)
    │   ├── UnreadableDocument      the bytes cannot be read: permissions, encoding, damage
    │   ├── UnsupportedDocument     no loader for this kind of file
    │   ├── EmptyDocument           read well, and holds no text
    │   ├── DocumentTooLarge        beyond a stated limit
    │   └── UnlikeTemplates         a template was to be chosen, and it is like the samples of none
    ├── CheckpointError             a model folder cannot be used
    │   ├── MissingWeights          no weights, or weights without some of the model's tensors
    │   └── UnsupportedModel        an architecture or option we cannot run exactly
    ├── EncodingError               one unit cannot be encoded (NaN from a broken checkpoint ...)
    ├── DictionaryError             the HDF5 file
    │   ├── UnreadableDictionary    not HDF5, not ours, or damaged
    │   │   └── DamagedRows         rows whose bytes are not those that were written
    │   ├── NewerDictionary         written by a later featpipe
    │   ├── DictionaryLocked        another writer owns it
    │   ├── DictionaryChanged       replaced or truncated under an open reader
    │   ├── UnknownSpace            no such space or table in this file
    │   ├── StoreUnreachable        the object store that holds it cannot be reached, or refuses us
    │   └── WriteFailed             disk full, read-only, vanished; what was acknowledged stays
    ├── BrokerUnreachable           the message broker cannot be reached, or refuses us
    └── PoolError                   the worker processes
        ├── PoolBroken              workers cannot start, or crash in a loop
        ├── PoolClosed              used after close
        ├── PoolFull                too many bytes wait for workers: outcomes are to be taken first
        ├── CannotTravel            an argument that cannot be sent to another process
        └── TaskFailed              one task: the role raised
            ├── WorkerDied          ... or its process died on it (signal, exit code, out of memory)
            └── TaskTimedOut        ... or it ran past its deadline

Each says what failed, on which file, key or option, and in ``hint`` the next step. All of them
survive pickling, so that an error raised in a worker reaches the caller as it was.
"""

from __future__ import annotations

from typing import NoReturn


class FeatpipeError(Exception):
    """Root of the tree.

    Args:
        message: what failed, naming the file, key or option.
        hint: the next step, shown on a line of its own.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by message, with everything else restored from ``__dict__``."""
        return (_rebuild, (type(self), self.message, self.__dict__))


def _rebuild(kind: type[FeatpipeError], message: str, state: dict[str, object]) -> FeatpipeError:
    error = kind.__new__(kind, message)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class UsageError(FeatpipeError):
    """The caller's arguments are wrong; nothing was done."""


class MissingDocuments(UsageError):
    """A path that does not exist, or a folder in which there is nothing to read."""


class UnknownDevice(UsageError):
    """A device name that is not understood, or that this machine does not have."""


class MissingExtra(UsageError):
    """An optional dependency is needed and not installed."""


class TemplateError(UsageError):
    """A template that cannot be used. The message names the file, the field and the line."""


class DocumentError(FeatpipeError):
    """One document cannot be used. It is quarantined with this reason; the others go on."""


class UnreadableDocument(DocumentError):
    """The bytes cannot be read: permissions, encoding, damage."""


class UnsupportedDocument(DocumentError):
    """No loader takes this kind of file."""


class EmptyDocument(DocumentError):
    """Read well, and holds no text."""


class DocumentTooLarge(DocumentError):
    """Beyond a stated limit of bytes, pages or characters."""


class UnlikeTemplates(DocumentError):
    """A template was to be chosen for it, and it is not like the samples of any."""


class CheckpointError(FeatpipeError):
    """A model folder cannot be used."""


class MissingWeights(CheckpointError):
    """No weights, or weights that lack some of the model's tensors, or hold others."""


class UnsupportedModel(CheckpointError):
    """An architecture or option that cannot be run exactly."""


class EncodingError(FeatpipeError):
    """One unit cannot be encoded; the others are."""

    units: tuple[int, ...] = ()
    """Numbers of the units that the error is about, where a call had several."""


class DictionaryError(FeatpipeError):
    """Something about the HDF5 file."""


class UnreadableDictionary(DictionaryError):
    """Not HDF5, not written by featpipe, or damaged."""


class DamagedRows(UnreadableDictionary):
    """Rows whose bytes are not those that were written; the others can be read."""

    table: str = ""
    rows: tuple[int, ...] = ()
    """Numbers of the damaged rows that were asked for."""
    document: str = ""
    """The document they belong to, where it is known."""


class NewerDictionary(DictionaryError):
    """Written by a later featpipe, in a layout this one does not know."""


class DictionaryLocked(DictionaryError):
    """Another writer owns the file."""


class DictionaryChanged(DictionaryError):
    """The file was replaced or truncated under an open reader."""


class UnknownSpace(DictionaryError):
    """The file holds no space or table of this name."""


class StoreUnreachable(DictionaryError):
    """The object store that holds it could not be reached, or refused a request."""


class WriteFailed(DictionaryError):
    """Disk full, read-only, quota, vanished directory. What was acknowledged stays."""


class BrokerUnreachable(FeatpipeError):
    """The message broker could not be reached, or refuses the connection."""


class PoolError(FeatpipeError):
    """Something about the worker processes."""


class PoolBroken(PoolError):
    """Workers cannot start, or crash in a loop; the run cannot go on."""


class PoolFull(PoolError):
    """Payloads of too many bytes wait for workers: nothing was submitted, outcomes come first."""


class PoolClosed(PoolError):
    """The pool was used after it was closed."""


class CannotTravel(PoolError):
    """An object cannot be sent to another process; the message holds the attribute path to it."""


class TaskFailed(PoolError):
    """One task failed: the role raised. The remote traceback is part of the message."""


class WorkerDied(TaskFailed):
    """The worker's process died on this task: signal, exit code, or out of memory."""


class TaskTimedOut(TaskFailed):
    """The task ran past its deadline; its worker was killed and replaced."""


def raise_original(error: PoolError) -> NoReturn:
    """Raise what kept a worker from starting, where that is an error of ours; else the loss."""
    if isinstance(error.__cause__, FeatpipeError):
        raise error.__cause__ from None
    raise error
