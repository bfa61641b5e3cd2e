"""Word pieces of an encoder's tokenizer, as spans: terms without a dictionary of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from featpipe.features.tokenizer import Tokenizer
    from featpipe.features.words.codes import CodedTexts, Offsets


class Pieces:
    """Finds where a checkpoint's tokenizer cuts. Pickles as the checkpoint's path.

    Raises:
        CheckpointError: the folder holds no model, or no tokenizer that can be read.
    """

    def __init__(self, encoder: Path | str) -> None:
        from featpipe.features.checkpoint import describe_checkpoint
        from featpipe.features.fingerprint import digest_named

        self._checkpoint = describe_checkpoint(encoder)
        self.content = digest_named(self._checkpoint.tokenizer_files)
        """Identity of the tokenizer's files."""
        self._tokenizer: Tokenizer | None = None

    def spans(self, texts: Sequence[str], coded: CodedTexts) -> tuple[Offsets, Offsets]:
        """Starts and ends (n_pieces,) int64 over all texts laid end to end, empty ones left out."""
        if self._tokenizer is None:
            from featpipe.features.tokenizer import Tokenizer

            self._tokenizer = Tokenizer.load(self._checkpoint)
        tokens = self._tokenizer.encode(texts, with_offsets=True)
        if tokens.start is None or tokens.stop is None:
            raise RuntimeError("the tokenizer was asked for offsets and gave none")
        bases = np.repeat(coded.bounds[:-1], tokens.lengths)
        starts, ends = bases + tokens.start, bases + tokens.stop
        kept = ends > starts
        return starts[kept], ends[kept]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_tokenizer": None}
