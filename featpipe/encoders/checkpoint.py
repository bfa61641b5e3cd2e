"""Describes a checkpoint on disk without loading it: milliseconds, no torch, no transformers.

Reads ``config.json``, the sentence-transformers recipe if there is one, and the headers of the
safetensors files. Pickled weights are listed but not opened.

A name that is an existing folder is that folder. A name shaped like ``owner/model`` (or a bare
model name) is looked up in the local hub cache, without the network; what is not there is
downloaded, unless ``HF_HUB_OFFLINE`` is set.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from featpipe.encoders.adapter import Adapter, read_adapter
from featpipe.encoders.builtin import BUILTIN, find_builtin_model
from featpipe.encoders.fingerprint import digest_of
from featpipe.encoders.recipe import Recipe, read_json, read_json_object, read_recipe
from featpipe.encoders.vocabulary import find_tokenizer_files
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel

Config: TypeAlias = Mapping[str, Any]  # config.json: each entry has a type of its own
Kind = Literal["encoder", "tagger"]

#: Config entries that name where a checkpoint came from and change no vector.
_PROVENANCE = frozenset({"_name_or_path", "transformers_version", "_commit_hash"})

#: ``model_type`` of the text models whose first position is ``pad_token_id + 1``.
_COUNTING_FROM_PADDING = (
    "roberta", "xlm-roberta", "camembert", "mpnet", "data2vec-text", "esm", "ibert", "layoutlmv3",
    "lilt", "longformer", "luke", "markuplm", "roberta-prelayernorm", "xlm-roberta-xl", "xmod",
)  # fmt: skip

#: Their padding token where a configuration states none.
_PADDING = 1

#: ``model_type`` of those whose configuration calls their number of positions ``n_positions``. To
#: others that state one (T5) it is no limit.
_WITH_N_POSITIONS = ("gpt2", "gpt_bigcode", "gptj", "openai-gpt", "codegen", "ctrl")

#: ``model_type`` of those whose positions are relative, so that no length is too long.
_WITHOUT_POSITIONS = ("t5", "mt5", "umt5", "longt5", "switch_transformers")

#: Rows of positions where a configuration states none, as in transformers.
_POSITIONS = 512

#: tokenizer_config.json writes "no limit" as a huge integer.
_NO_LIMIT = 1_000_000

#: As in the safetensors library.
_LONGEST_HEADER_BYTES = 100_000_000

#: Entries that name the width of hidden states, and the number of layers.
_WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")
_DEPTHS = ("num_hidden_layers", "n_layers", "num_layers", "n_layer")

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")

#: What transformers writes for labels without names, of which it does not say which means none.
_NAMELESS = re.compile(r"LABEL_\d+")

#: Files to download: weights of other frameworks stay on the hub. Python files are fetched, but run
#: only with ``trust_remote_code``.
_WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.bin", "*.py")

#: Neighbours of a missing folder that an error suggests.
_MOST_NAMED = 5

_FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model folder, as far as it can be described without loading its weights."""

    folder: Path
    """The whole, by which it is loaded again."""
    path: Path
    """The model's own files: `folder`, or the first module's in older layouts."""
    weight_files: tuple[Path, ...]
    tokenizer_files: tuple[Path, ...]
    config: Config
    recipe: Recipe
    kind: Kind

    tensors: Mapping[str, tuple[int, ...]]
    """Shape by name, from the safetensors headers; empty for pickled weights."""
    max_length: int
    """Tokens a sequence may have, special ones included: the least of all stated limits."""
    adapter: Adapter | None = None
    """Merged into the weights when they are loaded; `path` is then the base's."""

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that a vector may depend on."""
        own = (*self.weight_files, *self.tokenizer_files, self.path / "config.json")
        steps = tuple(file for step in self.recipe.steps for file in step.weight_files)
        adapter = () if self.adapter is None else self.adapter.files
        return own + steps + self.code_files + adapter + self.calibration_files

    @property
    def weights_digest(self) -> str:
        """Digest of the weights' bytes, an adapter's included."""
        digest = digest_of(self.weight_files)
        return digest if self.adapter is None else self.adapter.digest(digest)

    @property
    def code_files(self) -> tuple[Path, ...]:
        """The model's own Python code, which runs only with ``trust_remote_code``."""
        return tuple(sorted(self.path.rglob("*.py"))) if self.config.get("auto_map") else ()

    @property
    def calibration_files(self) -> tuple[Path, ...]:
        """What makes a tagger's scores probabilities: one file, or none."""
        file = self.path / "entity_calibration.json"
        return (file,) if self.kind == "tagger" and file.is_file() else ()

    @property
    def architecture(self) -> str:
        """``model_type`` of the config, such as ``bert``."""
        return str(self.config.get("model_type", ""))

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        widths = [step.width for step in self.recipe.steps if step.width]
        own = next((self.config[name] for name in _WIDTHS if name in self.config), 0)
        return widths[-1] if widths else int(own)

    @property
    def n_layers(self) -> int:
        """Number of layers, embeddings not counted.

        Raises:
            CheckpointError: the config does not state it.
        """
        found = next((self.config[name] for name in _DEPTHS if name in self.config), None)
        if not isinstance(found, int):
            raise CheckpointError(f"{self.path}: config.json does not state the number of layers")
        return found

    @property
    def labels(self) -> tuple[str, ...]:
        """Token labels by number, empty for a plain encoder.

        Raises:
            CheckpointError: the labels are not numbered from 0, or have no names.
        """
        given = self.config.get("id2label") if self.kind == "tagger" else None
        if not isinstance(given, Mapping):
            return ()
        by_number = {str(number): str(label) for number, label in given.items()}
        if by_number.keys() != {str(number) for number in range(len(by_number))}:
            raise CheckpointError(f"{self.path}: id2label does not number its labels from 0")
        if all(map(_NAMELESS.fullmatch, by_number.values())):
            raise CheckpointError(
                f"{self.path}: id2label does not name its labels ({by_number['0']} ...)",
                hint="write the names of the labels into id2label of config.json, O for none",
            )
        return tuple(by_number[str(number)] for number in range(len(by_number)))


