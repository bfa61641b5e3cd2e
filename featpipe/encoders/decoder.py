"""The forward of a decoder with rotary embeddings (Qwen3, Qwen2, Llama, Mistral) over a pack.

transformers reads the checkpoint and makes the rotary angles; what lies between is computed here,
on a card in half precision. Around its matrix products transformers' own forward moves the states
through memory some thirty times a layer, which on a card takes three quarters of the time; here it
is nine times, by three kernels. What is left is near the card's matrix product.

The stream of states is float32, as are norms and angles; linear layers and attention are half.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F

from featpipe.encoders.attention import Layout, attend_separate
from featpipe.encoders.foreign import trial_pack
from featpipe.encoders.fused import is_fused
from featpipe.encoders.linear import make_linear
from featpipe.encoders.packing import extend
from featpipe.encoders.transfer import CPU, send

if TYPE_CHECKING:
    from featpipe.encoders.foreign import ForeignTrunk
    from featpipe.encoders.linear import Linear
    from featpipe.encoders.packing import Pack

Untyped: TypeAlias = Any  # transformers' modules

#: Families, as configs name them, whose layers are `_Layer`.
FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3"})

#: Between the states of a trial by half precision in two ways; a wrong angle gives .99 and less.
_LEAST_COSINE = 0.999


def load_decoder(plain: ForeignTrunk) -> Decoder | None:
    """What computes `plain` faster; its model is then on the processor, for copies.

    None where there are no kernels for it, where its layers are of another make, or where the
    states of a trial differ.
    """
    if plain.is_tagger or not plain.is_hooked or not is_fused(plain.device, plain.dtype):
        return None
    if plain.model.config.model_type not in FAMILIES:
        return None
    try:
        decoder = Decoder(plain)
        is_same = agrees(decoder, plain)
    except (AttributeError, RuntimeError):
        return None  # a part of the family's layers is missing, or is of another size
    if not is_same:
        return None
    plain.model.to(CPU)
    return decoder


def agrees(decoder: Decoder, plain: ForeignTrunk) -> bool:
    """Whether each state of a trial points to where the plain one does."""
    pack = trial_pack(plain.n_words, plain.model.config.max_position_embeddings)
    with torch.inference_mode():
        found, expected = decoder.forward(pack), plain.forward(pack)
    cosines = F.cosine_similarity(found.double(), expected.double(), dim=1)
    return bool(cosines.min() >= _LEAST_COSINE)


class Decoder:
    """All layers of a model of transformers, of one of `FAMILIES`; its weights are copies."""

    is_invariant = False
    needs_one_thread = False

    def __init__(self, plain: ForeignTrunk) -> None:
        model, device, dtype = plain.model, plain.device, plain.dtype
        self.width, self.n_words = plain.width, plain.n_words
        self.device, self.dtype = device, dtype
        self._plain = plain
        self._words = model.embed_tokens.weight.detach()
        self._angles = deepcopy(model.rotary_emb)
        self._layers = [
            _Layer(layer, model.config, device=device, dtype=dtype) for layer in model.layers
        ]
        self._norm = _Norm(model.norm, torch.float32, is_fused=is_fused(device, dtype))

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Trunk`."""
        kind = self._plain.model.config.model_type
        return (f"{kind} is loaded by transformers; bits may depend on the batch",)

    def copy_to(
        self, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> ForeignTrunk:
        """See `Trunk`."""
        return self._plain.copy_to(device=device or self.device, dtype=dtype)

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """As transformers: after fewer layers than all, states before the last norm.

        Shapes: pack of t tokens -> (t, width) float32.
        """
        size = self._layers[0].size
        ids = send(extend(pack.ids, pack.n_rows), self.device)
        places = send(extend(pack.positions.astype(np.int64), pack.n_rows), self.device)
        layout = Layout.of(pack, self.device, size)
        x = F.embedding(ids, self._words)
        cos, sin = (part[0] for part in self._angles(x[None], places[None]))
        some = self._layers[:n_layers]
        y: torch.Tensor | None = None
        for layer in some:
            y = layer(x, y, (cos, sin), layout)
        if len(some) == len(self._layers):
            return self._norm(x, y)[: len(pack.ids)]
        return (x if y is None else x.add_(y))[: len(pack.ids)]


class _Layer:
    def __init__(
        self, layer: Untyped, config: Untyped, *, device: torch.device, dtype: torch.dtype
    ) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.size = int(attention.head_dim)
        self._n_heads = int(config.num_attention_heads)
        self._n_keys = int(config.num_key_value_heads)
        self._scale = float(attention.scaling)
        self._is_causal = bool(attention.is_causal)
        self._is_fused = is_fused(device, dtype)

        def linear(*parts: Untyped) -> Linear:
            biases = [
                torch.zeros(len(part.weight)) if part.bias is None else part.bias for part in parts
            ]
            return make_linear([part.weight for part in parts], biases, dtype=dtype, device=device)

        self._qkv = linear(attention.q_proj, attention.k_proj, attention.v_proj)
        self._out = linear(attention.o_proj)
        self._gated = linear(mlp.gate_proj, mlp.up_proj)
        self._down = linear(mlp.down_proj)
        self._before, self._between = (
            _Norm(part, dtype, is_fused=self._is_fused)
            for part in (layer.input_layernorm, layer.post_attention_layernorm)
        )
        self._of_heads: tuple[torch.Tensor, float] | None = None
        if hasattr(attention, "q_norm"):
            both = attention.q_norm, attention.k_norm
            weight = torch.stack([part.weight.detach().float() for part in both])
            self._of_heads = weight, float(attention.q_norm.variance_epsilon)

    def __call__(
        self,
        x: torch.Tensor,
        y: torch.Tensor | None,
        angles: tuple[torch.Tensor, torch.Tensor],
        layout: Layout,
    ) -> torch.Tensor:
        """Add y, of the layer before, and what attention gives to x; return what is to be added.

        Shapes: x (rows, width) float32, y (rows, width); cosines and sines (rows, size).
        """
        qkv = self._qkv(self._before(x, y))
        turned = self._turn(qkv, angles)
        value = qkv[:, turned.shape[1] * self.size :].view(len(x), self._n_keys, self.size)
        query, key = turned[:, : self._n_heads], turned[:, self._n_heads :]
        mixed = attend_separate(
            query.transpose(0, 1),
            key.transpose(0, 1),
            value.transpose(0, 1),
            layout,
            scale=self._scale,
            is_causal=self._is_causal,
        )
        between = self._between(x, self._out(mixed.reshape(len(x), -1)))
        return self._down(self._gate(self._gated(between)))

    def _turn(self, qkv: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Queries and keys (rows, heads of both, size), normed if the family does, and turned."""
        n_heads = self._n_heads + self._n_keys
        if self._is_fused:
            from featpipe.encoders.decoder_kernels import turn

            return turn(qkv, angles, self._of_heads, n_heads=self._n_heads, n_keys=self._n_keys)
        heads = qkv[:, : n_heads * self.size].view(len(qkv), n_heads, self.size).float()
        if self._of_heads is not None:
            weight, epsilon = self._of_heads
            rows = weight[[0] * self._n_heads + [1] * self._n_keys]
            heads = F.rms_norm(heads, (self.size,), None, epsilon) * rows
        cos, sin = (part[:, None] for part in angles)
        first, second = heads.chunk(2, -1)
        return (heads * cos + torch.cat([-second, first], -1) * sin).to(qkv.dtype)

    def _gate(self, gated: torch.Tensor) -> torch.Tensor:
        """SiLU of the first half of the columns times the second."""
        if self._is_fused:
            from featpipe.encoders.decoder_kernels import gate

            return gate(gated)
        first, second = gated.float().chunk(2, -1)
        return (F.silu(first) * second).to(gated.dtype)


class _Norm:
    """RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, norm: Untyped, dtype: torch.dtype, *, is_fused: bool) -> None:
        self._weight = norm.weight.detach().float()
        self._epsilon = float(norm.variance_epsilon)
        self._dtype, self._is_fused = dtype, is_fused

    def __call__(self, x: torch.Tensor, y: torch.Tensor | None) -> torch.Tensor:
        """Add y to x, in place, and return the norm of the sum, in the layer's dtype."""
        if self._is_fused:
            from featpipe.encoders.decoder_kernels import add_rms_norm

            return add_rms_norm(x, y, self._weight, self._epsilon, self._dtype)
        if y is not None:
            x.add_(y)
        return F.rms_norm(x, self._weight.shape, self._weight, self._epsilon).to(self._dtype)
