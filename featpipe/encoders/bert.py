"""The BERT architecture as a forward over packed sequences, without padding.

Computes BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT and ERNIE. Query, key and value
are one linear layer; the activation is fused into the next. The residual stream and LayerNorm are
float32 in every precision; in ``mixed`` the linear layers and attention run in bf16 (fp16 on CUDA),
in ``approx`` the linear layers in int8. Oracle: transformers in float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from featpipe.encoders.attention import Layout, attend
from featpipe.encoders.checkpoint import first_position
from featpipe.encoders.fingerprint import digest_of
from featpipe.encoders.fused import describe_missing, is_fused
from featpipe.encoders.graphs import Graphs, Inputs
from featpipe.encoders.linear import Activation, Linear, make_linear
from featpipe.encoders.norm import Norm, make_norm
from featpipe.encoders.packing import extend
from featpipe.encoders.transfer import CPU, send
from featpipe.errors import CheckpointError, UnsupportedModel

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.encoders.checkpoint import Checkpoint, Config
    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints
    from featpipe.encoders.weights import Weights

#: ``model_type`` of the models that this forward computes.
ARCHITECTURES = frozenset(
    {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "ernie"}
)

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes in a config, under one name for all architectures."""

    width: int
    embedding_width: int
    n_layers: int
    n_heads: int
    inner_width: int
    n_words: int
    n_positions: int
    n_types: int
    first_position: int
    epsilon: float
    activation: Activation

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Shape:
        """Read the checkpoint's config.

        Raises:
            UnsupportedModel: an option that this forward does not compute.
            CheckpointError: a size that is missing or impossible.
        """
        file = checkpoint.path / "config.json"
        _refuse_options(checkpoint.config)
        try:
            shape = cls._read(checkpoint.config)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{file} states no sizes of a model: {error!r}") from error
        if shape.n_heads < 1 or shape.width < 1 or shape.width % shape.n_heads:
            raise CheckpointError(
                f"{file} states a width of {shape.width}, which {shape.n_heads} attention heads"
                " cannot share evenly"
            )
        return shape

    @classmethod
    def _read(cls, config: Config) -> Shape:
        width = int(config.get("hidden_size", config.get("dim", 0)))

        return cls(
            width=width,
            embedding_width=int(config.get("embedding_size", width)),
            n_layers=int(config.get("num_hidden_layers", config.get("n_layers", 0))),
            n_heads=int(config.get("num_attention_heads", config.get("n_heads", 0))),
            inner_width=int(config.get("intermediate_size", config.get("hidden_dim", 0))),
            n_words=int(config["vocab_size"]),
            n_positions=int(config["max_position_embeddings"]),
            n_types=_count_types(config),
            first_position=first_position(config),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            activation=_ACTIVATIONS[_activation_name(config)],
        )

    def tensors(self, n_layers: int) -> dict[str, tuple[int, ...]]:
        """Name and shape of every weight that the first `n_layers` layers need."""
        width, narrow = self.width, self.embedding_width
        needed: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self.n_words, narrow),
            "embeddings.position_embeddings.weight": (self.n_positions, narrow),
            "embeddings.LayerNorm.weight": (narrow,),
            "embeddings.LayerNorm.bias": (narrow,),
        }
        if self.n_types:
            needed["embeddings.token_type_embeddings.weight"] = (self.n_types, narrow)
        if narrow != width:
            needed |= _linear_shapes("embeddings_project", width, narrow)
        for number in range(n_layers):
            needed |= self._layer_tensors(f"encoder.layer.{number}")
        return needed

    def _layer_tensors(self, layer: str) -> dict[str, tuple[int, ...]]:
        width, inner = self.width, self.inner_width
        needed: dict[str, tuple[int, ...]] = {}
        for name in ("query", "key", "value"):
            needed |= _linear_shapes(f"{layer}.attention.self.{name}", width, width)
        needed |= _linear_shapes(f"{layer}.attention.output.dense", width, width)
        needed |= _linear_shapes(f"{layer}.intermediate.dense", inner, width)
        needed |= _linear_shapes(f"{layer}.output.dense", width, inner)
        for name in ("attention.output", "output"):
            for part in ("weight", "bias"):
                needed[f"{layer}.{name}.LayerNorm.{part}"] = (width,)
        return needed


@dataclass(frozen=True, slots=True)
class Placement:
    """The number of layers that are computed, in which dtype and on which device."""

    n_layers: int
    dtype: torch.dtype
    """Of the linear layers and attention; the residual stream is float32."""
    device: torch.device


