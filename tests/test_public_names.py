"""The public face: one list of names, and an import that costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import featpipe
from featpipe import _HOMES

HEAVY = ("torch", "transformers", "h5py", "jieba", "numpy", "scipy", "pydantic", "rich", "numba")


def test_every_public_name_is_where_the_list_says() -> None:
    assert sorted({*_HOMES, "__version__"}) == sorted(featpipe.__all__)
    for name, home in _HOMES.items():
        assert getattr(featpipe, name) is getattr(import_module(home), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Cashe"):
        featpipe.Cashe  # noqa: B018 - the access is the test


@pytest.mark.parametrize("code", ["import featpipe", "import featpipe.cli.main"])
def test_importing_loads_nothing_heavy(code: str) -> None:
    loaded = f"{code}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_writer_role_loads_no_torch() -> None:
    code = (
        "import featpipe.cache.write, featpipe.build.messages, sys;"
        "print([m for m in ('torch', 'transformers', 'jieba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
