"""Failures: what a client is told when a request cannot be answered, and with which status.

One place maps every error of the tree; nothing else decides a status. What the operator alone may
know (paths, tracebacks) is logged under the request's id and not sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.errors import (
    CannotTravel,
    DictionaryError,
    DocumentError,
    DocumentTooLarge,
    EncodingError,
    FeatpipeError,
    PoolBroken,
    PoolClosed,
    TaskFailed,
    TaskTimedOut,
    TemplateError,
    UnknownSpace,
    UnsupportedDocument,
    UsageError,
    WorkerDied,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class Failure(Exception):
    """An answer that is an error.

    Args:
        status: of HTTP.
        code: a word for programs; never changes its meaning.
        message: for people.
        hint: the next step, if there is one.
        retry_after_s: when to ask again; sent as ``Retry-After``.

    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_after_s)))

    def content(self, request_id: str) -> dict[str, object]:
        """The body: ``{"error": {"code", "message", "hint", "request_id"}}``."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "request_id": request_id,
            }
        }


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: type[FeatpipeError]
    status: int
    code: str
    is_told: bool = True
    """Whether the error's own words are for the client."""


#: The first that fits decides, so the special come before the general.
_RULES = (
    _Rule(UnsupportedDocument, 415, "unsupported_document"),
    _Rule(DocumentTooLarge, 413, "document_too_large"),
    _Rule(DocumentError, 422, "unreadable_document"),
    _Rule(EncodingError, 422, "cannot_encode"),
    _Rule(TemplateError, 500, "template_unusable", is_told=False),
    _Rule(UnknownSpace, 500, "cache_unusable", is_told=False),
    _Rule(UsageError, 404, "not_found"),
    _Rule(DictionaryError, 500, "cache_unusable", is_told=False),
    _Rule(TaskTimedOut, 422, "document_deadline"),
    _Rule(WorkerDied, 500, "worker_died"),
    _Rule(PoolBroken, 503, "workers_unavailable", is_told=False),
    _Rule(PoolClosed, 503, "shutting_down", is_told=False),
    _Rule(CannotTravel, 422, "cannot_travel"),
    _Rule(TaskFailed, 500, "failed", is_told=False),
)

_UNTOLD = {
    "template_unusable": "the templates cannot be used at the moment",
    "cache_unusable": "the cache cannot be used at the moment",
    "workers_unavailable": "no worker can do this at the moment",
    "shutting_down": "the service is shutting down",
}


def failure_of(error: BaseException) -> Failure:
    """What an error becomes for the client."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, TaskFailed) and isinstance(error.__cause__, FeatpipeError):
        error = error.__cause__
    for rule in _RULES:
        if isinstance(error, rule.kind):
            retry = 1.0 if rule.status == 503 else None
            return Failure(rule.status, rule.code, _words(error, rule), retry_after_s=retry)
    return Failure(500, "internal", "an internal error; the log has it under this request_id")


def failure_named(name: str, message: str) -> Failure:
    """What became of one document, by the name of its error's class and the reason given."""
    kinds = {rule.kind.__name__: rule for rule in _RULES}
    rule = kinds.get(name) or _Rule(DocumentError, 422, _NAMED.get(name, "extraction_failed"))
    return Failure(rule.status, rule.code, message if rule.is_told else _UNTOLD.get(rule.code, ""))


_NAMED = {"UnreadableDocument": "unreadable_document", "EmptyDocument": "empty_document"}


def _words(error: BaseException, rule: _Rule) -> str:
    if not rule.is_told:
        return _UNTOLD.get(rule.code, "an internal error; the log has it under this request_id")
    # A lost worker's last words hold stacks and paths: the first line says what happened.
    return str(getattr(error, "message", error)).splitlines()[0]
