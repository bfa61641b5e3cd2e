"""How many processes a command extracts with, unless it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.extraction.extractor import Extractor


def choose_workers(extractor: Extractor, n: int, many: int) -> int:
    """One per core where there is much to do.

    A pattern that somebody wrote may run for ever on some document; only a worker can be given up
    for that, so that such templates always get one.

    Args:
        extractor: whose templates are at work.
        n: things to do.
        many: from so many on, starting one process for each core pays.

    """
    from featpipe.pool.devices import default_devices

    if n >= many:
        return sum(device == "cpu" for device in default_devices())
    fields = [field for one in extractor.templates.values() for field in one.template.fields]
    return int(any(field.pattern for field in fields) and n > 0)