def describe_checkpoint(name: str | Path, *, may_download: bool = True) -> Checkpoint:
    """Describe the checkpoint in folder `name`, the built-in one by its name, or hub model `name`.

    Without ``may_download`` a hub model must be in the local hub cache.

    Raises:
        CheckpointError: no such folder, no or unreadable config, damaged weight header, no
            vocabulary for the tokenizer, or a part of a sentence-transformers folder.
        MissingWeights: a folder without weights.
        UnsupportedModel: a sentence-transformers module that cannot be reproduced, or an adapter
            that cannot be merged.
    """
    whole = _find_folder(name, may_download=may_download)
    recipe = read_recipe(whole)
    adapter = read_adapter(recipe.model_folder)
    if adapter is not None:
        base = describe_checkpoint(adapter.base, may_download=may_download)
        return _describe_adapted(whole, recipe, adapter, base)
    folder = recipe.model_folder
    config = _read_config(folder)
    weight_files = _find_weights(folder)
    tensors: dict[str, tuple[int, ...]] = {}
    for file in weight_files:
        if file.suffix == ".safetensors":
            tensors |= read_shapes(file)
    return Checkpoint(
        folder=whole,
        path=folder,
        weight_files=weight_files,
        tokenizer_files=find_tokenizer_files(folder, str(config.get("model_type", ""))),
        config=config,
        recipe=recipe,
        kind=_kind_of(config, tensors),
        tensors=tensors,
        max_length=_max_length(folder, config, recipe),
    )


def _describe_adapted(
    whole: Path, recipe: Recipe, adapter: Adapter, base: Checkpoint
) -> Checkpoint:
    """The base of an adapter, with the adapter's recipe if it has one, else with the base's.

    Raises:
        UnsupportedModel: an adapter of an adapter, or one that has another tokenizer.
    """
    if base.adapter is not None:
        raise UnsupportedModel(f"{adapter.folder} is an adapter of the adapter {base.folder}")
    _refuse_other_tokenizer(adapter.folder, base.path)
    own = base.recipe if recipe.pooling is None else replace(recipe, model_folder=base.path)
    return replace(
        base,
        folder=whole,
        recipe=own,
        max_length=_max_length(base.path, base.config, own),
        adapter=adapter,
    )


def _refuse_other_tokenizer(folder: Path, base: Path) -> None:
    """Refuse tokens of the adapter's own: the base's tokenizer is used."""
    own, of_base = (read_json_object(place / "tokenizer.json") for place in (folder, base))
    parts = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "model")
    if own and of_base and any(own.get(part) != of_base.get(part) for part in parts):
        raise UnsupportedModel(
            f"the adapter in {folder} has another tokenizer than its base {base}",
            hint="merge it into the weights (peft: merge_and_unload) and save the model",
        )


