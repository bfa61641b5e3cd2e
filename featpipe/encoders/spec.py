"""Settings of an encoder or tagger, resolved against a checkpoint into a spec and its fingerprint.

Guarantee: two computations with one fingerprint give the same vectors. A spec is plain JSON and
holds every part on which a vector depends; it holds no path and no name. Imports no torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from featpipe.encoders.bert_rules import TOKENIZER_RULES, has_own_rules
from featpipe.encoders.checkpoint import Checkpoint, canonical_config, longest_window
from featpipe.encoders.fingerprint import digest_named, digest_of, digest_text
from featpipe.errors import CheckpointError, UnsupportedModel, UsageError
from featpipe.settings import check_flag, check_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.encoders.recipe import Step

Pooling = Literal["mean", "cls", "max", "last", "weightedmean", "mean_sqrt_len"]
Precision = Literal["exact", "mixed", "approx", "auto"]
Dtype = Literal["float16", "float32", "bfloat16"]
OnTruncate = Literal["window", "error", "warn"]
Spec: TypeAlias = dict[str, Any]  # JSON: each part has a type of its own

#: Raised in each version in which the same inputs give other vectors than before.
FEATURE_VERSION = 3

#: Least tokens of a window, special ones included.
_SHORTEST_WINDOW = 8

#: How the vectors of a long text's windows become one, by pooling; see `windows.combine`.
WINDOW_RULE = {
    "mean": "mean of windows weighted by their new tokens",
    "cls": "mean of windows weighted by their new tokens",
    "max": "elementwise maximum over windows",
    "last": "last window",
    "weightedmean": "mean of windows weighted by their new tokens",
    "mean_sqrt_len": "mean of windows weighted by their new tokens",
}

#: With ``on_truncate="warn"``.
CUT_RULE = "first window; the rest is left out"


@dataclass(frozen=True, slots=True, repr=False)
class EncoderSettings:
    """How an encoder turns texts into vectors. None stands for the checkpoint's own choice.

    Each attribute becomes a part of the fingerprint in its resolved form, except where stated:
    vectors made with other settings are other vectors, and are stored apart. None and the same
    choice given explicitly have one fingerprint.

    Attributes:
        pooling: how the hidden states of a text's tokens, special ones included, become one vector:
            ``mean``, ``max``, ``cls`` (first token), ``last`` (last token), ``weightedmean`` (token
            n weighs n) or ``mean_sqrt_len`` (sum over the root of their number). None, the default:
            the sentence-transformers recipe's, or ``mean`` without one.
        layer: the hidden states to pool: 0 for the embeddings, 1 for the first layer, or counted
            from the end, -1, the default, for the last.
        normalise: whether vectors are scaled to length 1. None, the default: as the recipe does,
            or not at all without one.
        max_length: tokens of one window, special ones included: at least 8, at most the model's
            positions, unless they are relative. None, the default: the least of the limits in the
            checkpoint's files.
        stride: tokens between the starts of two windows of a long text: from 1 to
            ``max_length - 2``. None, the default: 7/8 of ``max_length - 2``, rounded down.
        prompt: text put before every text. None, the default: the recipe's default prompt, or "".
        prompt_name: the name of one of the recipe's prompts, instead of ``prompt``; the fingerprint
            holds the prompt's text. Default None.
        dtype: how vectors are stored: ``float16`` (default), ``float32`` or ``bfloat16``.
        precision: how vectors are computed: ``exact`` (float32), ``mixed`` (linear layers and
            attention in bfloat16, on CUDA in float16), ``approx`` (linear layers in int8; only for
            BERT-like models on processors) or ``auto`` (default): ``mixed`` where the device runs
            it at least 1.3 times as fast and the cosine of a build's first vectors to those in
            float32 is .9999 or more, ``exact`` elsewhere. The fingerprint holds what ``auto`` was
            resolved to (`precision`).
        trust_remote_code: whether Python code in the checkpoint's folder may run. Default False. If
            True, the digest of that code becomes part of the fingerprint.
        on_truncate: for a text of more tokens than one window. ``window`` (default): read all of
            it, in several windows; ``error``: give it no vector and name it; ``warn``: read the
            first window only and count the tokens left out. ``error`` changes no vector and has
            the fingerprint of ``window``.
    """

    pooling: Pooling | None = None
    layer: int = -1
    normalise: bool | None = None
    max_length: int | None = None
    stride: int | None = None
    prompt: str | None = None
    prompt_name: str | None = None
    dtype: Dtype = "float16"
    precision: Precision = "auto"
    trust_remote_code: bool = False
    on_truncate: OnTruncate = "window"

    def __post_init__(self) -> None:
        """Types; `encoder_spec` holds the values against a checkpoint.

        Raises:
            UsageError: a setting of another type, from which another fingerprint would be made.
        """
        for name in ("layer", "max_length", "stride"):
            check_whole(name, getattr(self, name))
        if self.normalise is not None:
            check_flag("normalise", self.normalise)
        check_flag("trust_remote_code", self.trust_remote_code)
        if self.prompt is not None:
            _check_prompt(self.prompt)

    def __repr__(self) -> str:
        return _show_changed(self)


@dataclass(frozen=True, slots=True, repr=False)
class TaggerSettings:
    """How a tagger finds entities. Each attribute is part of the fingerprint, in resolved form.

    Attributes:
        max_length: tokens of one window, special ones included: at least 8, at most the model's
            positions, unless they are relative. None, the default: the least of the limits in the
            checkpoint's files.
        overlap: tokens shared by two windows where a sentence is longer than a window: from 0 to
            half of ``max_length``. None, the default: a quarter of ``max_length``.
        precision: ``exact``, ``mixed`` or ``auto`` (default), as in `EncoderSettings`.
    """

    max_length: int | None = None
    overlap: int | None = None
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        """See `EncoderSettings`."""
        for name in ("max_length", "overlap"):
            check_whole(name, getattr(self, name))

    def __repr__(self) -> str:
        return _show_changed(self)


def _show_changed(settings: EncoderSettings | TaggerSettings) -> str:
    """The settings as a call that makes them, without those that have their default."""
    values = ((field, getattr(settings, field.name)) for field in fields(settings))
    changed = (f"{field.name}={value!r}" for field, value in values if value != field.default)
    return f"{type(settings).__name__}({', '.join(changed)})"


def _check_prompt(prompt: object) -> None:
    if not isinstance(prompt, str):
        raise UsageError(f"prompt must be a text, not {prompt!r}")
    if any("\ud800" <= character <= "\udfff" for character in prompt):
        raise UsageError(f"prompt {prompt!r} holds half a surrogate pair, which is no text")


def encoder_spec(checkpoint: Checkpoint, settings: EncoderSettings, device: str = "cpu") -> Spec:
    """Every part of the fingerprint of `settings` on `checkpoint`, computed on `device`.

    Raises:
        UsageError: a setting that the checkpoint or device cannot follow, or precision ``auto``.
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
    overlap = _choose_overlap(max_length, settings.overlap)
    precision = _one_of("precision of entities", _resolved(settings.precision), ("exact", "mixed"))
    return {
        **_common_parts("entities", checkpoint, precision, device),
        "labels": list(checkpoint.labels),
        "max_length": max_length,
        "overlap": overlap,
        **_describe_calibration(checkpoint),
    }


