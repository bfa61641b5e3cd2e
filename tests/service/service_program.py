"""A service for tests: its extracting workers can be told to die or to hang by a document.

Started with a JSON object of settings as its only argument; ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from featpipe.cli.serve import configure_logging
from featpipe.html_report import service_page
from featpipe.service import engine
from featpipe.service.keys import ApiKey
from featpipe.service.server import serve
from featpipe.service.settings import ServiceSettings
from featpipe.service.tracing import configure_tracing

PATHS = {"cache", "templates", "tls_cert", "tls_key"}


def main() -> None:
    given = json.loads(sys.argv[1])
    key = given.pop("api_key", None)
    settings = ServiceSettings(
        keys=(ApiKey("test", key),) if key else (),
        **{name: Path(value) if name in PATHS else value for name, value in given.items()},
        devices=("cpu", "cpu"),
    )
    threading.Thread(target=end_with_input, daemon=True).start()
    make_workload = engine.extraction_workload

    def poisoned(*args: Any) -> engine.Workload:  # whatever it takes
        workload = make_workload(*args)
        target = "service_poison:PoisonedExtractRole"
        return replace(workload, role=replace(workload.role, target=target))

    engine.extraction_workload = poisoned
    configure_logging(as_json=True)
    if settings.is_traced:
        configure_tracing()
    assert not {"torch", "transformers"} & set(sys.modules)
    sys.exit(
        0 if serve(engine.Engine(settings), service_page(has_review=settings.is_review)) else 3
    )


def end_with_input() -> None:
    """Tests that are killed leave no service behind."""
    while os.read(0, 1 << 10):  # not through sys.stdin, which is locked at the end
        pass
    os._exit(4)


if __name__ == "__main__":
    main()
