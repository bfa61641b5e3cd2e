"""Workers that fail in a stated way."""

from __future__ import annotations

import os
import signal
from typing import Any

from featpipe.extraction.messages import ExtractTask, Inline
from featpipe.extraction.worker import ExtractRole


class Poisoned(ExtractRole):
    """Dies of the text ``kill``."""

    __init__ = ExtractRole.__init__  # whose parameters the engine reads

    def run(self, task: Any) -> Any:  # noqa: ANN401  # as the role it stands for
        documents = task.documents if isinstance(task, ExtractTask) else ()
        if any(isinstance(one, Inline) and one.text == "kill" for one in documents):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().run(task)


class Useless:
    """Extracts nothing."""

    def __init__(self, **_: object) -> None:
        pass

    def run(self, task: object) -> object:
        raise AssertionError(f"asked to extract {task}")
