"""Texts in, entities out: the worker's side of a token-classification checkpoint.

Guarantees:

* Every character is seen: long texts become windows cut at sentence ends (`stitching`), and each
  token's logits come from the window where it is farther from a cut.
* Offsets are characters of the text as it was given.
* On texts of one window the entities are those of transformers' pipeline (``simple``), where the
  checkpoint has no CRF; with one they are those of pytorch-crf's best path.
* The same bytes whatever other texts are in the call, on CPU, where `is_invariant` says so: for
  BERT and its kin. Other architectures are run by transformers, and `counts` names it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from featpipe.encoders.bert import PackedBert
from featpipe.encoders.checkpoint import Checkpoint, describe_checkpoint
from featpipe.encoders.crf import Head, load_head
from featpipe.encoders.encoder import UNKNOWN, report_faults
from featpipe.encoders.entities import Entities, Tags, decode
from featpipe.encoders.fingerprint import identity_of
from featpipe.encoders.foreign import load_foreign
from featpipe.encoders.forward import Forwarder
from featpipe.encoders.heap import keep_freed_memory
from featpipe.encoders.packing import Sequences
from featpipe.encoders.precision import find_device, resolve_precision, running_threads
from featpipe.encoders.spec import Spec, TaggerSettings, fingerprint_of, tagger_spec
from featpipe.encoders.tokenizer import Tokenizer
from featpipe.encoders.tokens import find_unknown
from featpipe.encoders.trunk import is_own, load_trunk, open_parts
from featpipe.encoders.windows import Cuts, cut_text, find_sentence_starts, own_starts
from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Tokens
    from featpipe.encoders.trunk import Trunk


class Tagger:
    """A loaded tagger. Not thread-safe; one per worker."""

    def __init__(self, trunk: Trunk, head: Head, tokenizer: Tokenizer, spec: Spec) -> None:
        self.spec = spec
        self.fingerprint = fingerprint_of(spec)
        self.trunk = trunk
        self.head = head
        self.tokenizer = tokenizer
        self.threads = 1
        self.shares_trunk = False
        self._n_layers: int | None = None
        self._forwarder = Forwarder(trunk)
        self._tags = Tags.of(spec["labels"])

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
            trunk: that of an encoder in this process; used instead of a second copy when its
                weights, precision and device are the same (`shares_trunk` says whether).

        Raises:
            CheckpointError: unusable, incomplete or changing files.
            UnsupportedModel: an architecture that neither we nor transformers compute.
            UsageError: no tagger, or a setting that it cannot follow.
            UnknownDevice: a device this machine does not have.
        """
        settings = settings or TaggerSettings()
        target = find_device(device)
        keep_freed_memory()
        precision = resolve_precision(settings.precision, device=device)
        checkpoint = describe_checkpoint(name)
        before = _identities(checkpoint)
        spec = tagger_spec(checkpoint, replace(settings, precision=precision), device)
        loaded: Trunk
        if is_own(checkpoint):
            parts = open_parts(checkpoint)
            head = load_head(
                parts.head, n_labels=len(spec["labels"]), source=checkpoint.path, device=target
            )
            loaded = load_trunk(
                checkpoint,
                parts,
                n_layers=checkpoint.n_layers,
                precision=spec["precision"],
                device=target,
                known=head.names,
                share=trunk if isinstance(trunk, PackedBert) else None,
            )
        else:
            head = Head()
            loaded = load_foreign(checkpoint, spec, device=target, is_tagger=True)
            if loaded.width != len(spec["labels"]):
                raise CheckpointError(
                    f"{checkpoint.path} has scores for {loaded.width} labels, but id2label in"
                    f" config.json names {len(spec['labels'])}",
                    hint="name them all, numbered from 0",
                )
        tagger = cls(loaded, head, Tokenizer.load(checkpoint), spec)
        if _identities(checkpoint) != before:
            raise CheckpointError(f"{checkpoint.path} changed while it was loaded")
        tagger.threads = threads
        if isinstance(loaded, PackedBert):
            tagger._n_layers = checkpoint.n_layers  # a shared trunk may have more
        tagger.shares_trunk = loaded is trunk
        return tagger

    @property
    def is_invariant(self) -> bool:
        """Whether the last guarantee holds with the kernels at work here."""
        return self.trunk.is_invariant

    @property
    def counts(self) -> dict[str, int]:
        """Fallbacks at work, for the run record: how often, 0 for what holds all the time."""
        return dict.fromkeys(self.trunk.notes, 0) | self._forwarder.counts

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity types; ``Entities.label`` counts in this."""
        return self._tags.types

    def find_entities(self, texts: Sequence[str]) -> Entities:
        """Entities of each text.

        Raises:
            EncodingError: the model gives NaN for some; ``error.units`` holds their numbers.
        """
        tokens = self.tokenizer.encode(texts, with_offsets=True)
        unknown = find_unknown(tokens, self.trunk.n_words)
        if unknown:
            raise report_faults(dict.fromkeys(unknown, UNKNOWN))
        cuts = self._cut(texts, tokens)
        with running_threads(self.threads), torch.inference_mode():
            logits = self._compute_logits(tokens, cuts)
        return self.decode(logits, tokens)

    def score_tokens(self, texts: Sequence[str], tokens: Tokens) -> npt.NDArray[np.float32]:
        """Logits (tokens, labels) of texts whose tokens, with offsets, are known."""
        return self._compute_logits(tokens, self._cut(texts, tokens))

    def decode(self, logits: npt.NDArray[np.float32], tokens: Tokens) -> Entities:
        """Entities from logits (tokens, labels).

        Raises:
            EncodingError: logits that are not finite; ``error.units`` holds their texts' numbers.
        """
        broken = np.flatnonzero(~np.isfinite(logits).all(axis=1))
        if len(broken):
            units = np.unique(np.searchsorted(tokens.ends, broken, side="right")).tolist()
            raise report_faults(dict.fromkeys(units, "the tagger gives NaN or infinity for it"))
        labels, scores = self.head.choose(logits, tokens.lengths)
        return decode(labels, scores, tokens, self._tags)

    def _cut(self, texts: Sequence[str], tokens: Tokens) -> Cuts:
        starts = tokens.start
        if starts is None:
            raise ValueError("tokens without offsets")
        capacity = self.spec["max_length"] - len(self.tokenizer.prefix) - len(self.tokenizer.suffix)
        start: list[int] = []
        length: list[int] = []
        own: list[int] = []
        for text, end, count in zip(
            texts, tokens.ends.tolist(), tokens.lengths.tolist(), strict=True
        ):
            first = end - count
            windows = [(0, count)]
            if count > capacity:
                breaks = find_sentence_starts(text, starts[first:end])
                windows = cut_text(
                    count,
                    breaks,
                    capacity=capacity,
                    overlap=min(self.spec["overlap"], capacity // 2),
                )
            start += [first + a for a, _ in windows]
            length += [b - a for a, b in windows]
            own += [first + a for a in own_starts(windows)]
        return Cuts(np.array(start, np.int64), np.array(length, np.int64), np.array(own, np.int64))

    def _compute(self, trunk: Trunk, pack: Pack) -> torch.Tensor:
        states = trunk.forward(pack, n_layers=self._n_layers)
        return self.head.score(states.to(self.trunk.device), pack)

    def _compute_logits(self, tokens: Tokens, cuts: Cuts) -> npt.NDArray[np.float32]:
        """Shapes: -> (tokens, labels), each token's from the window that owns it."""
        sequences = Sequences(
            tokens.ids, cuts.start, cuts.length, self.tokenizer.prefix, self.tokenizer.suffix
        )
        own_stop = np.append(cuts.own_start[1:], len(tokens.ids))
        out = np.empty((len(tokens.ids), len(self.spec["labels"])), np.float32)
        for pack, found in self._forwarder.run(sequences, self._compute, threads=self.threads):
            # Row of the window's first own token in the pack, for windows laid end to end.
            count = own_stop[pack.sequences] - cuts.own_start[pack.sequences]
            skipped = cuts.own_start[pack.sequences] - cuts.start[pack.sequences]
            row = np.cumsum(pack.lengths) - pack.lengths + len(self.tokenizer.prefix) + skipped
            within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            target = np.repeat(cuts.own_start[pack.sequences], count) + within
            out[target] = found[np.repeat(row, count) + within]
        return out


def _identities(checkpoint: Checkpoint) -> list[str]:
    return [identity_of(file) for file in checkpoint.files]
