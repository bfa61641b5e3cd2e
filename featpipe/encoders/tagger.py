"""A tagger: texts in, entities out.

Guarantees:

* Every character is read: a long text is cut into windows at sentence ends (`windows`), and each
  token's scores come from the window where it is farther from a cut.
* Offsets are characters of the text as it was given.
* On texts of one window the entities are those of transformers' pipeline (``simple``) for a
  checkpoint without a CRF, and those of pytorch-crf's best path for one with. Their scores are
  the pipeline's unless the checkpoint is calibrated (`calibration`).
* Entities have the same bytes for any other texts in the call, on CPU, where `Tagger.is_invariant`:
  for BERT-like models. Other architectures are run by transformers, and `Tagger.counts` names it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from featpipe.encoders.bert import PackedBert, Placement
from featpipe.encoders.calibration import read_calibration
from featpipe.encoders.checkpoint import Checkpoint, describe_checkpoint
from featpipe.encoders.crf import Head, load_head
from featpipe.encoders.encoded import report_faults
from featpipe.encoders.encoder import UNKNOWN
from featpipe.encoders.entities import Entities, Tags, decode, join
from featpipe.encoders.fingerprint import refuse_changes
from featpipe.encoders.foreign import load_foreign
from featpipe.encoders.forward import Forwarder
from featpipe.encoders.memory import keep_freed_memory
from featpipe.encoders.packing import Sequences
from featpipe.encoders.portions import Portion, overlap, places_in, portions_for
from featpipe.encoders.precision import (
    find_device,
    is_coarse,
    resolve_precision,
    running_threads,
)
from featpipe.encoders.spec import Spec, TaggerSettings, fingerprint_of, tagger_spec
from featpipe.encoders.tokenizer import Tokenizer
from featpipe.encoders.tokens import find_unknown
from featpipe.encoders.trunk import choose_dtype, has_packed_forward, load_trunk, open_parts
from featpipe.encoders.windows import LabelWindows, plan_label_windows
from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.encoders.calibration import Calibration
    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints, Tokens
    from featpipe.encoders.transfer import Rows
    from featpipe.encoders.trunk import Trunk
    from featpipe.encoders.viterbi import Scores


@dataclass(frozen=True, slots=True)
class Started:
    """Texts on their way through the model."""

    windows: LabelWindows
    n_tokens: int
    packs: Iterator[tuple[Pack, Rows]]
    """Scores of each pack; on a card they are under way."""


class Tagger:
    """A loaded tagger. Not thread-safe; one per worker."""

    def __init__(
        self,
        trunk: Trunk,
        head: Head,
        tokenizer: Tokenizer,
        spec: Spec,
        calibration: Calibration | None = None,
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint_of(spec)
        self.trunk = trunk
        self.head = head
        self.tokenizer = tokenizer
        self.threads = 1
        self.shares_trunk = False
        self._forwarder = Forwarder(trunk)
        self._tags = Tags.of(spec["labels"])
        self._calibration = calibration

    @classmethod
    def load(
        cls,
        name: str | Path,
        settings: TaggerSettings | None = None,
        *,
        device: str = "cpu",
        threads: int = 1,
        trunk: object = None,
    ) -> Tagger:
        """Load a checkpoint by folder or hub name.

        Args:
            name: folder, or hub name.
            settings: None for the checkpoint's own.
            device: ``cpu`` or ``cuda:i``.
            threads: that torch may use in each call.
            trunk: that of an encoder in this process; used instead of a second copy if its weights,
                precision and device are the same (`shares_trunk`).

        Raises:
            CheckpointError: unusable, incomplete or changing files.
            UnsupportedModel: an architecture that neither `bert` nor transformers computes.
            UsageError: not a tagger, or a setting that it cannot follow.
            UnknownDevice: a device this machine does not have.
        """
        settings = settings or TaggerSettings()
        target = find_device(device)
        keep_freed_memory()
        precision = resolve_precision(settings.precision, device=device)
        checkpoint = describe_checkpoint(name)
        with refuse_changes(checkpoint.files, checkpoint.path):
            spec = tagger_spec(checkpoint, replace(settings, precision=precision), device)
            if settings.precision == "auto" and is_coarse(spec):
                spec = tagger_spec(checkpoint, replace(settings, precision="exact"), device)
            share = trunk if isinstance(trunk, PackedBert) else None
            loaded, head = _load_trunk_and_head(checkpoint, spec, target, share)
            tokenizer = Tokenizer.load(checkpoint)
            tokenizer.check_fits(loaded.n_words, checkpoint.path)
            types = Tags.of(spec["labels"]).types
            read = [read_calibration(file, types) for file in checkpoint.calibration_files]
        tagger = cls(loaded, head, tokenizer, spec, *read)
        tagger.threads = threads
        tagger.shares_trunk = loaded is trunk
        return tagger

    @property
    def is_invariant(self) -> bool:
        """Whether the last guarantee holds with the kernels in use here."""
        return self.trunk.is_invariant

    @property
    def counts(self) -> dict[str, int]:
        """Fallbacks for the run record: times until now, or 0 for one that is always in use."""
        return dict.fromkeys(self.trunk.notes, 0) | self._forwarder.counts

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity types; ``Entities.label`` is a place in it."""
        return self._tags.types

    def take_card_s(self) -> float:
        """Seconds that a card computed for this tagger since the last call; 0 on a processor."""
        return self._forwarder.take_card_s()

    def find_entities(self, texts: Sequence[str]) -> Entities:
        """Entities of each text.

        Raises:
            EncodingError: the model gives NaN for some; ``error.units`` holds their numbers.
        """
        portions = portions_for(self.trunk.device, texts)
        with running_threads(self.threads), torch.inference_mode():
            parts = list(overlap(portions, self._start_portion, self._finish_portion))
        return join(parts).take(places_in(portions))

    def _start_portion(self, portion: Portion) -> tuple[Portion, Tokens, Started]:
        tokens = self.tokenizer.encode(portion.texts, with_offsets=True)
        refuse_unknown(tokens, self.trunk.n_words, portion)
        return portion, tokens, self.start(portion.texts, tokens)

    def _finish_portion(self, started: tuple[Portion, Tokens, Started]) -> Entities:
        portion, tokens, on_the_way = started
        return self.decode(self.collect(on_the_way), tokens, portion.numbers)

    def score_tokens(self, texts: Sequence[str], tokens: Tokens) -> Scores:
        """Scores (tokens, labels) of texts whose tokens, with offsets, are known.

        Each token's scores come from the window that owns it.
        """
        return self.collect(self.start(texts, tokens))

    def start(self, texts: Sequence[str], tokens: Tokens) -> Started:
        """Send texts off; on a card they are computed until `collect`."""
        windows = self._plan_windows(texts, tokens)
        sequences = Sequences(
            tokens.ids, windows.start, windows.length, self.tokenizer.prefix, self.tokenizer.suffix
        )
        packs = self._forwarder.start(sequences, self._compute, threads=self.threads)
        return Started(windows, len(tokens.ids), packs)

    def collect(self, started: Started) -> Scores:
        """Scores (tokens, labels) of the texts."""
        out = np.empty((started.n_tokens, len(self.spec["labels"])), np.float32)
        for pack, rows in started.packs:
            started.windows.take_own(out, rows, pack, len(self.tokenizer.prefix))
        return out

    def decode(self, scores: Scores, tokens: Tokens, numbers: Ints) -> Entities:
        """Entities from scores (tokens, labels) of the texts with these `numbers`.

        Raises:
            EncodingError: scores that are not finite; ``error.units`` holds their texts' numbers.
        """
        units = tokens.texts_of(np.flatnonzero(~np.isfinite(scores).all(axis=1)))
        if units:
            reason = "the tagger gives NaN or infinity for it"
            raise report_faults(dict.fromkeys(numbers[units].tolist(), reason))
        labels, probabilities = self.head.choose(scores, tokens.lengths)
        return decode(labels, probabilities, tokens, self._tags, self._calibration)

    def _plan_windows(self, texts: Sequence[str], tokens: Tokens) -> LabelWindows:
        capacity = self.spec["max_length"] - self.tokenizer.n_special
        overlap = min(self.spec["overlap"], capacity // 2)
        return plan_label_windows(texts, tokens, capacity=capacity, overlap=overlap)

    def _compute(self, trunk: Trunk, pack: Pack) -> torch.Tensor:
        return self.score(trunk.forward(pack), pack)

    def score(self, states: torch.Tensor, pack: Pack) -> torch.Tensor:
        """Scores (t, labels) of a pack's t tokens, from their hidden states."""
        return self.head.score(states.to(self.trunk.device), pack)


def _load_trunk_and_head(
    checkpoint: Checkpoint, spec: Spec, device: torch.device, share: PackedBert | None
) -> tuple[Trunk, Head]:
    n_labels = len(spec["labels"])
    if has_packed_forward(checkpoint):
        parts = open_parts(checkpoint)
        head = load_head(parts.head, n_labels=n_labels, source=checkpoint.path, device=device)
        dtype = choose_dtype(spec["precision"], device)
        placement = Placement(checkpoint.n_layers, dtype, device)
        trunk = load_trunk(checkpoint, parts, placement, known=head.names, share=share)
        return trunk, head
    loaded = load_foreign(checkpoint, spec, device=device, is_tagger=True)
    _check_n_labels(checkpoint, n_labels, loaded.width)
    return loaded, Head()


def _check_n_labels(checkpoint: Checkpoint, n_labels: int, n_scores: int) -> None:
    if n_scores != n_labels:
        raise CheckpointError(
            f"{checkpoint.path} has scores for {n_scores} labels, but id2label in"
            f" config.json names {n_labels}",
            hint="name them all, numbered from 0",
        )


def refuse_unknown(tokens: Tokens, n_words: int, portion: Portion) -> None:
    """Refuse ids without an embedding.

    Raises:
        EncodingError: there are some; ``error.units`` holds their texts' numbers.
    """
    unknown = find_unknown(tokens, n_words)
    if unknown:
        raise report_faults(dict.fromkeys(portion.numbers[unknown].tolist(), UNKNOWN))
