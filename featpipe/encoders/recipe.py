"""The recipe of a sentence-transformers folder: its JSON files. Imports no torch.

Read are the pooling mode, the dense layers, layer norms and normalisation after it, the maximum
length, lower-casing and prompts. A module that changes vectors in a way that is not reproduced here
(LSTM, CNN ...) is refused, never skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.errors import CheckpointError, UnsupportedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: sentence-transformers' pooling names -> ours; others are refused.
_POOLINGS = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "lasttoken": "last",
    "weightedmean": "weightedmean",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
}
_OLD_PREFIX = "pooling_mode_"
_OLD_NAMES = {
    "cls_token": "cls",
    "mean_tokens": "mean",
    "max_tokens": "max",
    "weightedmean_tokens": "weightedmean",
}

#: Modules that may follow pooling, and modules without a folder.
_STEPS = frozenset({"Dense", "LayerNorm", "Normalize"})
_BARE = frozenset({"Normalize", "Dropout"})

#: Files that sentence-transformers writes only beside ``modules.json``.
_BESIDE_MODULES = ("config_sentence_transformers.json", "1_Pooling/config.json")

#: Activations of a dense layer, by their class in torch.nn; Tanh unless stated.
_ACTIVATIONS = frozenset({"Tanh", "Identity", "ReLU", "GELU", "Sigmoid", "SiLU", "ELU"})


@dataclass(frozen=True, slots=True)
class Step:
    """A module between pooling and the vector: ``Dense``, ``LayerNorm`` or ``Normalize``."""

    kind: str
    folder: Path
    width: int = 0
    """Of its output; 0: that of its input."""
    activation: str = ""
    """Of a dense layer: class in torch.nn."""
    has_bias: bool = True

    @property
    def weight_files(self) -> tuple[Path, ...]:
        """The step's weights, at most one file."""
        names = ("model.safetensors", "pytorch_model.bin")
        found = [self.folder / name for name in names if (self.folder / name).exists()]
        return tuple(found[:1]) if self.kind != "Normalize" else ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The folder's own settings; None where it states none."""

    model_folder: Path
    pooling: str | None = None
    normalise: bool = False
    steps: tuple[Step, ...] = ()
    """Between pooling and the last normalisation; empty for most models."""
    max_length: int | None = None
    lowercase: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str = ""


def read_recipe(folder: Path) -> Recipe:
    """The recipe of `folder`; an empty one when it is a plain transformers folder.

    Raises:
        UnsupportedModel: a module or pooling mode that is not reproduced here, or no pooling.
        CheckpointError: ``modules.json`` names a missing folder, or is missing beside what belongs
            to it, or the default prompt is not among the prompts.
    """
    modules = _read_modules(folder)
    if not modules:
        _refuse_a_part(folder)
        return Recipe(folder)
    model = modules[0][1]
    kinds = [kind for kind, _ in modules]
    has_pooling = kinds[1:2] == ["Pooling"]
    _check_kinds(folder, kinds[0], kinds[2 if has_pooling else 1 :])
    if not has_pooling:
        raise UnsupportedModel(
            f"{folder / 'modules.json'} names no Pooling after its Transformer: how token states"
            " become a vector is not known"
        )
    rest = modules[2:]
    is_normal = bool(rest) and rest[-1][0] == "Normalize"
    limits = _read_limits(model)
    prompts, default = _read_prompts(folder)
    return Recipe(
        model_folder=model,
        pooling=_read_pooling(modules[1][1]),
        normalise=is_normal,
        steps=tuple(_read_step(*step) for step in rest[: -1 if is_normal else None]),
        max_length=_positive(limits.get("max_seq_length")),
        lowercase=bool(limits.get("do_lower_case", False)),
        prompts=prompts,
        default_prompt=default,
    )


