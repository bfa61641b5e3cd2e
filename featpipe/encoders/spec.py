"""What is computed: settings, resolved against a checkpoint into a spec and its fingerprint.

A spec is plain JSON and holds every part on which a vector depends (guarantee: two computations
with one fingerprint give the same vectors). It holds no path and no name. No torch is imported.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from featpipe.encoders.checkpoint import Checkpoint, canonical_config, count_positions
from featpipe.encoders.fingerprint import digest_named, digest_of, digest_text
from featpipe.errors import CheckpointError, UnsupportedModel, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.encoders.recipe import Step

Pooling = Literal["mean", "cls", "max", "last", "weightedmean", "mean_sqrt_len"]
Precision = Literal["exact", "mixed", "approx", "auto"]
Dtype = Literal["float16", "float32", "bfloat16"]
OnTruncate = Literal["window", "error", "warn"]
Spec = dict[str, Any]

#: Raised whenever the same inputs would give other vectors than before.
FEATURE_VERSION = 3

#: Tokens of a window, special ones included, below which no model says anything of a text.
_SHORTEST_WINDOW = 8

#: How the windows of a long text become one vector; see `windows`.
WINDOW_RULE = {
    "mean": "mean of windows weighted by their new tokens",
    "cls": "mean of windows weighted by their new tokens",
    "max": "elementwise maximum over windows",
    "last": "last window",
    "weightedmean": "mean of windows weighted by their new tokens",
    "mean_sqrt_len": "mean of windows weighted by their new tokens",
}

#: With ``on_truncate="warn"``: as other libraries do, but counted.
CUT_RULE = "first window; the rest is left out"


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """What the user may choose; None means what the checkpoint says."""

    pooling: Pooling | None = None
    layer: int = -1
    """Hidden state to pool: 0 embeddings, 1 first layer ... or from the end, -1 the last."""
    normalise: bool | None = None
    max_length: int | None = None
    """Tokens of one window, special ones included."""
    stride: int | None = None
    """Tokens from the start of one window of a long text to the start of the next."""
    prompt: str | None = None
    """Put before every text. None: the checkpoint's default prompt, "" where it has none."""
    prompt_name: str | None = None
    """Instead of `prompt`: the name of one of the prompts that the checkpoint holds."""
    dtype: Dtype = "float16"
    precision: Precision = "auto"
    """``auto`` must be resolved (`devices.resolve_precision`) before a spec is made; `Encoder.load`
    and the pipeline do so."""
    trust_remote_code: bool = False
    on_truncate: OnTruncate = "window"
    """For a text of more tokens than one window. ``window``: all of it is read, in several;
    ``error``: it gets no vector and is named; ``warn``: only the first window is read, and the
    tokens left out are counted. Whether a text is refused changes no vector, so ``error`` shares
    its fingerprint with ``window``."""


@dataclass(frozen=True, slots=True)
class TaggerSettings:
    """As `EncoderSettings`, for token classification."""

    max_length: int | None = None
    overlap: int | None = None
    """Tokens shared by two windows where a sentence is longer than a window."""
    precision: Precision = "auto"


def encoder_spec(checkpoint: Checkpoint, settings: EncoderSettings, device: str = "cpu") -> Spec:
    """Every part of the fingerprint of `settings` on `checkpoint`, computed on `device`.

    Precision ``approx`` is for BERT and its kin on processors.

    Raises:
        UsageError: a setting that the checkpoint cannot follow, or an unresolved precision.
        CheckpointError: files that cannot be read, or a limit that leaves no room for a text.
        UnsupportedModel: trusted code that is not in the folder.
    """
    recipe = checkpoint.recipe
    precision = _resolved(settings.precision)
    if precision == "approx" and device != "cpu":
        raise UsageError(f"precision approx is for processors, not for {device}")
    max_length = _choose_length(checkpoint, settings.max_length)
    pooling = settings.pooling or recipe.pooling or "mean"
    on_truncate = _one_of("on_truncate", settings.on_truncate, ("window", "error", "warn"))
    return {
        **_common_parts("embedding", checkpoint, precision, device),
        "pooling": _one_of("pooling", pooling, tuple(WINDOW_RULE)),
        "layer": _count_layer(checkpoint, settings.layer),
        "normalise": recipe.normalise if settings.normalise is None else settings.normalise,
        "max_length": max_length,
        "stride": _choose_stride(max_length, settings.stride),
        "window_rule": CUT_RULE if on_truncate == "warn" else WINDOW_RULE[pooling],
        "prompt": _choose_prompt(checkpoint, settings),
        "lowercase": recipe.lowercase,
        "dtype": _one_of("dtype", settings.dtype, ("float16", "float32", "bfloat16")),
        **_describe_steps(recipe.steps),
        **(_describe_code(checkpoint) if settings.trust_remote_code else {}),
    }