def fingerprint_of(spec: Mapping[str, object]) -> str:
    """40 hex digits that differ if any part of the spec does."""
    return digest_text(json.dumps(spec, sort_keys=True, ensure_ascii=False, allow_nan=False))


def explain_difference(a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[str]:
    """One line per part in which two specs differ; none when the fingerprints are equal."""
    for part in sorted({*a, *b}):
        if a.get(part) != b.get(part):
            yield f"{part}: {_show(a.get(part))} | {_show(b.get(part))}"


def _common_parts(feature: str, checkpoint: Checkpoint, precision: str, device: str) -> Spec:
    return {
        "feature": feature,
        "version": FEATURE_VERSION,
        "architecture": checkpoint.architecture,
        "weights": checkpoint.weights_digest,
        "tokenizer": digest_named(checkpoint.tokenizer_files),
        "config": digest_text(canonical_config(checkpoint.config)),
        "precision": precision,
        "arithmetic": _arithmetic(precision, device),
        **({"tokenizer_rules": TOKENIZER_RULES} if has_own_rules(checkpoint) else {}),
    }


def _describe_steps(steps: Sequence[Step]) -> Spec:
    """The steps after pooling; without any, no part at all."""
    described = [
        f"{step.kind} {step.width} {step.activation} {digest_of(step.weight_files)}"
        for step in steps
    ]
    return {"steps": described} if described else {}


def _describe_calibration(checkpoint: Checkpoint) -> Spec:
    """The digest of the calibration; without one, no part at all."""
    files = checkpoint.calibration_files
    return {"calibration": digest_of(files)} if files else {}


def _describe_code(checkpoint: Checkpoint) -> Spec:
    """The digest of the model's own code; without any, no part at all.

    Raises:
        UnsupportedModel: code that is not in the folder, whose changes would go unseen.
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
    """Dtype of the linear layers, which in lower precision differs between processor and card."""
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
    """Number of the hidden state, counted from the embeddings (0)."""
    n_layers = checkpoint.n_layers
    number = layer if layer >= 0 else n_layers + 1 + layer
    if not 0 <= number <= n_layers:
        raise UsageError(f"layer {layer} is not one of the model's: 0 (embeddings) to {n_layers}")
    return number


def _choose_length(checkpoint: Checkpoint, asked: int | None) -> int:
    if asked is None:
        return _stated_length(checkpoint)
    most = longest_window(checkpoint)
    if not _SHORTEST_WINDOW <= asked <= most:
        raise UsageError(
            f"max_length {asked} is not between {_SHORTEST_WINDOW} and the model's {most} tokens"
        )
    return asked


def _stated_length(checkpoint: Checkpoint) -> int:
    if checkpoint.max_length < _SHORTEST_WINDOW:
        raise CheckpointError(
            f"{checkpoint.path} allows sequences of {checkpoint.max_length} tokens, which"
            " leaves no room beside the special ones",
            hint="model_max_length in tokenizer_config.json, max_seq_length in"
            " sentence_bert_config.json or max_position_embeddings in config.json is wrong",
        )
    return checkpoint.max_length


def _choose_prompt(checkpoint: Checkpoint, settings: EncoderSettings) -> str:
    if settings.prompt_name is None:
        return checkpoint.recipe.default_prompt if settings.prompt is None else settings.prompt
    if settings.prompt is not None:
        raise UsageError("prompt and prompt_name were both given; leave one of them out")
    known = checkpoint.recipe.prompts
    if settings.prompt_name not in known:
        names = ", ".join(known) or "none; give the text itself as prompt"
        raise UsageError(
            f"{checkpoint.path} has no prompt {settings.prompt_name!r}", hint=f"it has {names}"
        )
    return known[settings.prompt_name]


def _choose_stride(max_length: int, asked: int | None) -> int:
    if asked is None:
        return max(1, (max_length - 2) * 7 // 8)
    if not 1 <= asked <= max_length - 2:
        raise UsageError(f"stride {asked} is not between 1 and {max_length - 2} tokens")
    return asked


def _choose_overlap(max_length: int, asked: int | None) -> int:
    overlap = max_length // 4 if asked is None else asked
    if not 0 <= overlap <= max_length // 2:
        raise UsageError(f"overlap {overlap} is not between 0 and {max_length // 2} tokens")
    return overlap


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 48 else f"{text[:45]}..."
