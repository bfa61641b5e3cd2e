"""An order: one message, read and checked, and the key under which its answer is the same."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from featpipe.errors import UsageError
from featpipe.templates.extract_role import AUTO, Given, Inline, Stored, Upload

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEYS = frozenset({"id", "text", "document", "data", "name", "template"})
_FORM = '{"id": ..., "text" or "document" or "data" (base64): ..., "template": ...}'


@dataclass(frozen=True, slots=True)
class Order:
    """What a message asks for."""

    id: str
    given: Given
    template: str

    def key(self, state: str) -> str:
        """Content key: equal for equal content under the same ``state`` of templates and cache."""
        kind = type(self.given).__name__
        content = self.given.data if isinstance(self.given, Upload) else b""
        words = self.given.text if isinstance(self.given, Inline) else ""
        stored = self.given.name if isinstance(self.given, Stored | Upload | Inline) else ""
        digest = blake2b(digest_size=16, person=b"featpipe-orders1")
        for part in (kind, words, stored, self.template, state):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        digest.update(content)
        return digest.hexdigest()


def read_order(body: object, templates: Mapping[str, object]) -> Order:
    """A message's body, as text, bytes or parsed JSON.

    Raises:
        UsageError: it is no order; says why.

    """
    content = _parse(body)
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise UsageError(f"the message has unknown keys: {', '.join(unknown)}", hint=_FORM)
    given = _given_of(content)
    template = content.get("template")
    if template is None:
        template = next(iter(templates)) if len(templates) == 1 else AUTO
    if not isinstance(template, str):
        raise UsageError("the message's template is no name", hint=_FORM)
    return Order(str(content.get("id", "")), given, template)


def _parse(body: object) -> dict[str, Any]:
    try:
        content = json.loads(body) if isinstance(body, str | bytes | bytearray) else body
    except ValueError as error:
        raise UsageError(f"the message is no JSON: {error}", hint=_FORM) from error
    if not isinstance(content, dict):
        raise UsageError("the message is no JSON object", hint=_FORM)
    return content


def _given_of(content: Mapping[str, Any]) -> Given:
    named = [key for key in ("text", "document", "data") if isinstance(content.get(key), str)]
    if len(named) != 1 or not content[named[0]]:
        raise UsageError("the message has not one of text, document and data", hint=_FORM)
    name = str(content.get("name") or "message")
    value: str = content[named[0]]
    if named[0] == "text":
        return Inline(value, name)
    if named[0] == "document":
        return Stored(value)
    try:
        return Upload(base64.b64decode(value, validate=True), name)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"the message's data is no base64: {error}", hint=_FORM) from error
