"""What a sentence-transformers folder asks for beyond its weights. Plain JSON reading, no torch.

Honoured: the pooling mode, normalisation, the maximum length, lower-casing and prompts. A module
that would change vectors in a way we do not reproduce (Dense, LSTM, weighted mean ...) is refused,
never skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.errors import CheckpointError, UnsupportedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: sentence-transformers' pooling names -> ours. Others cannot be reproduced and are refused.
_POOLINGS = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "last"}
_OLD_PREFIX = "pooling_mode_"
_OLD_NAMES = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The folder's own wishes; None where it has none."""

    model_folder: Path
    pooling: str | None = None
    normalise: bool = False
    max_length: int | None = None
    lowercase: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str = ""


def read_recipe(folder: Path) -> Recipe:
    """The recipe of `folder`; an empty one when it is a plain transformers folder.

    Raises:
        UnsupportedModel: a module or pooling mode that we cannot reproduce.
    """
    modules = read_json(folder / "modules.json")
    if not isinstance(modules, list):
        return Recipe(folder)
    found: dict[str, Path] = {}
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2]
        path = folder / str(module.get("path", ""))
        if kind in {"Transformer", "Pooling", "Normalize"} and kind not in found:
            found[kind] = path
        elif kind != "Dropout":
            raise UnsupportedModel(f"{folder} has a {kind} module, which is not reproduced here")
    if "Transformer" not in found:
        raise UnsupportedModel(f"{folder} has no Transformer module")
    model = found["Transformer"]
    limits = _read_limits(model)
    prompts, default = _read_prompts(folder)
    return Recipe(
        model_folder=model,
        pooling=_read_pooling(found["Pooling"]) if "Pooling" in found else None,
        normalise="Normalize" in found,
        max_length=_positive(limits.get("max_seq_length")),
        lowercase=bool(limits.get("do_lower_case", False)),
        prompts=prompts,
        default_prompt=default,
    )


def read_json(path: Path) -> object:
    """The file's content, None when there is no such file.

    Raises:
        CheckpointError: not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}") from error


def read_json_object(path: Path) -> dict[str, object]:
    """As `read_json`, for files that hold one object; an absent file is an empty one."""
    content = read_json(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} does not hold a JSON object")
    return content


def _read_limits(model: Path) -> dict[str, object]:
    for name in ("sentence_bert_config.json", "sentence_roberta_config.json"):
        if (model / name).exists():
            return read_json_object(model / name)
    return {}


def _read_pooling(folder: Path) -> str:
    config = read_json_object(folder / "config.json")
    given = config.get("pooling_mode")
    if given is None:
        names = [key.removeprefix(_OLD_PREFIX) for key, on in config.items() if on is True]
        given = [_OLD_NAMES.get(name, name) for name in names if f"{_OLD_PREFIX}{name}" in config]
    modes = [given] if isinstance(given, str) else list(given) if isinstance(given, list) else []
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise UnsupportedModel(
            f"{folder} pools by {modes or 'nothing'}; reproduced are {sorted(_POOLINGS)}, one each"
        )
    if config.get("include_prompt") is False:
        raise UnsupportedModel(f"{folder} leaves the prompt out of pooling, which we do not")
    return _POOLINGS[modes[0]]


def _read_prompts(folder: Path) -> tuple[dict[str, str], str]:
    config = read_json_object(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts")
    known = (
        {str(name): str(text) for name, text in prompts.items() if text}
        if isinstance(prompts, dict)
        else {}
    )
    default = config.get("default_prompt_name")
    return known, known.get(str(default), "") if default is not None else ""


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