def _find_folder(name: str | Path, *, may_download: bool) -> Path:
    """Absolute path of the checkpoint's folder, downloaded if need be.

    Raises:
        CheckpointError: neither a folder nor the name of a model that can be downloaded.
    """
    if not str(name):  # as a path it is the working folder
        raise CheckpointError(
            "the name of a model is empty",
            hint="name a folder or a hub model, or leave the option out for the built-in one",
        )
    path = _expanded(name)
    if path.is_dir():
        return path.resolve()
    if str(name) == BUILTIN:
        return find_builtin_model().resolve()
    if path.exists():
        raise CheckpointError(f"{path} is a file; a checkpoint is a folder with config.json")
    if isinstance(name, Path) or name.startswith((".", "/", "~")) or not _HUB_NAME.fullmatch(name):
        raise CheckpointError(f"there is no checkpoint folder {path}", hint=_suggest(path))
    found = _find_in_hub_cache(name)
    if found is None and not may_download:
        raise CheckpointError(f"{name} is neither a folder nor in the local hub cache")
    return found or _download(name)


def find_by_model_name(name: str) -> list[Path]:
    """Folders in the local hub cache of models called `name`, whoever their owners are."""
    if not re.fullmatch(r"[\w.-]+", name):
        return []
    owners = sorted(path.name for path in _hub_cache().glob(f"models--*--{name}"))
    names = (owner.removeprefix("models--").replace("--", "/") for owner in owners)
    return [path for path in map(_find_in_hub_cache, names) if path is not None]


def list_hub_cache() -> dict[str, Path]:
    """Folder by name of every model in the local hub cache that a name would load."""
    found = {}
    for repository in sorted(_hub_cache().glob("models--*")):
        name = repository.name.removeprefix("models--").replace("--", "/")
        folder = _find_in_hub_cache(name)
        if folder is not None:
            found[name] = folder
    return found


def _suggest(absent: Path) -> str:
    """A hint that lists the checkpoints beside the folder `absent`."""
    parent = absent.parent
    if not parent.is_dir():
        return f"nor is there a folder {parent}; give a folder with config.json, or a hub name"
    near = sorted(file.parent.name for file in parent.glob("*/config.json"))
    if near:
        return f"{parent} holds the checkpoints {', '.join(near[:_MOST_NAMED])}"
    return f"{parent} holds no checkpoint; give a folder with config.json, or a hub name"


def _find_in_hub_cache(name: str) -> Path | None:
    """The snapshot that ``main`` of hub model `name` points at, if it is in the local hub cache."""
    for owner_and_model in (name, f"sentence-transformers/{name}"):
        repository = _hub_cache() / f"models--{owner_and_model.replace('/', '--')}"
        reference = repository / "refs" / "main"
        if reference.is_file():
            snapshot = repository / "snapshots" / reference.read_text("utf-8").strip()
            if (snapshot / "config.json").exists() or (snapshot / "modules.json").exists():
                return snapshot
    return None


def _hub_cache() -> Path:
    """As huggingface_hub: HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return _expanded(os.environ[variable])
    if os.environ.get("HF_HOME"):
        return _expanded(os.environ["HF_HOME"]) / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _expanded(cache) / "huggingface" / "hub"


def _expanded(path: str | Path) -> Path:
    """Unlike ``Path.expanduser``, a home that nothing tells leaves the path as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def _download(name: str) -> Path:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() not in _FALSE:
        raise CheckpointError(
            f"{name} is neither a folder nor in the local hub cache {_hub_cache()}",
            hint="HF_HUB_OFFLINE is set; unset it to download, or give a folder",
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(_WANTED)))
    except Exception as error:  # the hub client raises a dozen classes for one reason
        raise CheckpointError(
            f"{name} is neither a folder nor a model that can be downloaded: "
            f"{str(error).partition(chr(10))[0]}",
            hint="check the spelling and the network (HF_ENDPOINT names a mirror), or download it"
            " elsewhere and give the folder",
        ) from error


def canonical_config(config: Config) -> str:
    """The config as one JSON text, without the entries that name its origin.

    A padding token that positions count from is in it, whether stated or not.
    """
    kept = {key: value for key, value in config.items() if key not in _PROVENANCE}
    if config.get("model_type") in _COUNTING_FROM_PADDING:
        kept.setdefault("pad_token_id", _PADDING)
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)


