"""An encoder: texts in, vectors out.

Guarantees:

* A text's vector has the same bytes for any other texts in the call, in any order, on any number of
  threads (on CPU, where `Encoder.is_invariant`).
* No text is truncated unless asked for: a long one becomes several windows (`windows`), whose
  number is reported.
* A text without a finite vector is an error, or is named in `Encoded.faults`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from featpipe.encoders.bert import PackedBert, Placement
from featpipe.encoders.checkpoint import Checkpoint, belongs_to_crf, describe_checkpoint
from featpipe.encoders.decoder import load_decoder
from featpipe.encoders.encoded import Encoded, join, report_faults
from featpipe.encoders.fingerprint import refuse_changes
from featpipe.encoders.foreign import load_foreign
from featpipe.encoders.forward import Forwarder
from featpipe.encoders.memory import keep_freed_memory
from featpipe.encoders.packing import Sequences
from featpipe.encoders.pooling import Steps, find_single, normalise, pool
from featpipe.encoders.portions import Portion, overlap, places_in, portions_for
from featpipe.encoders.precision import (
    find_device,
    is_coarse,
    resolve_precision,
    running_threads,
)
from featpipe.encoders.spec import CUT_RULE, EncoderSettings, Spec, encoder_spec, fingerprint_of
from featpipe.encoders.tokenizer import Tokenizer
from featpipe.encoders.tokens import Tokens, find_unknown
from featpipe.encoders.trunk import Trunk, choose_dtype, has_packed_forward, load_trunk, open_parts
from featpipe.encoders.windows import Vectors, Windows, combine, plan_windows
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ids, Ints

UNKNOWN = "it holds a token for which the model has no embedding"
NO_TOKENS = "it has no tokens"


@dataclass(frozen=True, slots=True)
class Started:
    """Texts on their way through the model."""

    windows: Windows
    sequences: Sequences
    packs: Iterator[tuple[Pack, Vectors]]
    """Rows of each pack; on a card they are under way."""


class Encoder:
    """A loaded encoder. Not thread-safe; one per worker."""

    def __init__(
        self,
        trunk: Trunk,
        tokenizer: Tokenizer,
        spec: Spec,
        steps: Steps | None = None,
        *,
        refuses_long: bool = False,
    ) -> None:
        self.spec = spec
        self.fingerprint = fingerprint_of(spec)
        self.trunk = trunk
        self.tokenizer = tokenizer
        self.steps = steps or Steps(trunk.width)
        self.dim = self.steps.width
        self.threads = 1
        self.refuses_long = refuses_long
        self.n_repeated = 0
        self._tokenize_s = 0.0
        self.forwarder = Forwarder(trunk)
        self._exact: Forwarder | None = None

    @classmethod
    def load(
        cls,
        name: str | Path,
        settings: EncoderSettings | None = None,
        *,
        device: str = "cpu",
        threads: int = 1,
    ) -> Encoder:
        """Load a checkpoint by folder or hub name.

        Raises:
            CheckpointError: unusable, incomplete or changing files.
            UnsupportedModel: an architecture that neither `bert` nor transformers computes.
            UsageError: a setting that the checkpoint cannot follow.
            UnknownDevice: a device this machine does not have.
        """
        settings = settings or EncoderSettings()
        target = find_device(device)
        keep_freed_memory()
        precision = resolve_precision(settings.precision, device=device)
        asked, settings = settings.precision, replace(settings, precision=precision)
        checkpoint = describe_checkpoint(name)
        with refuse_changes(checkpoint.files, checkpoint.path):
            spec = encoder_spec(checkpoint, settings, device)
            if asked == "auto" and is_coarse(spec):
                spec = encoder_spec(checkpoint, replace(settings, precision="exact"), device)
            tokenizer = Tokenizer.load(checkpoint)
            trunk = _load_trunk(checkpoint, spec, target, trust=settings.trust_remote_code)
            tokenizer.check_fits(trunk.n_words, checkpoint.path)
            steps = Steps.load(checkpoint.recipe.steps, trunk.width)
        encoder = cls(trunk, tokenizer, spec, steps, refuses_long=settings.on_truncate == "error")
        encoder.threads = threads
        return encoder

    @property
    def is_invariant(self) -> bool:
        """Whether the first guarantee holds with the kernels in use here."""
        return self.trunk.is_invariant

    @property
    def notes(self) -> tuple[str, ...]:
        """Fallbacks in use, in words; none for BERT-like models on CPU."""
        return tuple(f"{n} {what}" if n else what for what, n in self.counts.items())

    @property
    def counts(self) -> dict[str, int]:
        """Fallbacks for the run record: times until now, or 0 for one that is always in use."""
        counts = dict.fromkeys(self.trunk.notes, 0)
        if not self.tokenizer.is_fast:
            counts["the tokenizer is of a design that runs slowly"] = 0
        counts |= self.forwarder.counts
        if self.n_repeated:
            counts["sequences overflowed fp16 and were repeated in float32"] = self.n_repeated
        return counts

    def encode(
        self, texts: Sequence[str], *, on_fault: str = "raise", prompt: str | None = None
    ) -> Encoded:
        """Encode `texts`; equal ones are computed once.

        Args:
            texts: units; an empty one is allowed.
            on_fault: ``raise``, or ``report`` in ``Encoded.faults`` and encode the others.
            prompt: put before each instead of the spec's, for queries. The vectors are then not of
                this fingerprint and must not be stored under it.

        Raises:
            EncodingError: units without a finite vector; ``error.units`` holds their numbers.
        """
        distinct = list(dict.fromkeys(texts))
        numbers = {text: number for number, text in enumerate(distinct)}
        inverse = np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts))
        portions = portions_for(self.trunk.device, distinct)
        with running_threads(self.threads), torch.inference_mode():
            start = partial(self._start_portion, prompt)
            parts = list(overlap(portions, start, self._finish_portion))
        return join(parts).take(places_in(portions)[inverse], on_fault=on_fault)

    def _start_portion(self, prompt: str | None, portion: Portion) -> tuple[Tokens, Started]:
        begun = perf_counter()
        tokens = self.tokenizer.encode(self._with_prompt(portion.texts, prompt))
        self._tokenize_s += perf_counter() - begun
        return tokens, self.start(tokens)

    def _finish_portion(self, portion: tuple[Tokens, Started]) -> Encoded:
        tokens, started = portion
        every, vectors = np.arange(len(tokens.ends)), self.collect(started)
        return self.make_encoded(
            vectors, started.windows.n_windows, tokens, every, on_fault="report"
        )

    def encode_tokens(
        self, sequences: Sequence[Sequence[int]], *, prompt: str | None = None
    ) -> Encoded:
        """Encode texts that arrive as token ids, without special ones, as `encode` would.

        Raises:
            EncodingError: an id beyond the vocabulary, or sequences without a finite vector;
                ``error.units`` holds their numbers.
        """
        lengths = np.fromiter((len(sequence) for sequence in sequences), np.int64, len(sequences))
        flat = np.fromiter((i for sequence in sequences for i in sequence), np.int64)
        ends = np.cumsum(lengths)
        beyond = np.flatnonzero((flat < 0) | (flat >= self.trunk.n_words))
        if len(beyond):
            numbers = np.unique(np.searchsorted(ends, beyond, side="right")).tolist()
            raise report_faults(dict.fromkeys(numbers, UNKNOWN))
        before = self.tokenizer.encode(self._with_prompt([""], prompt)).ids
        tokens = _put_before(before, flat.astype(np.int32), ends)
        with running_threads(self.threads), torch.inference_mode():
            vectors, windows = self.encode_windows(tokens)
        every = np.arange(len(sequences))
        return self.make_encoded(vectors, windows.n_windows, tokens, every, on_fault="raise")

    def count_tokens(self, texts: Sequence[str]) -> Ids:
        """Tokens (n,) of each text in `encode`, the spec's prompt and special ones included."""
        tokens = self.tokenizer.encode(self._with_prompt(texts))
        return (tokens.lengths + self.tokenizer.n_special).astype(np.int32)

    def compare_with_exact(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Cosine (n,) of each text's vector to its vector in precision ``exact``.

        1 where neither precision has one, 0 where only one of the two has.
        """
        spec = self.spec | {"precision": "exact"}
        exact = Encoder(self.trunk.copy_to(), self.tokenizer, spec, self.steps)
        exact.threads = self.threads
        found, expected = (
            encoder.encode(texts, on_fault="report").vectors.astype(np.float64)
            for encoder in (self, exact)
        )
        lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
        product = (found * expected).sum(axis=1)
        have_none = ~(found.any(axis=1) | expected.any(axis=1))
        return np.where(have_none, 1.0, product / np.maximum(lengths, 1e-300))

    def take_tokenize_s(self) -> float:
        """Seconds that `encode` spent on tokens since the last call."""
        seconds, self._tokenize_s = self._tokenize_s, 0.0
        return seconds

    def _with_prompt(self, texts: Sequence[str], prompt: str | None = None) -> Sequence[str]:
        before = str(self.spec["prompt"]) if prompt is None else prompt
        return [before + text for text in texts] if before else texts

    def encode_windows(self, tokens: Tokens) -> tuple[Vectors, Windows]:
        """Vectors (n, dim) of texts from their tokens, prompt included; not cast, not checked."""
        started = self.start(tokens)
        return self.collect(started), started.windows

    def start(self, tokens: Tokens) -> Started:
        """Send texts off; on a card they are computed until `collect`."""
        windows = self._plan_windows(tokens.lengths)
        # An id without an embedding is computed as id 0; `make_encoded` names its text.
        ids = np.where(tokens.ids < self.trunk.n_words, tokens.ids, 0)
        sequences = Sequences(
            ids, windows.start, windows.length, self.tokenizer.prefix, self.tokenizer.suffix
        )
        packs = self.forwarder.start(sequences, self._compute, threads=self.threads)
        return Started(windows, sequences, packs)

    def collect(self, started: Started) -> Vectors:
        """Vectors (n, dim) of the texts, not cast, not checked."""
        out = np.empty((len(started.windows.start), self.trunk.width), np.float32)
        for pack, rows in started.packs:
            out[pack.sequences] = rows
        self.repeat_overflowed(out, started.sequences)
        return self.steps(combine(out, started.windows, self.spec["pooling"]))

    def _plan_windows(self, lengths: Ints) -> Windows:
        capacity = self.spec["max_length"] - self.tokenizer.n_special
        return plan_windows(
            lengths,
            capacity=capacity,
            stride=min(self.spec["stride"], capacity),
            only_first=self.refuses_long or self.spec["window_rule"] == CUT_RULE,
        )

    def _compute(self, trunk: Trunk, pack: Pack) -> torch.Tensor:
        n_layers, pooling = self.spec["layer"], self.spec["pooling"]
        single = find_single(pack, pooling)
        if single is not None and isinstance(trunk, PackedBert) and pack.lengths.all():
            return trunk.forward_rows(pack, single, n_layers=n_layers)
        return pool(trunk.forward(pack, n_layers=n_layers), pack, pooling)

    def repeat_overflowed(self, vectors: Vectors, sequences: Sequences) -> None:
        """Repeat in float32 the sequences that left fp16's range, in place."""
        if self.trunk.device.type != "cuda" or self.spec["precision"] != "mixed":
            return
        overflowed = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if not len(overflowed):
            return
        if self._exact is None:
            self._exact = Forwarder(self.trunk.copy_to())
        self.n_repeated += len(overflowed)
        for part, rows in self._exact.run(sequences, self._compute, only=overflowed):
            vectors[part.sequences] = rows

    def make_encoded(
        self, vectors: Vectors, n_windows: Ints, tokens: Tokens, inverse: Ints, *, on_fault: str
    ) -> Encoded:
        """Finish the vectors of distinct texts; row i of the result is that of ``inverse[i]``."""
        finished, reasons = self._finish(vectors)
        reasons |= dict.fromkeys(find_unknown(tokens, self.trunk.n_words), UNKNOWN)
        n_tokens = tokens.lengths + self.tokenizer.n_special
        reasons |= self._judge_lengths(n_tokens)
        finished[list(reasons)] = 0
        every = Encoded(
            vectors=finished,
            n_tokens=n_tokens.astype(np.int32),
            n_windows=n_windows.astype(np.int32),
            faults=reasons,
        )
        return every.take(inverse, on_fault=on_fault)

    def _finish(self, vectors: Vectors) -> tuple[npt.NDArray[np.generic], dict[int, str]]:
        """Normalise and cast; return the rows, and a reason for each that is not finite."""
        if self.spec["normalise"]:
            vectors = normalise(vectors)
        reasons = dict.fromkeys(
            np.flatnonzero(~np.isfinite(vectors).all(axis=1)).tolist(),
            "the model gives NaN or infinity for it",
        )
        dtype = self.spec["dtype"]
        cast = _cast(vectors, dtype)
        for row in np.flatnonzero(~_is_finite(cast, dtype).all(axis=1)).tolist():
            reasons.setdefault(row, f"its vector is too large for {dtype}; use float32")
        return cast, reasons

    def _judge_lengths(self, n_tokens: Ints) -> dict[int, str]:
        """Reason by text without tokens, or beyond one window where that is refused."""
        reasons = dict.fromkeys(np.flatnonzero(n_tokens == 0).tolist(), NO_TOKENS)
        if not self.refuses_long:
            return reasons
        limit = self.spec["max_length"]
        return reasons | {
            text: f"it has {n_tokens[text]} tokens, more than the {limit} of one window"
            for text in np.flatnonzero(n_tokens > limit).tolist()
        }


def _load_trunk(checkpoint: Checkpoint, spec: Spec, device: torch.device, *, trust: bool) -> Trunk:
    if has_packed_forward(checkpoint):
        parts = open_parts(checkpoint)
        placement = Placement(spec["layer"], choose_dtype(spec["precision"], device), device)
        known = frozenset(filter(belongs_to_crf, parts.head))
        return load_trunk(checkpoint, parts, placement, known=known)
    if spec["precision"] == "approx":
        raise UsageError(
            f"precision approx is for BERT and its kin, not for {checkpoint.architecture}",
            hint="use precision mixed",
        )
    foreign = load_foreign(checkpoint, spec, device=device, trust_remote_code=trust)
    return load_decoder(foreign) or foreign


def _cast(vectors: Vectors, dtype: str) -> npt.NDArray[np.generic]:
    """To the stored dtype, to nearest even; bfloat16 as its bits in uint16.

    Torch makes the same float16 of all but NaN as numpy, in a fifth of its time.
    """
    if dtype == "float16":
        return torch.from_numpy(vectors).half().numpy()
    if dtype == "bfloat16":
        bits = vectors.view(np.uint32).astype(np.uint64)
        is_odd = (bits >> np.uint64(16)) & np.uint64(1)
        return ((bits + 0x7FFF + is_odd) >> np.uint64(16)).astype(np.uint16)
    return vectors.astype(dtype)


def _is_finite(cast: npt.NDArray[np.generic], dtype: str) -> npt.NDArray[np.bool_]:
    if dtype == "float32":
        return np.asarray(np.isfinite(cast))
    exponent = 0x7F80 if dtype == "bfloat16" else 0x7C00
    return np.asarray((cast.view(np.uint16) & exponent) != exponent)


def _put_before(prompt: Ids, ids: Ids, ends: Ints) -> Tokens:
    """The sequences of `ids` that end at `ends`, each with `prompt` before it."""
    if not len(prompt) or not len(ends):
        return Tokens(ids, ends)
    pieces = np.split(ids, ends[:-1])
    joined = np.concatenate([part for piece in pieces for part in (prompt, piece)])
    return Tokens(joined, ends + len(prompt) * np.arange(1, len(ends) + 1))