def tagger_spec(checkpoint: Checkpoint, settings: TaggerSettings, device: str = "cpu") -> Spec:
    """Every part of the fingerprint of entities found by `checkpoint`.

    Raises:
        UsageError: not a token-classification checkpoint, or an impossible setting.
    """
    if checkpoint.kind != "tagger":
        raise UsageError(
            f"{checkpoint.path} is no token-classification checkpoint",
            hint="give it as --model, or point --ner at a fine-tuned tagger",
        )
    max_length = _choose_length(checkpoint, settings.max_length)
    overlap = max_length // 4 if settings.overlap is None else settings.overlap
    if not 0 <= overlap <= max_length // 2:
        raise UsageError(f"an overlap of {overlap} is not between 0 and half of {max_length}")
    return {
        **_common_parts(
            "entities",
            checkpoint,
            _one_of("precision of entities", _resolved(settings.precision), ("exact", "mixed")),
            device,
        ),
        "labels": list(checkpoint.labels),
        "max_length": max_length,
        "overlap": overlap,
    }


def fingerprint_of(spec: Mapping[str, Any]) -> str:
    """40 hex digits that differ whenever any part of the spec does."""
    return digest_text(json.dumps(spec, sort_keys=True, ensure_ascii=False, allow_nan=False))


def explain_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    """One line per part in which two specs differ; none when the fingerprints are equal."""
    for part in sorted({*a, *b}):
        if a.get(part) != b.get(part):
            yield f"{part}: {_show(a.get(part))} | {_show(b.get(part))}"


def _common_parts(feature: str, checkpoint: Checkpoint, precision: str, device: str) -> Spec:
    return {
        "feature": feature,
        "version": FEATURE_VERSION,
        "architecture": checkpoint.architecture,
        "weights": digest_of(checkpoint.weight_files),
        "tokenizer": digest_named(checkpoint.tokenizer_files),
        "config": digest_text(canonical_config(checkpoint.config)),
        "precision": precision,
        "arithmetic": _arithmetic(precision, device),
    }


def _describe_steps(steps: Sequence[Step]) -> Spec:
    """What follows pooling; nothing, not even an empty part, where nothing does."""
    described = [
        f"{step.kind} {step.width} {step.activation} {digest_of(step.weight_files)}"
        for step in steps
    ]
    return {"steps": described} if described else {}


def _describe_code(checkpoint: Checkpoint) -> Spec:
    """The model's own code, which vectors depend on like on its weights.

    Raises:
        UnsupportedModel: code that is not in the folder, so that nobody can tell when it changes.
    """
    named = json.dumps(checkpoint.config.get("auto_map") or {})
    if "--" in named:
        raise UnsupportedModel(
            f"{checkpoint.path} runs code from another repository: {named}",
            hint="put that code into the folder and name it in auto_map",
        )
    files = checkpoint.code_files
    return {"code": digest_named(files)} if files else {}


def _arithmetic(precision: str, device: str) -> str:
    """What the linear layers compute in: lower precision is not the same on processor and card."""
    if precision == "exact":
        return "float32"
    if precision == "approx":
        return "int8"
    return "bfloat16, softmax float32" if device == "cpu" else "float16"


def _resolved(precision: str) -> str:
    if precision == "auto":
        raise UsageError(
            "precision auto must be resolved before a spec is made",
            hint="featpipe.encoders.precision.resolve_precision",
        )
    return _one_of("precision", precision, ("exact", "mixed", "approx"))


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise UsageError(f"{name} {value!r} is none of {', '.join(allowed)}")
    return value


def _count_layer(checkpoint: Checkpoint, layer: int) -> int:
    """The hidden state's number, counted from the embeddings (0)."""
    n_layers = checkpoint.n_layers
    number = layer if layer >= 0 else n_layers + 1 + layer
    if not 0 <= number <= n_layers:
        raise UsageError(f"layer {layer} of a model with {n_layers} layers (and embeddings, 0)")
    return number


def _choose_length(checkpoint: Checkpoint, asked: int | None) -> int:
    if asked is None:
        if checkpoint.max_length < _SHORTEST_WINDOW:
            raise CheckpointError(
                f"{checkpoint.path} allows sequences of {checkpoint.max_length} tokens, which"
                " leaves no room beside the special ones",
                hint="model_max_length in tokenizer_config.json, max_seq_length in"
                " sentence_bert_config.json or max_position_embeddings in config.json is wrong",
            )
        return checkpoint.max_length
    most = count_positions(checkpoint.config) or checkpoint.max_length
    if not _SHORTEST_WINDOW <= asked <= most:
        raise UsageError(
            f"a length of {asked} tokens is not between {_SHORTEST_WINDOW} and the model's {most}"
        )
    return asked


def _choose_prompt(checkpoint: Checkpoint, settings: EncoderSettings) -> str:
    if settings.prompt_name is None:
        return checkpoint.recipe.default_prompt if settings.prompt is None else settings.prompt
    if settings.prompt is not None:
        raise UsageError("a prompt and the name of one were given; leave one of them out")
    known = checkpoint.recipe.prompts
    if settings.prompt_name not in known:
        raise UsageError(
            f"{checkpoint.path} has no prompt {settings.prompt_name!r}",
            hint=f"it has {', '.join(known)}" if known else "it has none; give its text instead",
        )
    return known[settings.prompt_name]


def _choose_stride(max_length: int, asked: int | None) -> int:
    if asked is None:
        return max(1, (max_length - 2) * 7 // 8)
    if not 1 <= asked <= max_length - 2:
        raise UsageError(f"a stride of {asked} is not between 1 and {max_length - 2} tokens")
    return asked


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 48 else f"{text[:45]}..."
