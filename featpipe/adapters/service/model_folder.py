"""Fitted fields in a folder: fitted once by one process, loaded by every other.

The folder belongs to one service, is made by it for this user alone, and is gone with it: what is
unpickled there was written by its own workers.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class ModelFolder(MutableMapping[str, Any]):
    """Fingerprint -> fitted field. Any number of processes may read and write at a time.

    A file is complete or absent. What was read stays in memory until it is deleted or `keep_only`
    lets go of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Any] = {}

    def __getitem__(self, fingerprint: str) -> Any:  # noqa: ANN401  # a FieldModel; its class is not needed here
        if fingerprint not in self._read:
            try:
                data = self._path(fingerprint).read_bytes()
            except FileNotFoundError:
                raise KeyError(fingerprint) from None
            self._read[fingerprint] = pickle.loads(data)  # noqa: S301  # our own workers wrote it
        return self._read[fingerprint]

    def __setitem__(self, fingerprint: str, model: object) -> None:
        path = self._path(fingerprint)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_bytes(pickle.dumps(model, 5))
        aside.replace(path)
        self._read[fingerprint] = model

    def __delitem__(self, fingerprint: str) -> None:
        self._read.pop(fingerprint, None)
        try:
            self._path(fingerprint).unlink()
        except FileNotFoundError:
            raise KeyError(fingerprint) from None

    def __iter__(self) -> Iterator[str]:
        return iter([path.stem for path in self._folder.glob("*.model")])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._read or self._path(str(fingerprint)).exists()

    def keep_only(self, fingerprints: set[str]) -> None:
        """Let go of all others in memory; their files stay."""
        self._read = {name: model for name, model in self._read.items() if name in fingerprints}

    def _path(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}.model"
