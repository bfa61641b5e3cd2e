"""The checkpoint that ships with featpipe, and the names of models in the dictionary."""

from __future__ import annotations

from pathlib import Path

from featpipe.errors import CheckpointError

BUILTIN = "zh-small"
_PACKAGE = Path(__file__).parents[1]


def find_builtin_model() -> Path:
    """Folder of the built-in model: in the installed package, or in the checkout.

    Raises:
        CheckpointError: neither holds it; the installation is incomplete.
    """
    for folder in _builtin_folders():
        if folder.is_dir():
            return folder
    raise CheckpointError(
        f"the built-in model {BUILTIN} is missing from {_PACKAGE}",
        hint="install featpipe again, or name a model with --model",
    )


def is_builtin(model: str | Path | None) -> bool:
    """Whether `model` is the built-in one: None, its name, or its folder."""
    if model is None or (str(model) == BUILTIN and not Path(model).is_dir()):
        return True
    return Path(model).resolve() in map(Path.resolve, _builtin_folders())


def _builtin_folders() -> tuple[Path, Path]:
    return _PACKAGE / "_models" / BUILTIN, _PACKAGE.parent / "data" / "models" / BUILTIN


def space_name(model: str | Path) -> str:
    """The name of a model's space: the last part of its path or hub name, without ``@``."""
    name = Path(model).name or str(model)
    return name.replace("@", "_")
