"""Without an optional package its integration names the extra to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("llamaindex", "llama_index", "llamaindex"),
        ("sklearn", "sklearn", "sklearn"),
        ("arrow", "pyarrow", "arrow"),
        ("faiss", "faiss", "ann"),
        ("ray", "ray", "ray"),
    ],
)
def test_an_absent_package_is_named_with_its_extra(module: str, package: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from featpipe.errors import MissingExtra\n"
        f"try:\n    import featpipe.integrations.{module}\n"
        "except MissingExtra as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"pip install 'featpipe[{extra}]'"


def test_datasets_are_named_where_they_are_needed() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    code = (
        "import sys; sys.modules['datasets'] = None\n"
        "from featpipe.errors import MissingExtra\n"
        "from featpipe.integrations import arrow\n"
        "try:\n    arrow.document_dataset(None)\n"
        "except MissingExtra as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pip install 'featpipe[datasets]'"


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("langchain", "langchain_core"),
        ("llamaindex", "llama_index"),
        ("sklearn", "sklearn"),
        ("arrow", "pyarrow"),
        ("faiss", "faiss"),
        ("aio", "asyncio"),
        ("ray", "ray"),
    ],
)
def test_no_integration_imports_torch_into_the_caller(module: str, package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    code = (
        f"import sys; import featpipe.integrations.{module}\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"])
def test_where_no_cluster_listens_the_next_step_is_named(address: str) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    from featpipe.errors import UsageError
    from featpipe.integrations.ray import connected

    with (
        pytest.raises(UsageError, match=f"no Ray cluster can be reached at {address}") as caught,
        connected(address),
    ):
        pass
    assert "ray start --head" in caught.value.hint
