"""Logs for machines: one JSON object per line, with whatever a record carries beyond its text.

A record's fields come from ``extra=``; they keep their names. Nothing that is logged can break a
line or take another field's place.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

#: Attributes every record has; the others came from ``extra=``.
_COMMON = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
#: uvicorn's second copy of its messages, in colours.
_UNWANTED = frozenset({"color_message"})


class JsonFormatter(logging.Formatter):
    """``{"time", "level", "logger", "message", ...extra}``, time in UTC with milliseconds."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        made = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "time": made.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in record.__dict__.items():
            if name not in _COMMON and name not in _UNWANTED:
                fields.setdefault(name, value)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def configure_logging(*, as_json: bool, level: int = logging.INFO) -> None:
    """Send everything of this process and its workers to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter()
        if as_json
        else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
