"""Architectures other than BERT's, run by transformers, still without padding.

transformers lets attention be replaced by name: a whole pack goes through the stock model as one
long row, and the replacement (the hook) keeps each sequence to itself. At load a model is run with
and without the hook. Where the results differ, sequences of equal length go through it as one
batch, which is slower; `ForeignTrunk.notes` names the way used.
"""

from __future__ import annotations

import inspect
import re
import threading
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from featpipe.encoders.attention import Layout, attend_separate
from featpipe.encoders.checkpoint import belongs_to_crf
from featpipe.encoders.packing import Pack, Sequences
from featpipe.encoders.transfer import send
from featpipe.encoders.trunk import choose_dtype
from featpipe.encoders.weights import refuse_wrong
from featpipe.errors import UnsupportedModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from featpipe.encoders.checkpoint import Checkpoint
    from featpipe.encoders.spec import Spec

Untyped: TypeAlias = Any  # transformers: its models, their classes and reports

_HOOK = "featpipe_packed"

#: Largest difference between hooked and plain states that is rounding.
_ROUNDING = 1e-4

#: Changes of the scores that the hook does not make.
_UNHOOKED = ("softcap", "position_bias")

#: Families of an encoder and a decoder, of which the encoder alone is loaded.
_WITH_DECODER = frozenset({"t5", "mt5", "umt5"})

#: Errors of a model that is given something that it does not take.
_MODEL_ERRORS = (RuntimeError, TypeError, ValueError, AttributeError, IndexError)

#: Left-over tensors that are known to be unneeded: heads of pre-training, and buffers.
_OF_PRE_TRAINING = (
    r"pooler|cls|lm_head|predictions|\w+_predictions|sop_classifier|generator_\w+|discriminator_\w+"
)
_BUFFERS = r".*(position_ids|token_type_ids|inv_freq)$"
#: A tagger needs its last layers.
_UNNEEDED_BY_TAGGER = re.compile(rf"([\w-]+\.)?({_OF_PRE_TRAINING})\.|{_BUFFERS}")
#: An encoder needs no head of any task.
_UNNEEDED_BY_ENCODER = re.compile(
    rf"([\w-]+\.)?({_OF_PRE_TRAINING}|classifier|pre_classifier|qa_outputs|classification_head"
    rf"|score|head|decoder|project)\.|{_BUFFERS}"
)


class _CurrentPack(threading.local):
    """The pack that a hooked model computes in this thread."""

    layout = Layout(())


_current_pack = _CurrentPack()


