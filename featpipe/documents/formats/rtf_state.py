r"""Where a reader of Rich Text stands: a group, the text so far, an open form field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.documents.formats.rtf_tables import Row

_BOX, _LIST = 1, 2
#: The result of a field that was never touched.
_UNTOUCHED = 25


@dataclass(frozen=True, slots=True)
class State:
    """Of a group: what its text is, and how its bytes are read."""

    target: str = "body"
    """body, box, note, head, title, fonts, choice; others where nothing is seen."""
    font: int | None = None
    is_hidden: bool = False
    is_deleted: bool = False
    n_substitutes: int = 1
    """Characters that follow a \\u for readers that do not know it."""
    style: int = 0
    level: int = 0
    """Of a heading: that of its style, or its own."""
    is_in_table: bool = False


@dataclass(slots=True)
class Flow:
    """Paragraphs of one target: (text, level), or a table's rows."""

    parts: list[str] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)
    """Finished paragraphs of the open cell."""
    blocks: list[tuple[str, int] | list[Row]] = field(default_factory=list)


@dataclass(slots=True)
class FormField:
    r"""The form field of the open \\field, and what its group says of it.

    Attributes:
        kind: 1 for a box, 2 for a list that opens; others show their result as text.
        result, default: of a box whether it is ticked, of a list the number of the choice.
        choices: of a list.
        n_groups: open groups where it is shown.
        n_parts: pieces of text there, before its result.
    """

    kind: int = 0
    result: int = _UNTOUCHED
    default: int = 0
    choices: list[str] = field(default_factory=list)
    n_groups: int = 0
    n_parts: int = 0

    def shown(self) -> str:
        """What the page shows in its place."""
        value = self.default if self.result == _UNTOUCHED else self.result
        if self.kind == _BOX:
            return "☒" if value else "☐"
        return self.choices[value] if self.kind == _LIST and value < len(self.choices) else ""
