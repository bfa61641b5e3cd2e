"""The style sheet as text: no rule is torn by an edit, also where there is no browser to ask."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

CSS = re.sub(
    r"/\*.*?\*/",
    "",
    (files("featpipe.html_report") / "assets" / "page.css").read_text("utf-8"),
    flags=re.DOTALL,
)


def rules() -> list[tuple[str, str]]:
    """Selector and declarations of every innermost block outside of keyframes."""
    plain = re.sub(r"@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", CSS)
    return [
        (selector.strip(), body) for selector, body in re.findall(r"([^{};]+)\{([^{}]*)\}", plain)
    ]


def test_the_sheet_is_read_whole() -> None:
    assert CSS.count("{") == CSS.count("}")
    assert len(rules()) > 200


def test_no_selector_names_one_class_at_two_depths() -> None:
    """Nothing on the page lies within its own kind; a line pasted into a selector looks so."""
    torn = []
    for selectors, _ in rules():
        for selector in selectors.split(","):
            depths = [set(re.findall(r"\.[a-z][\w-]*", part)) for part in selector.split()]
            count = Counter(name for depth in depths for name in depth)
            torn += [selector for n in count.values() if n > 1 and "+" not in selector]
    assert torn == []


def test_every_declaration_has_a_name_and_a_value() -> None:
    broken = [
        declaration
        for _, body in rules()
        for declaration in filter(None, map(str.strip, body.split(";")))
        if not re.fullmatch(r"-{0,2}[a-z][a-z-]*\s*:\s*[^:{}]*(?:\"[^\"]*\"[^:{}]*)?", declaration)
    ]
    assert broken == []
