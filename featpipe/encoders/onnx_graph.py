"""The packed forward of a BERT-like model as an ONNX graph, for sequences of equal length.

The operators are those that onnxruntime's own optimizer makes of such a model: attention with its
projections is one, and the sums are fused with the norms that follow them (``com.microsoft``).
There is no padding, so there is no mask. The graph names its weights and does not hold them: it is
a few kilobytes, made in milliseconds, and nothing is exported to the disk.

Needs the package ``onnx``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, helper

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from featpipe.encoders.bert import PackedBert, Shape
    from featpipe.encoders.weights import Weights

    Array = NDArray[np.float32]

#: Inputs (sequences, length) int32, and the output (sequences, length, width) float32.
IDS, POSITIONS, STATES = "ids", "rows", "states"

#: Versions of the operators and of the format, which onnxruntime 1.20 and later read.
_OPSET, _FUSED_OPSET, _FORMAT = 17, 1, 8
_FUSED = "com.microsoft"


class Graph(NamedTuple):
    """A graph, and the weights that it names."""

    model: bytes
    """A serialised ``ModelProto``."""
    weights: dict[str, Array]
    """By name. The tables of words and positions are in the memory of the packed forward, others
    are copies; none is a view of the checkpoint's files."""


def build_graph(bert: PackedBert, n_layers: int) -> Graph:
    """Hidden states after `n_layers` layers of `bert`, which is on a processor.

    Raises:
        CheckpointError: the files of the weights were overwritten.
    """
    builder = _Builder(bert.read_weights(), bert.shape)
    x = builder.embed(bert.embeddings.words, bert.embeddings.positions)
    for number in range(n_layers):
        x = builder.add_layer(x, f"encoder.layer.{number}")
    return builder.finish(x)


class _Builder:
    """Nodes in the order of their computation. Each method returns the name of its result."""

    def __init__(self, weights: Weights, shape: Shape) -> None:
        self._weights, self._shape = weights, shape
        self._nodes: list[NodeProto] = []
        self._kept: dict[str, Array] = {}

    def embed(self, words: torch.Tensor, positions: torch.Tensor) -> str:
        """Rows of the two tables, their norm, and the projection to the width of the layers."""
        rows = [
            self._add("Gather", self._keep("words", _array(words)), IDS),
            self._add("Gather", self._keep("positions", _array(positions)), POSITIONS),
        ]
        norm, epsilon = self._norm("embeddings"), self._shape.epsilon
        x = self._add("LayerNormalization", self._add("Add", *rows), *norm, epsilon=epsilon)
        if self._shape.embedding_width == self._shape.width:
            return x
        linear = "embeddings_project"
        return self._add("Add", self._multiply(x, linear), self._bias(linear))

    def add_layer(self, x: str, layer: str) -> str:
        """Attention and the inner layers, each with its sum and norm."""
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        heads = self._shape.n_heads
        y = self._fuse("Attention", x, self._weight(*parts), self._bias(*parts), num_heads=heads)
        x = self._add_and_norm(x, y, f"{layer}.attention.output")
        inner = f"{layer}.intermediate.dense"
        y = self._activate(self._multiply(x, inner), self._bias(inner))
        return self._add_and_norm(x, y, f"{layer}.output")

    def finish(self, x: str) -> Graph:
        """The graph whose output is `x`."""
        self._nodes.append(helper.make_node("Identity", [x], [STATES]))
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT32, ["sequences", "length"])
            for name in (IDS, POSITIONS)
        ]
        sizes = ["sequences", "length", self._shape.width]
        output = helper.make_tensor_value_info(STATES, TensorProto.FLOAT, sizes)
        named = [_name_weight(name, array) for name, array in self._kept.items()]
        graph = helper.make_graph(self._nodes, "encoder", inputs, [output], named)
        versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, _FUSED_OPSET)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=_FORMAT)
        return Graph(model.SerializeToString(), self._kept)

    def _add_and_norm(self, x: str, y: str, part: str) -> str:
        """LayerNorm of x + y W + b."""
        y, bias = self._multiply(y, f"{part}.dense"), self._bias(f"{part}.dense")
        norm, epsilon = self._norm(part), self._shape.epsilon
        return self._fuse("SkipLayerNormalization", y, x, *norm, bias, epsilon=epsilon)

    def _activate(self, y: str, bias: str) -> str:
        """Activation of y + b."""
        if self._shape.activation == "relu":
            return self._add("Relu", self._add("Add", y, bias))
        return self._fuse("BiasGelu" if self._shape.activation == "gelu" else "FastGelu", y, bias)

    def _multiply(self, x: str, linear: str) -> str:
        return self._add("MatMul", x, self._weight(linear))

    def _norm(self, part: str) -> tuple[str, str]:
        names = [f"{part}.LayerNorm.{of}" for of in ("weight", "bias")]
        weight, bias = (self._keep(name, _array(self._weights[name]).copy()) for name in names)
        return weight, bias

    def _weight(self, *linears: str) -> str:
        """W of y = x W, of one layer or of several side by side; torch stores it transposed."""
        whole = np.concatenate([_array(self._weights[f"{name}.weight"]) for name in linears])
        return self._keep(f"{linears[0]}.weight", np.ascontiguousarray(whole.T))

    def _bias(self, *linears: str) -> str:
        whole = np.concatenate([_array(self._weights[f"{name}.bias"]) for name in linears])
        return self._keep(f"{linears[0]}.bias", whole)

    def _keep(self, name: str, array: Array) -> str:
        self._kept[name] = array
        return name

    def _fuse(self, kind: str, *inputs: str, **attributes: float) -> str:
        return self._add(kind, *inputs, domain=_FUSED, **attributes)

    def _add(self, kind: str, *inputs: str, domain: str = "", **attributes: float) -> str:
        name = f"{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name


def _array(tensor: torch.Tensor) -> Array:
    found: Array = tensor.detach().float().numpy()
    return found


def _name_weight(name: str, array: Array) -> TensorProto:
    """A weight that is handed over when the graph is opened."""
    named = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=array.shape)
    named.data_location = TensorProto.EXTERNAL
    named.external_data.add(key="location", value="memory")
    return named
