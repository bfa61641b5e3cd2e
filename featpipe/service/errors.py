"""Failures: answers with an error status.

Guarantees: every error of the tree gets its status here and nowhere else. Paths and tracebacks are
logged under the request's id and not sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from logging import getLogger
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
    UnlikeTemplates,
    UnsupportedDocument,
    UsageError,
    WorkerDied,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = getLogger("featpipe.service")

#: OpenAI's names of kinds of errors, by status; the last two for all other statuses.
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CLIENT, _SERVER = "invalid_request_error", "server_error"


class Failure(Exception):
    """An answer with an error status.

    Args:
        status: of HTTP.
        code: for programs; its meaning never changes.
        message: for people.
        hint: the next step.
        retry_after_s: when to ask again; sent as ``Retry-After``.
        param: the field of the request that is to blame.

    """

    def __init__(  # noqa: PLR0913  # each is a part of the answer
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        retry_after_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.param = param
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_after_s)))

    def content(self, request_id: str) -> dict[str, object]:
        """The body: ``{"error": {"code", "message", "type", "param", "hint", "request_id"}}``.

        The first four are OpenAI's.
        """
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "type": _TYPES.get(self.status, _CLIENT if self.status < 500 else _SERVER),
                "param": self.param,
                "hint": self.hint,
                "request_id": request_id,
            }
        }


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: type[FeatpipeError]
    status: int
    code: str
    is_public: bool = True
    """Whether the error's own message is sent."""


#: The first rule that matches decides, so special errors come before general ones.
_RULES = (
    _Rule(UnsupportedDocument, 415, "unsupported_document"),
    _Rule(DocumentTooLarge, 413, "document_too_large"),
    _Rule(UnlikeTemplates, 422, "no_template_fits"),
    _Rule(DocumentError, 422, "unreadable_document"),
    _Rule(EncodingError, 422, "cannot_encode"),
    _Rule(TemplateError, 500, "template_unusable", is_public=False),
    _Rule(UnknownSpace, 500, "cache_unusable", is_public=False),
    _Rule(UsageError, 404, "not_found"),
    _Rule(DictionaryError, 500, "cache_unusable", is_public=False),
    _Rule(TaskTimedOut, 422, "document_deadline"),
    _Rule(WorkerDied, 500, "worker_died"),
    _Rule(PoolBroken, 503, "workers_unavailable", is_public=False),
    _Rule(PoolClosed, 503, "shutting_down", is_public=False),
    _Rule(CannotTravel, 422, "cannot_travel"),
    _Rule(TaskFailed, 500, "failed", is_public=False),
)

_MESSAGES = {
    "template_unusable": "the templates cannot be used at the moment",
    "cache_unusable": "the cache cannot be used at the moment",
    "workers_unavailable": "no worker can do this at the moment",
    "shutting_down": "the service is shutting down",
}


def failure_of(error: BaseException) -> Failure:
    """The answer to an error of any kind, which is its cause."""
    if isinstance(error, Failure):
        return error
    failure = _failure_by_rule(error)
    failure.__cause__ = error
    return failure


def _failure_by_rule(error: BaseException) -> Failure:
    if isinstance(error, TaskFailed) and isinstance(error.__cause__, FeatpipeError):
        error = error.__cause__
    for rule in _RULES:
        if isinstance(error, rule.kind):
            retry = 1.0 if rule.status == 503 else None
            return Failure(rule.status, rule.code, _message(error, rule), retry_after_s=retry)
    return Failure(500, "internal", "an internal error; the log has it under this request_id")


def log_failure(failure: Failure, request_id: str) -> None:
    """Log a fault of the service, which an answer only names, under its request's id.

    What a worker wrote is logged where it arrived: one task may be that of many requests.
    """
    if failure.status == 500:
        cause = failure.__cause__ or failure
        what = (str(getattr(cause, "message", cause)) or type(cause).__name__).splitlines()[0]
        stack = cause if failure.code == "internal" else None
        extra = {"request_id": request_id}
        logger.error("%s: %s", failure.code, what, extra=extra, exc_info=stack)


def failure_named(name: str, message: str) -> Failure:
    """The answer to a quarantined document, by the name of its error's class and its reason."""
    kinds = {rule.kind.__name__: rule for rule in _RULES}
    rule = kinds.get(name) or _Rule(DocumentError, 422, _NAMED.get(name, "extraction_failed"))
    return Failure(
        rule.status, rule.code, message if rule.is_public else _MESSAGES.get(rule.code, "")
    )


_NAMED = {"UnreadableDocument": "unreadable_document", "EmptyDocument": "empty_document"}


def _message(error: BaseException, rule: _Rule) -> str:
    if not rule.is_public:
        return _MESSAGES.get(rule.code, "an internal error; the log has it under this request_id")
    # Further lines, such as the stack of a lost worker, hold paths.
    return str(getattr(error, "message", error)).splitlines()[0]
