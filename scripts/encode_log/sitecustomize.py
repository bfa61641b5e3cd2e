"""Notes each text whose vector was computed, in every process that has this folder on PYTHONPATH.

``FEATPIPE_ENCODE_LOG`` names the file: 16 bytes, its key, for each text of a batch that has ended.
A key that stands there twice was computed twice. While the file that ``FEATPIPE_ENCODE_HOLD`` names
is there, no batch after the first goes on.
"""

import importlib.util
import os
import sys
import time

_MODULE = "featpipe.build.encode_worker"


class _Finder:
    """Wraps the encode worker when it is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # noqa: ANN001, ANN205, ARG004  # of the protocol
        if name != _MODULE:
            return None
        sys.meta_path.remove(_Finder)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_wrap(module):  # noqa: ANN001, ANN202
            execute(module)
            _wrap(module.EncodeRole)

        spec.loader.exec_module = execute_and_wrap
        return spec


def _wrap(role):  # noqa: ANN001, ANN202
    run = role.run
    hold = os.environ.get("FEATPIPE_ENCODE_HOLD")
    log = os.open(os.environ["FEATPIPE_ENCODE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def run_and_note(self, task):  # noqa: ANN001, ANN202
        done = run(self, task)
        if not task.table.startswith("entities/"):
            os.write(log, task.units.keys.tobytes())
        while hold and os.path.exists(hold):  # noqa: PTH110  # loaded by every process
            time.sleep(0.01)
        return done

    role.run = run_and_note


if "FEATPIPE_ENCODE_LOG" in os.environ:
    sys.meta_path.insert(0, _Finder)
