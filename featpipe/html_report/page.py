"""The page: one HTML file that contains its style, its script and its data.

Guarantees: the page loads nothing, and no other script can run, whatever a document holds. The
content security policy names the style and the script by their hashes; data lies in blocks of
JSON in which ``<``, ``>`` and ``&`` are escaped, so that no text can end a block; the script makes
text nodes and never parses markup.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: In the order of use: each file may use names of those before it.
_SCRIPTS = (
    "words.js", "reason_words.js", "elements.js", "state.js", "spans.js", "text.js", "reasons.js",
    "card.js", "document.js", "fields.js", "changes.js", "quality.js", "runs.js", "map.js",
    "service.js", "selection.js", "said.js", "service_keeper.js", "page_keeper.js", "review.js",
    "verdicts.js", "proposal.js", "main.js",
)  # fmt: skip

_surrogate = re.compile("[\ud800-\udfff]")
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def service_page(*, has_review: bool = False) -> str:
    """The page of the service, which shows the values of a pasted or dropped document.

    It sends requests to ``templates``, ``extract`` and ``review`` beside its own address only.

    Args:
        has_review: offer the review of values, too.

    """
    nothing: dict[str, list[object]] = {"templates": [], "labels": [], "parts": [], "docs": []}
    contents = {"mode": "service", "has_review": has_review, **nothing}
    return "".join(_pieces(contents, (), connect="'self'"))


def report_pieces(contents: object, blocks: Iterable[object]) -> Iterator[str]:
    """The report in pieces: ``contents``, then one block per document."""
    return _pieces(contents, blocks, connect="'none'")


def as_json(value: object) -> str:
    """JSON that is safe inside HTML and JavaScript."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def shown(text: str) -> str:
    """A text that UTF-8 can hold: each surrogate becomes U+FFFD, so that offsets stay right."""
    return _surrogate.sub("\ufffd", text)


def _pieces(contents: object, blocks: Iterable[object], connect: str) -> Iterator[str]:
    style, script = _asset("page.css") + _asset("review.css"), _script()
    page = _asset("page.html")
    head, rest = page.split("<!-- data -->")
    yield (
        head.replace("{{policy}}", _policy(style, script, connect))
        .replace("{{style}}", style)
        .replace("{{script}}", script)
        .replace("{{contents}}", as_json(contents))
    )
    # After the script: the page is drawn while the texts are still being read.
    for number, block in enumerate(blocks):
        yield f'<script type="application/json" id="d{number}">{as_json(block)}</script>\n'
    yield rest


def _policy(style: str, script: str, connect: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


@cache
def _script() -> str:
    body = "".join(_asset(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}}})();\n'


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")
