"""Links from the page to the files that hold its documents."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

from featpipe.extraction.named_documents import is_file

if TYPE_CHECKING:
    from pathlib import Path


def link_to(place: str, page: Path) -> str:
    """Relative address of the file at a document's place, "" where there is none.

    It tells no folder above the two, and holds when both are moved together. A member of an archive
    or a line of a file is linked to by the file that holds it.

    Args:
        place: path of a cached document.
        page: the file that is written.

    """
    whole = (place, place.rpartition("!")[0], place.rpartition("@")[0])
    file = next((one for one in whole if one and is_file(one)), None)
    if file is None:
        return ""
    relative = os.path.relpath(file, page.absolute().parent)
    # A colon in the first step would make it another scheme; quoted, it is part of a name.
    return quote(os.fsencode(relative.replace(os.sep, "/")))