def read_json(path: Path) -> object:
    """The file's content, None without such a file.

    Raises:
        CheckpointError: not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}") from error


def read_json_object(path: Path) -> dict[str, object]:
    """As `read_json`, for files that hold one object; ``{}`` without such a file."""
    content = read_json(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} does not hold a JSON object")
    return content


def _check_kinds(folder: Path, first: str, rest: list[str]) -> None:
    if first != "Transformer":
        raise UnsupportedModel(f"{folder} begins with a {first} module, not with a Transformer")
    for kind in rest:
        if kind not in _STEPS:
            raise UnsupportedModel(
                f"{folder} has a {kind} module, which is not reproduced here",
                hint=f"reproduced are Transformer, then Pooling, then {', '.join(sorted(_STEPS))}",
            )


def _read_modules(folder: Path) -> list[tuple[str, Path]]:
    """(kind, folder) of each module; empty for a plain transformers folder."""
    modules = read_json(folder / "modules.json")
    if modules is None:
        return []
    if not modules or not isinstance(modules, list):
        raise CheckpointError(f"{folder / 'modules.json'} does not list any modules")
    found = [_find_module(folder, module) for module in modules]
    return [(kind, path) for kind, path in found if kind != "Dropout"]


def _refuse_a_part(folder: Path) -> None:
    """Refuse a sentence-transformers folder without ``modules.json``, and one module of a folder.

    Both look like a plain transformers folder, whose vectors are means of token states.
    """
    beside = [name for name in _BESIDE_MODULES if (folder / name).exists()]
    if beside:
        raise CheckpointError(
            f"{folder} holds {beside[0]}, and modules.json, which belongs to it, is missing: how"
            " token states become a vector is not known",
            hint="the folder was not copied whole: copy modules.json from where it came from",
        )
    whole = read_json(folder.parent / "modules.json")
    modules = whole if isinstance(whole, list) else ()
    if any(isinstance(one, dict) and one.get("path") == folder.name for one in modules):
        raise CheckpointError(
            f"{folder} is one module of the model in {folder.parent}", hint=f"name {folder.parent}"
        )


def _find_module(folder: Path, module: dict[str, object]) -> tuple[str, Path]:
    kind = str(module.get("type", "")).rpartition(".")[2]
    path = folder / str(module.get("path", ""))
    described = any((path / name).exists() for name in ("config.json", "adapter_config.json"))
    if kind not in _BARE and not described:
        raise CheckpointError(
            f"{folder / 'modules.json'} names {path.name}, but {path / 'config.json'} is not there",
            hint="the folder was not copied whole: its sub-folders belong to the model",
        )
    return kind, path


def _read_step(kind: str, folder: Path) -> Step:
    if kind == "Normalize":
        return Step(kind, folder)
    config = read_json_object(folder / "config.json")
    if kind == "LayerNorm":
        return Step(kind, folder)
    width = _positive(config.get("out_features"))
    activation = _read_activation(folder, config)
    if width is None:
        raise CheckpointError(f"{folder / 'config.json'} does not state out_features")
    return Step(kind, folder, width, activation, has_bias=bool(config.get("bias", True)))


def _read_activation(folder: Path, config: dict[str, object]) -> str:
    """The activation of a Dense module, none of whose options is one that is not reproduced."""
    given = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    module, _, activation = given.rpartition(".")
    names = {config.get(name) for name in ("module_input_name", "module_output_name")}
    refused = {
        f"the activation {module}.{activation}": (
            not module.startswith("torch.nn") or activation not in _ACTIVATIONS
        ),
        "a residual connection": bool(config.get("use_residual")),
        "token embeddings": not names <= {None, "sentence_embedding"},
    }
    for what, is_refused in refused.items():
        if is_refused:
            raise UnsupportedModel(f"{folder} is a Dense module with {what}: not reproduced here")
    return activation


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
    if not isinstance(prompts, dict):
        prompts = {}
    known = {str(name): str(text or "") for name, text in prompts.items()}
    default = config.get("default_prompt_name")
    if default is not None and default not in known:
        raise CheckpointError(
            f"{folder / 'config_sentence_transformers.json'} names the default prompt {default!r},"
            f" and its prompts are {', '.join(known) or 'none'}"
        )
    return known, "" if default is None else known[default]


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
