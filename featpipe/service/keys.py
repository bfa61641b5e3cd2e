"""Keys of a service: who may call it, and what each may do.

Guarantees: what a caller sends is compared with every key in constant time, so that the time of an
answer does not tell how much of a key is right; no key is in a message, a log line or a ``repr``.
A path that is not listed here needs the right ``read``.
"""

from __future__ import annotations

import hmac
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Right = Literal["read", "extract", "review"]
RIGHTS: tuple[Right, ...] = get_args(Right)

#: Environment variable with the keys, used when no file is named.
KEY_VARIABLE = "FEATPIPE_API_KEY"
#: A key shorter than this can be guessed.
_SHORTEST_KEY = 16
_NAMED = re.compile(r"([\w.-]{1,64}):([a-z, ]*):(.*)")
_NEW_KEY = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"

#: What needs more than ``read``, by the beginning of the path.
_NEEDED: tuple[tuple[str, Right], ...] = (
    ("/review", "review"),
    ("/extract", "extract"),
    ("/templates/validate", "extract"),
    ("/templates/reload", "extract"),
)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, its name in the log, and what its holder may do."""

    name: str
    secret: str = field(repr=False)
    rights: frozenset[Right] = frozenset(RIGHTS)


def needed_right(path: str) -> Right:
    """The right that a request to this path needs."""
    for start, right in _NEEDED:
        if path == start or path.startswith(f"{start}/"):
            return right
    return "read"


def find_key(keys: Sequence[ApiKey], given: str) -> ApiKey | None:
    """The key that a caller sent; all are compared, whichever it is."""
    sent = given.encode("latin-1", "replace")
    found = [key for key in keys if hmac.compare_digest(sent, key.secret.encode("ascii"))]
    return found[0] if found else None


def load_keys(file: Path | None) -> tuple[ApiKey, ...]:
    """The keys of a file, else of the environment; none without either.

    Either one key, which may do everything, or lines ``NAME:RIGHTS:KEY``, where rights are
    ``read``, ``extract`` and ``review``, separated by commas. Empty lines, and those that begin
    with ``#``, are passed over.

    Raises:
        UsageError: a file that cannot be read, an unknown right, a key that can be guessed, two
            keys of one name or two names for one key.

    """
    where = f"${KEY_VARIABLE}" if file is None else str(file)
    text = os.environ.get(KEY_VARIABLE, "") if file is None else _read(file)
    if file is None and not text.strip():
        return ()
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) == 1 and not _NAMED.fullmatch(lines[0]):
        return (ApiKey("key", _check_secret(lines[0], where)),)
    keys = tuple(_parse(line, where) for line in lines)
    if not keys:
        raise UsageError(f"there is no key in {where}", hint=_NEW_KEY)
    if len({key.name for key in keys}) < len(keys) or len({key.secret for key in keys}) < len(keys):
        raise UsageError(f"{where} has two keys of one name, or one key twice")
    return keys


def _parse(line: str, where: str) -> ApiKey:
    found = _NAMED.fullmatch(line)
    if found is None:  # the message never contains the line: it may be a key
        raise UsageError(f"a line of {where} is not NAME:RIGHTS:KEY", hint=_example())
    rights = {word.strip() for word in found[2].split(",")}
    chosen = frozenset(right for right in RIGHTS if right in rights)
    if len(chosen) != len(rights):
        raise UsageError(
            f"the rights of {found[1]} in {where} must be of {', '.join(RIGHTS)}", hint=_example()
        )
    return ApiKey(found[1], _check_secret(found[3].strip(), where), chosen)


def _check_secret(secret: str, where: str) -> str:
    if len(secret) < _SHORTEST_KEY or not secret.isascii() or not secret.isprintable():
        raise UsageError(
            f"the key in {where} must be {_SHORTEST_KEY} printable ASCII characters or more",
            hint=_NEW_KEY,
        )
    return secret


def _example() -> str:
    return "such as crawler:read,extract:KEY"


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the key file {file} cannot be read: {error}") from error