def read_shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape from a safetensors header: 8 bytes little-endian length, then JSON.

    Raises:
        CheckpointError: truncated or not a safetensors file.
    """
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, _LONGEST_HEADER_BYTES)))
        n_bytes = file.stat().st_size - 8 - length
        shapes = {k: tuple(v["shape"]) for k, v in header.items() if k != "__metadata__"}
        last = max((v["data_offsets"][1] for k, v in header.items() if k in shapes), default=0)
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError),
        *(struct.error, RecursionError),
    ) as error:
        raise CheckpointError(f"{file} is not a whole safetensors file: {error}") from error
    if last != n_bytes:
        raise CheckpointError(
            f"{file} is not a whole safetensors file: {n_bytes} bytes of tensors instead of {last}"
        )
    return shapes


def _read_config(folder: Path) -> Config:
    config = read_json_object(folder / "config.json")
    if not config:
        raise CheckpointError(f"{folder} has no config.json: it is not a transformers checkpoint")
    return config


def _find_weights(folder: Path) -> tuple[Path, ...]:
    """The weight files: safetensors before pickles, one file before shards."""
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (folder / name).exists():
            return (folder / name,)
        index = read_json(folder / f"{name}.index.json")
        if isinstance(index, dict) and isinstance(index.get("weight_map"), dict):
            return _find_shards(folder, index["weight_map"].values())
    return (_find_only_weights(folder),)


def _find_shards(folder: Path, names: Iterable[object]) -> tuple[Path, ...]:
    shards = tuple(sorted({folder / str(name) for name in names}))
    absent = [shard.name for shard in shards if not shard.exists()]
    if absent:
        raise MissingWeights(f"{folder} lacks the weight files {absent}")
    return shards


def _find_only_weights(folder: Path) -> Path:
    others = sorted(
        path for path in folder.iterdir() if path.suffix in {".safetensors", ".bin", ".pt", ".pth"}
    )
    others = [path for path in others if path.stem not in {"training_args", "optimizer"}]
    if len(others) == 1:
        return others[0]
    raise MissingWeights(
        f"{folder} has no model.safetensors or pytorch_model.bin"
        + (f", and more than one candidate: {[path.name for path in others]}" if others else "")
    )


def _kind_of(config: Config, tensors: Mapping[str, tuple[int, ...]]) -> Kind:
    given = config.get("architectures")
    names = given if isinstance(given, list) else ()
    if any("TokenClassification" in str(name) or "CRF" in str(name).upper() for name in names):
        return "tagger"
    return "tagger" if any(map(belongs_to_crf, tensors)) else "encoder"


def belongs_to_crf(name: str) -> bool:
    """Whether the tensor `name` is part of a CRF, which only a tagger has."""
    return "crf." in name.lower()


def _max_length(folder: Path, config: Config, recipe: Recipe) -> int:
    limits = [count_positions(config) or _POSITIONS - first_position(config)]
    stated = read_json_object(folder / "tokenizer_config.json").get("model_max_length")
    if isinstance(stated, int) and 0 < stated < _NO_LIMIT:
        limits.append(stated)
    if recipe.max_length is not None:
        limits.append(recipe.max_length)
    return min(limits)


def count_positions(config: Config) -> int | None:
    """Longest sequence that the position embeddings allow; None where the config has no number."""
    is_gpt = config.get("model_type") in _WITH_N_POSITIONS
    positions = config.get("n_positions" if is_gpt else "max_position_embeddings")
    if not isinstance(positions, int) or positions <= 0:
        return None
    return positions - first_position(config)


def longest_window(checkpoint: Checkpoint) -> int:
    """The most tokens that may be asked for: the model's positions, if they are not relative.

    Where the config has no number of them, its default limit is taken for one.
    """
    if checkpoint.config.get("model_type") in _WITHOUT_POSITIONS:
        return _NO_LIMIT
    return count_positions(checkpoint.config) or checkpoint.max_length


def first_position(config: Config) -> int:
    """Row of the first token's position: 0, or ``pad_token_id + 1`` for RoBERTa's descendants."""
    if config.get("model_type") not in _COUNTING_FROM_PADDING:
        return 0
    padding = config.get("pad_token_id", _PADDING)
    return (padding if isinstance(padding, int) else 0) + 1
