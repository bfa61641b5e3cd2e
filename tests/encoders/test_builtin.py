"""The built-in model goes by its name, as help texts and spaces call it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tiny_checkpoints import save_encoder

from featpipe.encoders.builtin import BUILTIN, find_builtin_model, is_builtin
from featpipe.encoders.checkpoint import describe_checkpoint

if TYPE_CHECKING:
    import pytest


def test_the_built_in_model_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert describe_checkpoint(BUILTIN).folder == find_builtin_model().resolve()
    assert is_builtin(BUILTIN)
    own = save_encoder(tmp_path / BUILTIN)
    assert describe_checkpoint(BUILTIN).folder == own.resolve()
    assert not is_builtin(BUILTIN)
