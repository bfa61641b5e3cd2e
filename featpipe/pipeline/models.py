"""Which checkpoint a run uses: the one named, or the one that ships with featpipe."""

from __future__ import annotations

from pathlib import Path

from featpipe.errors import CheckpointError

BUILTIN = "zh-small"


def find_builtin_model() -> Path:
    """Folder of the embedded default model: inside the installed package, or of the checkout.

    Raises:
        CheckpointError: neither holds it, so the installation is incomplete.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "_models" / BUILTIN, package.parent / "data" / "models" / BUILTIN):
        if folder.is_dir():
            return folder
    raise CheckpointError(
        f"the built-in model {BUILTIN} is missing from {package}",
        hint="install featpipe again, or name a model with --model",
    )


def find_builtin_tagger() -> Path:
    """Folder of the built-in entity model."""
    model = find_builtin_model()
    entities = model / "entities"
    return entities if entities.is_dir() else model


def space_name(model: str | Path) -> str:
    """What people call the space of a model: the last part of its path or hub name."""
    name = Path(model).name or str(model)
    return name.replace("@", "_")
