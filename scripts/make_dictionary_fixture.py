"""Writes the fixture of the current layout into data/dictionaries: once per released layout.

    python scripts/make_dictionary_fixture.py

A fixture that exists is not overwritten: it is what earlier featpipes wrote, and every later one
must read it. Its rows can be worked out again, see tests/store/test_released_layouts.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from featpipe.store import Writer
from featpipe.store.hdf5_format import FORMAT_VERSION
from tests.store.test_released_layouts import write_fixture


def main() -> None:
    """Make it, unless it is there."""
    root = Path(__file__).resolve().parents[1]
    path = root / "data" / "dictionaries" / f"layout_{FORMAT_VERSION}.h5"
    if path.exists():
        sys.exit(f"{path} exists: a released layout does not change")
    with Writer.open(path) as writer:
        write_fixture(writer)
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