class ForeignTrunk:
    """A transformers model as a `Trunk`; the states of a tagger are its scores."""

    is_invariant = False
    needs_one_thread = False

    def __init__(
        self,
        model: Untyped,
        *,
        device: torch.device,
        dtype: torch.dtype,
        is_hooked: bool,
        is_tagger: bool,
    ) -> None:
        config = model.config
        width = config.num_labels if is_tagger else getattr(config, "hidden_size", 0) or config.dim
        self.width = int(width)
        self.device = device
        self.n_words = int(model.get_input_embeddings().weight.shape[0])
        self.is_hooked = is_hooked
        self.is_tagger = is_tagger
        self.model = model
        self.dtype = dtype

    @property
    def _head_size(self) -> int:
        """Width of a head of attention; 0 where the config does not say."""
        config = self.model.config
        n_heads = getattr(config, "num_attention_heads", 0)
        return int(getattr(config, "head_dim", 0) or (n_heads and config.hidden_size // n_heads))

    @property
    def takes_positions(self) -> bool:
        """Whether the model takes position ids, which the hook needs."""
        return "position_ids" in inspect.signature(self.model.forward).parameters

    @property
    def has_rope_by_length(self) -> bool:
        """Whether rotary embeddings depend on the longest sequence of a batch, hooked or not."""
        rope = getattr(self.model.config, "rope_parameters", None) or {}
        each = [rope, *(part for part in rope.values() if isinstance(part, dict))]
        return any(part.get("rope_type") in {"dynamic", "longrope"} for part in each)

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Trunk`."""
        kind = self.model.config.model_type
        way = "its own attention replaced"
        if not self.is_hooked:
            way = "sequences of equal length at a time"
        return (f"{kind} is run by transformers, {way}; bits may depend on the batch",)

    def copy_to(
        self, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> ForeignTrunk:
        """See `Trunk`."""
        target = device or self.device
        return ForeignTrunk(
            deepcopy(self.model).to(target),
            device=target,
            dtype=dtype,
            is_hooked=self.is_hooked,
            is_tagger=self.is_tagger,
        )

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """See `Trunk`. Of a tagger: its scores (t, labels), after all layers."""
        if not len(pack.ids):  # an empty text, where the tokenizer adds no special tokens
            return torch.empty(0, self.width, device=self.device)
        is_half = self.dtype != torch.float32
        with torch.autocast(self.device.type, self.dtype, enabled=is_half):
            run = self._run_hooked if self.is_hooked else self._run_by_length
            return run(pack, n_layers)

    def _run_hooked(self, pack: Pack, n_layers: int | None) -> torch.Tensor:
        _current_pack.layout = Layout.of(pack, self.device, self._head_size)
        return self._compute(
            n_layers,
            input_ids=send(pack.ids.astype(np.int64), self.device)[None],
            position_ids=send(pack.positions, self.device)[None],
        )[0].float()

    def _run_by_length(self, pack: Pack, n_layers: int | None) -> torch.Tensor:
        ids = send(pack.ids.astype(np.int64), self.device)
        out = torch.empty(len(ids), self.width, device=self.device)
        for first, count, length in pack.groups:
            if not length:
                continue
            rows = slice(first, first + count * length)
            batch = ids[rows].view(count, length)
            states = self._compute(n_layers, input_ids=batch, attention_mask=torch.ones_like(batch))
            out[rows] = states.reshape(count * length, self.width).float()
        return out

    def _compute(self, n_layers: int | None, **inputs: torch.Tensor) -> torch.Tensor:
        if self.is_tagger:
            logits: torch.Tensor = self.model(**inputs).logits
            return logits
        # The last states may differ from the last of `hidden_states`: a final norm may follow.
        is_last = n_layers is None or n_layers == self.model.config.num_hidden_layers
        found = self.model(**inputs, output_hidden_states=not is_last)
        states: torch.Tensor = found.last_hidden_state if is_last else found.hidden_states[n_layers]
        return states


def load_foreign(
    checkpoint: Checkpoint,
    spec: Spec,
    *,
    device: torch.device,
    is_tagger: bool = False,
    trust_remote_code: bool = False,
) -> ForeignTrunk:
    """Load by transformers, with the hook where that gives the same states.

    Raises:
        UnsupportedModel: transformers cannot load it as an encoder (tagger) of texts.
        MissingWeights: missing, misshapen or left-over tensors, listed.
    """
    loading = _Loading(
        checkpoint,
        device=device,
        dtype=choose_dtype(spec["precision"], device),
        is_tagger=is_tagger,
        trust_remote_code=trust_remote_code,
    )
    by_length = loading.load(attention=None)
    if not by_length.takes_positions or by_length.has_rope_by_length:
        return by_length
    _register_hook()
    try:
        hooked = loading.load(attention=_HOOK)
    except UnsupportedModel:
        return by_length  # its attention cannot be replaced, or is of another kind
    return hooked if _agree(hooked, by_length, spec) else by_length


@dataclass(frozen=True, slots=True)
class _Loading:
    """The arguments that are the same with and without the hook."""

    checkpoint: Checkpoint
    device: torch.device
    dtype: torch.dtype
    is_tagger: bool
    trust_remote_code: bool

    def load(self, *, attention: str | None) -> ForeignTrunk:
        """The trunk, after a test that it turns each token id into a state."""
        model, report = self._load_model(attention)
        _check_report(report, self.checkpoint, is_tagger=self.is_tagger)
        self._merge_adapter(model)
        model.config.use_cache = False  # a decoder's keys and values are read once
        try:
            trunk = ForeignTrunk(
                model.eval().to(self.device),
                device=self.device,
                dtype=self.dtype,
                is_hooked=attention is not None,
                is_tagger=self.is_tagger,
            )
            _compute_one(trunk)
        except _MODEL_ERRORS as error:
            raise self._refuse("of texts", error) from error
        return trunk

    def _load_model(self, attention: str | None) -> tuple[Untyped, Untyped]:
        import transformers

        kind: Untyped = transformers.AutoModel
        if self.checkpoint.architecture in _WITH_DECODER:
            kind = transformers.AutoModelForTextEncoding
        refuse_decoder(self.checkpoint)
        if self.is_tagger:
            kind = transformers.AutoModelForTokenClassification
        try:
            model, report = kind.from_pretrained(
                str(self.checkpoint.path),
                dtype=torch.float32,
                trust_remote_code=self.trust_remote_code,
                local_files_only=True,
                ignore_mismatched_sizes=True,  # `_check_report` names them
                output_loading_info=True,
                **({} if attention is None else {"attn_implementation": attention}),
            )
        except Exception as error:  # a dozen classes for one reason
            raise self._refuse("that transformers can load", error) from error
        return model, report

    def _merge_adapter(self, model: Untyped) -> None:
        if self.checkpoint.adapter is not None:
            weights = model.state_dict()
            for name, merged in self.checkpoint.adapter.merge_into(weights).items():
                weights[name].copy_(merged)

    def _refuse(self, suffix: str, error: Exception) -> UnsupportedModel:
        kind = self.checkpoint.architecture or "no model_type"
        purpose = "tagger" if self.is_tagger else "encoder"
        model = f"{self.checkpoint.path} ({kind})"
        return UnsupportedModel(f"{model} is no {purpose} {suffix}: {error}")


def refuse_decoder(checkpoint: Checkpoint) -> None:
    """Refuse a model whose last states are those of a decoder.

    Raises:
        UnsupportedModel: it is one.
    """
    kind = checkpoint.architecture
    if checkpoint.config.get("is_encoder_decoder") and kind not in _WITH_DECODER:
        raise UnsupportedModel(
            f"{checkpoint.path} ({kind}) has a decoder, whose states are no vectors of texts",
            hint=f"of such families, {', '.join(sorted(_WITH_DECODER))} are read",
        )


def _compute_one(trunk: ForeignTrunk) -> None:
    """Compute one sequence of two tokens; raises where the model does not take token ids."""
    one = np.zeros(1, np.int64)
    pack = Sequences(np.zeros(2, np.int32), one, one + 2, (), ()).pack(one)
    with torch.inference_mode():
        trunk.forward(pack)


def _check_report(
    report: Mapping[str, Iterable[Untyped]], checkpoint: Checkpoint, *, is_tagger: bool
) -> None:
    """Refuse weights about which transformers only warns: it fills gaps with random numbers."""
    refuse_wrong(
        checkpoint.path,
        missing=sorted(name for name in report["missing_keys"] if "pooler" not in name),
        misshapen=[
            f"{name} is {tuple(found)} instead of {tuple(needed)}"
            for name, found, needed in sorted(report["mismatched_keys"])
        ],
        extra=sorted(
            name
            for name in report["unexpected_keys"]
            if not _is_unneeded(name, is_tagger=is_tagger)
        ),
    )


def _is_unneeded(name: str, *, is_tagger: bool) -> bool:
    """Whether a tensor that transformers did not use may be left over."""
    if belongs_to_crf(name):
        return not is_tagger
    return (_UNNEEDED_BY_TAGGER if is_tagger else _UNNEEDED_BY_ENCODER).match(name) is not None


def _register_hook() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(_HOOK, _attend_in_model)
    AttentionMaskInterface.register(_HOOK, _make_no_mask)


def _make_no_mask(*_args: object, local_size: int | None = None, **_options: object) -> None:
    """In place of a mask, which the hook does not need.

    Raises:
        ValueError: local attention, which the hook does not compute; `_agree` does not detect it
            for windows wider than its texts.
    """
    if local_size is not None:
        raise ValueError(f"attention to the {local_size} nearest tokens")


def _attend_in_model(
    module: object,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: object,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **options: object,
) -> tuple[torch.Tensor, None]:
    """The hook. Shapes as transformers': each (1, heads, tokens, size) -> (1, tokens, heads, size).

    Raises:
        ValueError: as `_make_no_mask`, or another change of the scores.
    """
    if sliding_window is not None:
        raise ValueError(f"attention to the {sliding_window} nearest tokens")
    if any(options.get(name) is not None for name in _UNHOOKED):
        raise ValueError(f"attention with {' or '.join(_UNHOOKED)}")
    told = options.get("is_causal")
    is_causal = bool(getattr(module, "is_causal", False) if told is None else told)
    layout = _current_pack.layout
    mixed = attend_separate(query[0], key[0], value[0], layout, scale=scaling, is_causal=is_causal)
    return mixed[None], None


def trial_pack(n_words: int, most: int) -> Pack:
    """Sequences of several lengths, up to `most`; the longest shows local attention."""
    chance = np.random.default_rng(0)
    lengths = np.array([min(300, most), 7, 5, 5, 2], np.int64)
    ids = chance.integers(0, min(n_words, 1000), int(lengths.sum())).astype(np.int32)
    sequences = Sequences(ids, np.cumsum(lengths) - lengths, lengths, (), ())
    return sequences.pack(np.arange(len(lengths)))


def _agree(hooked: ForeignTrunk, plain: ForeignTrunk, spec: Spec) -> bool:
    """Whether both give the same states for a trial."""
    pack = trial_pack(hooked.n_words, spec["max_length"])
    with torch.inference_mode():
        try:
            found = hooked.forward(pack)
        except _MODEL_ERRORS:
            return False  # it needs something of attention that the hook does not offer
        expected = plain.forward(pack)
    bound = _ROUNDING if hooked.dtype == torch.float32 else 0.1
    return bool((found - expected).abs().max() <= bound * max(1.0, float(expected.abs().max())))
