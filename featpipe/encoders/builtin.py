"""Which checkpoint a run uses: the one named, or the one that ships with featpipe."""

from __future__ import annotations

from pathlib import Path

from featpipe.errors import CheckpointError

BUILTIN = "zh-small"
_PACKAGE = Path(__file__).parents[1]


def find_builtin_model() -> Path:
    """Folder of the embedded default model: inside the installed package, or of the checkout.

    Raises:
        CheckpointError: neither holds it, so the installation is incomplete.
    """
    for folder in _builtin_folders():
        if folder.is_dir():
            return folder
    raise CheckpointError(
        f"the built-in model {BUILTIN} is missing from {_PACKAGE}",
        hint="install featpipe again, or name a model with --model",
    )


def is_builtin(model: str | Path | None) -> bool:
    """Whether a run with this `model` uses the built-in one, unnamed or by its folder."""
    return model is None or Path(model).resolve() in map(Path.resolve, _builtin_folders())


def _builtin_folders() -> tuple[Path, Path]:
    return _PACKAGE / "_models" / BUILTIN, _PACKAGE.parent / "data" / "models" / BUILTIN


def space_name(model: str | Path) -> str:
    """What people call the space of a model: the last part of its path or hub name."""
    name = Path(model).name or str(model)
    return name.replace("@", "_")
