"""The ``featpipe`` command, and ``python -m featpipe``: the same.

Where numpy alone is installed, which reading needs, a command names the package it lacks.
"""

from __future__ import annotations

import sys

from featpipe.errors import MissingExtra


def main() -> None:
    """Run the command; exit code 2 where a package that it needs is not installed."""
    try:
        from featpipe.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        missing = (error.name or "featpipe").partition(".")[0]
        if missing == "featpipe":
            raise
        complaint = MissingExtra(
            f"this command needs {missing}, which is not installed (numpy alone is enough for"
            " programs that read: featpipe.Cache)",
            hint="pip install featpipe   brings everything that commands need",
        )
        sys.stderr.write(f"error: {complaint}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
