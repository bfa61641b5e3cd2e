"""A role that does what a document says."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from featpipe.extraction.messages import ExtractTask, Inline
from featpipe.extraction.worker import ExtractRole

KILL, HANG = "这份文件会杀死工人。", "这份文件没有尽头。"
#: Followed by the path of a file.
WAIT = "这份文件等待："


class PoisonedExtractRole(ExtractRole):
    """Dies of `KILL`, hangs on `HANG`, holds `WAIT` up for a file."""

    __init__ = ExtractRole.__init__  # whose parameters the engine reads

    def run(self, task: Any) -> Any:  # noqa: ANN401  # as the role it stands for
        texts = []
        if isinstance(task, ExtractTask):
            texts = [one.text for one in task.documents if isinstance(one, Inline)]
        if KILL in texts:
            os.kill(os.getpid(), signal.SIGSEGV)
        if HANG in texts:
            time.sleep(3600)
        for text in texts:
            while text.startswith(WAIT) and not Path(text.removeprefix(WAIT)).exists():
                time.sleep(0.005)
        return super().run(task)


class EndlessFitRole(ExtractRole):
    """Never fits anything."""

    __init__ = ExtractRole.__init__  # as above

    def run(self, template: object) -> int:  # noqa: ARG002  # as the role it stands for
        time.sleep(3600)
        return 0