class PackedBert:
    """The first layers of a model, ready to run on one device."""

    def __init__(
        self, weights: Weights, shape: Shape, placement: Placement, files: tuple[Path, ...] = ()
    ) -> None:
        self.shape = shape
        self.n_words = shape.n_words
        self.width = shape.width
        self.device, self.dtype = placement.device, placement.dtype
        self._placement = placement
        self._weights = weights
        self._files = files
        """The files that the weights are mapped from."""
        self._digest = digest_of(files)
        self.embeddings = Embeddings(weights, shape, placement)
        self._layers = [
            _Layer(weights, f"encoder.layer.{number}", shape, placement)
            for number in range(placement.n_layers)
        ]
        self._graphs = Graphs.wanted(self._compute, placement.device, placement.dtype)

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Trunk`."""
        notes = describe_missing(self.device, self.dtype)
        if self._graphs is not None:
            notes += self._graphs.notes
        if self.is_invariant:
            return notes
        missing = "the batch-invariant kernels are missing here; bits may depend on the batch"
        return (missing, *notes)

    @property
    def is_invariant(self) -> bool:
        """See `Trunk`."""
        return all(layer.is_invariant for layer in self._layers)

    @property
    def needs_one_thread(self) -> bool:
        """See `Trunk`."""
        return any(layer.needs_one_thread for layer in self._layers)

    def matches(self, weights: Weights, shape: Shape, placement: Placement) -> bool:
        """Whether this trunk computes the same as one made of the arguments, or more layers."""
        n_layers = placement.n_layers
        is_same_kind = self.shape == shape and n_layers <= self._placement.n_layers
        if not is_same_kind or replace(self._placement, n_layers=n_layers) != placement:
            return False
        return not self._is_overwritten() and all(
            torch.equal(self._weights[name], weights[name]) for name in shape.tensors(n_layers)
        )

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """See `Trunk`."""
        layout = Layout.of(pack, self.device, self.shape.width // self.shape.n_heads)
        inputs = Inputs(*self.embeddings.send(pack), layout)
        is_whole = n_layers in {None, len(self._layers)}
        if self._graphs is not None and is_whole:
            return self._graphs.run(inputs, pack.n_rows)[: len(pack.ids)]
        return self._compute(inputs, n_layers)[: len(pack.ids)]

    def forward_rows(self, pack: Pack, rows: Ints, *, n_layers: int | None = None) -> torch.Tensor:
        """`rows` of `forward`, with the same bits.

        Where a row's bits do not depend on the others, the last layer computes these alone after
        its attention, which saves three quarters of it. On a card kernels are chosen by the number
        of rows, and other kernels round otherwise.

        Shapes: rows (n,), numbers of tokens of the pack -> (n, width) float32.
        """
        if self.device != CPU or not self.is_invariant:
            return self.forward(pack, n_layers=n_layers).index_select(0, send(rows, self.device))
        layout = Layout.of(pack, self.device, self.shape.width // self.shape.n_heads)
        inputs = Inputs(*self.embeddings.send(pack), layout)
        return self._compute(inputs, n_layers, torch.from_numpy(rows))

    def _compute(
        self, inputs: Inputs, n_layers: int | None = None, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        x = self.embeddings(inputs)
        layers = self._layers[:n_layers]
        for layer in layers:
            is_last = layer is layers[-1]
            x = layer(x, inputs.layout, is_last=is_last, rows=rows if is_last else None)
        if rows is not None and not layers:
            x = x.index_select(0, rows)
        return x.float()

    def copy_to(
        self, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> PackedBert:
        """See `Trunk`.

        Raises:
            CheckpointError: the files that the weights are mapped from were overwritten.
        """
        placement = replace(self._placement, dtype=dtype, device=device or self.device)
        return PackedBert(self.read_weights(), self.shape, placement, self._files)

    def read_weights(self) -> Weights:
        """The weights by name, as they were loaded; mapped from the files.

        Raises:
            CheckpointError: the files were overwritten.
        """
        if self._is_overwritten():
            raise CheckpointError(f"{self._files[0]} was overwritten while it was in use")
        return self._weights

    def _is_overwritten(self) -> bool:
        return digest_of(self._files) != self._digest


class Embeddings:
    """The tables of words and positions, and what follows them, up to the first layer."""

    def __init__(self, weights: Weights, shape: Shape, placement: Placement) -> None:
        device = placement.device

        def table(name: str) -> torch.Tensor:
            return _copy(weights[f"embeddings.{name}"], device)

        self.words = table("word_embeddings.weight")
        # Where positions count from the padding token, its row comes first.
        self._padding = shape.first_position - 1 if shape.first_position else None
        self.positions = table("position_embeddings.weight")[max(shape.first_position - 1, 0) :]
        if shape.n_types:
            # Every token is of type 0, so that type's row is added to each position's.
            self.positions = self.positions + table("token_type_embeddings.weight")[0]
        self._norm = _norm(weights, "embeddings", device)
        self._epsilon = shape.epsilon
        self._is_fused = is_fused(device, placement.dtype)
        self._dtype = placement.dtype
        self._project: Linear | None = None
        if shape.embedding_width != shape.width:
            self._dtype = torch.float32
            self._project = _linear(weights, ["embeddings_project"], torch.float32, device)

    def send(self, pack: Pack) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of the two tables for each token, on the device."""
        return (
            send(extend(pack.ids, pack.n_rows), self.words.device),
            send(extend(self.position_rows(pack), pack.n_rows), self.words.device),
        )

    def __call__(self, inputs: Inputs) -> torch.Tensor:
        """Shapes: ids and rows of positions (t,) -> (t, width of the layers).

        float32; half where that is what the first layer reads, on a card.
        """
        if self._is_fused:
            x = self._embed_fused(inputs)
            return x if self._project is None else self._project(x)
        x = F.embedding(inputs.ids, self.words)
        x = x.add_(F.embedding(inputs.positions, self.positions))
        x = F.layer_norm(x, (x.shape[1],), *self._norm, eps=self._epsilon)
        return x if self._project is None else self._project(x)

    def _embed_fused(self, inputs: Inputs) -> torch.Tensor:
        from featpipe.encoders.card_kernels import embed_norm

        tables = self.words, self.positions
        given = inputs.ids, inputs.positions
        return embed_norm(*given, tables, self._norm, self._epsilon, self._dtype)

    def position_rows(self, pack: Pack) -> Ints:
        """Row of the position table for each token.

        RoBERTa and its descendants count only tokens other than padding; a literal padding token
        in a text gets padding's row and takes no number.
        """
        if self._padding is None:
            return pack.positions
        is_counted = pack.ids != self._padding
        if is_counted.all():
            return pack.positions + 1
        counted = np.cumsum(is_counted)
        first = np.cumsum(pack.lengths) - pack.lengths
        before = counted[first] - is_counted[first]
        rows: Ints = (counted - np.repeat(before, pack.lengths)) * is_counted
        return rows


class _Layer:
    def __init__(self, weights: Weights, name: str, shape: Shape, placement: Placement) -> None:
        dtype, device = placement.dtype, placement.device

        def linear(*parts: str) -> Linear:
            return _linear(weights, [f"{name}.{part}" for part in parts], dtype, device)

        def norm(part: str) -> Norm:
            return make_norm(*_norm(weights, f"{name}.{part}", device), shape.epsilon, dtype)

        self._qkv = linear(*(f"attention.self.{part}" for part in ("query", "key", "value")))
        self._attended = linear("attention.output.dense")
        self._attention_norm = norm("attention.output")
        self._inner = linear("intermediate.dense")
        self._outer = linear("output.dense")
        self._output_norm = norm("output")
        self._n_heads, self._activation = shape.n_heads, shape.activation
        self._dtype = torch.float32 if dtype == torch.int8 else dtype

    @property
    def is_invariant(self) -> bool:
        return all(linear.is_invariant for linear in self._linears())

    @property
    def needs_one_thread(self) -> bool:
        return any(linear.needs_one_thread for linear in self._linears())

    def _linears(self) -> tuple[Linear, ...]:
        return self._qkv, self._attended, self._inner, self._outer

    def __call__(
        self, x: torch.Tensor, layout: Layout, *, is_last: bool, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """`rows`: numbers of those that are wanted; all by default."""
        attended = attend(self._qkv(x.to(self._dtype)), layout, n_heads=self._n_heads)
        if rows is not None:
            x, attended = x.index_select(0, rows), attended.index_select(0, rows)
        y = self._attended(attended)
        x = self._attention_norm(x, y, is_last=False)
        y = self._outer(self._inner(x.to(self._dtype), self._activation))
        return self._output_norm(x, y, is_last=is_last)


def _count_types(config: Config) -> int:
    return 0 if config["model_type"] == "distilbert" else int(config.get("type_vocab_size", 2))


def _norm(weights: Weights, name: str, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight and bias of a LayerNorm."""
    norm = f"{name}.LayerNorm"
    return _copy(weights[f"{norm}.weight"], device), _copy(weights[f"{norm}.bias"], device)


def _copy(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A float32 copy, never a view of the mapped file.

    With a view, overwriting the file in place would change vectors under the fingerprint of the
    old bytes.
    """
    return tensor.detach().to(device=device, dtype=torch.float32, copy=True)


def _linear(weights: Weights, names: list[str], dtype: torch.dtype, device: torch.device) -> Linear:
    return make_linear(
        [weights[f"{name}.weight"] for name in names],
        [weights[f"{name}.bias"] for name in names],
        dtype=dtype,
        device=device,
    )


def _linear_shapes(name: str, n_out: int, n_in: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}


def _refuse_options(config: Config) -> None:
    kind = str(config.get("model_type"))
    if kind not in ARCHITECTURES:
        raise UnsupportedModel(f"{kind!r} is not among {sorted(ARCHITECTURES)}")
    refused = {
        "position_embedding_type": config.get("position_embedding_type", "absolute") != "absolute",
        "is_decoder": bool(config.get("is_decoder", False)),
        "use_task_id": bool(config.get("use_task_id", False)),
        "hidden_act": _activation_name(config) not in _ACTIVATIONS,
        "sinusoidal_pos_embds": bool(config.get("sinusoidal_pos_embds", False)),
    }
    for option, is_refused in refused.items():
        if is_refused:
            raise UnsupportedModel(f"{kind} with {option}={config.get(option)!r}")


def _activation_name(config: Config) -> str:
    return str(config.get("hidden_act", config.get("activation", "gelu")))
