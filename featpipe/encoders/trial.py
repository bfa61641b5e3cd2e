"""A trial of a checkpoint: it is loaded as every worker loads it, and computes some texts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import TYPE_CHECKING

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.precision import LEAST_COSINE, find_least_cosine, keep_least_cosine
from featpipe.encoders.spec import EncoderSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.encoders.encoder import Encoder

#: Different texts, in two languages, of usual words and as many characters.
_TEXTS = ("违约责任", "合同金额", "contract", "payments")

#: Least seconds of encoding that are measured, texts of a batch, and least number of batches.
_MEASURED_S, _BATCH, _LEAST_BATCHES = 0.5, 64, 3

#: Texts on which precisions are compared.
_COMPARED = 64


@dataclass(frozen=True, slots=True)
class TrialTask:
    """Parent -> child: a checkpoint by folder or hub name, and texts to measure it on."""

    name: str
    texts: tuple[str, ...] = ()
    """None: made-up ones, of the length of sentences in contracts."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a trial."""

    same: tuple[str, ...]
    """Two different texts with equal vectors: the model does not know their characters. Else
    empty."""
    precision: str
    """What ``auto`` is for this model, here."""
    least_cosine: float | None
    """Of vectors in ``mixed`` to those in float32; None where ``mixed`` was out of question."""
    tokens_s: float
    """Tokens a second."""
    characters_s: float
    notes: tuple[str, ...] = ()


def make_trial() -> Callable[[TrialTask], Trial]:
    """The role of a child that tries checkpoints."""
    return try_checkpoint


def try_checkpoint(task: TrialTask) -> Trial:
    """Load a checkpoint, as encoder and, where it is one, as tagger, and compute texts.

    Raises:
        CheckpointError, EncodingError: as a build with this model would.
    """
    import torch

    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.tagger import Tagger

    texts = task.texts or _make_texts()
    encoder = Encoder.load(task.name, threads=torch.get_num_threads())
    least = _compare(encoder, texts)
    if least is not None and least < LEAST_COSINE:
        exact = EncoderSettings(precision="exact")
        encoder = Encoder.load(task.name, exact, threads=encoder.threads)
    vectors = encoder.encode(_TEXTS).vectors
    if describe_checkpoint(task.name).kind == "tagger":
        Tagger.load(task.name).find_entities(_TEXTS)
    pairs = combinations(range(len(_TEXTS)), 2)
    equal = next((pair for pair in pairs if (vectors[pair[0]] == vectors[pair[1]]).all()), ())
    tokens_s, characters_s = _measure(encoder, texts)
    return Trial(
        same=tuple(_TEXTS[row] for row in equal),
        precision=encoder.spec["precision"],
        least_cosine=least,
        tokens_s=tokens_s,
        characters_s=characters_s,
        notes=encoder.notes,
    )


def _compare(encoder: Encoder, texts: Sequence[str]) -> float | None:
    """The least cosine of vectors in ``mixed`` to those in float32; remembered for builds."""
    if encoder.spec["precision"] != "mixed":
        return None
    cosines = encoder.compare_with_exact(texts[:_COMPARED])
    keep_least_cosine(encoder.spec, cosines)
    earlier = find_least_cosine(encoder.spec)
    least = float(cosines.min())
    return least if earlier is None else min(least, earlier)


def _measure(encoder: Encoder, texts: Sequence[str]) -> tuple[float, float]:
    """Tokens and characters that are encoded in a second."""
    batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
    encoder.encode(batches[0], on_fault="report")
    n_tokens = n_characters = n_done = 0
    taken, begun = 0.0, perf_counter()
    while taken < _MEASURED_S or n_done < _LEAST_BATCHES:
        batch = batches[n_done % len(batches)]
        n_tokens += int(encoder.encode(batch, on_fault="report").n_tokens.sum())
        n_characters += sum(map(len, batch))
        n_done, taken = n_done + 1, perf_counter() - begun
    return n_tokens / taken, n_characters / taken


def _make_texts() -> list[str]:
    return [
        f"第{number}条 甲方应当于收到发票后{number % 60}日内支付合同金额的{number % 100}%"
        f"，逾期每日按未付款的{number / 1000}%支付违约金。"[: 12 + number % 48]
        for number in range(1, 1025)
    ]
