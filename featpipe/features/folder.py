"""Where a checkpoint lies: a local folder, or a hub name resolved to one.

A name that is an existing folder is that folder. Anything shaped like ``owner/model`` (or a bare
model name) is looked up in the local hub cache first, without the network; only what is not there
is downloaded, and not at all when ``HF_HUB_OFFLINE`` is set. No torch, no transformers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from featpipe.errors import CheckpointError

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")

#: What a checkpoint may consist of; weights of other frameworks stay on the hub. Code is not run
#: unless ``trust_remote_code`` asks for it.
_WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.bin", "*.py")
#: Neighbours of a folder that is not there, as a suggestion.
_MOST_NAMED = 5

_FALSE = frozenset({"", "0", "false", "no", "off"})


def find_folder(name: str | Path) -> Path:
    """Absolute path of the checkpoint's folder.

    Raises:
        CheckpointError: neither a folder nor a hub name that can be had.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve()
    if path.exists():
        raise CheckpointError(f"{path} is a file; a checkpoint is a folder with config.json")
    if isinstance(name, Path) or name.startswith((".", "/", "~")) or not _HUB_NAME.fullmatch(name):
        raise CheckpointError(f"there is no checkpoint folder {path}", hint=_suggest(path))
    return find_in_hub_cache(name) or _download(name)


def _suggest(absent: Path) -> str:
    """What there is where `absent` was looked for."""
    parent = absent.parent
    if not parent.is_dir():
        return f"nor is there a folder {parent}; give a folder with config.json, or a hub name"
    near = sorted(file.parent.name for file in parent.glob("*/config.json"))
    if near:
        return f"{parent} holds the checkpoints {', '.join(near[:_MOST_NAMED])}"
    return f"{parent} holds no checkpoint; give a folder with config.json, or a hub name"


def find_in_hub_cache(name: str) -> Path | None:
    """The snapshot that ``main`` of hub model `name` points at, if it was downloaded before."""
    for owner_and_model in (name, f"sentence-transformers/{name}"):
        repository = hub_cache() / f"models--{owner_and_model.replace('/', '--')}"
        reference = repository / "refs" / "main"
        if reference.is_file():
            snapshot = repository / "snapshots" / reference.read_text("utf-8").strip()
            if (snapshot / "config.json").exists() or (snapshot / "modules.json").exists():
                return snapshot
    return None


def hub_cache() -> Path:
    """The hub's own rule: HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "huggingface" / "hub"


def _download(name: str) -> Path:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() not in _FALSE:
        raise CheckpointError(
            f"{name} is neither a folder nor in the local hub cache {hub_cache()}",
            hint="HF_HUB_OFFLINE is set; unset it to download, or give a folder",
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(_WANTED)))
    except Exception as error:  # the hub client raises a dozen kinds; all mean the same here
        raise CheckpointError(
            f"{name} is neither a folder nor a model that can be downloaded: {error}",
            hint="check the spelling, or download it elsewhere and give the folder",
        ) from error
