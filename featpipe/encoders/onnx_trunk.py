"""A BERT-like model on a processor, computed by onnxruntime: soonest with one text at a time.

Guarantees: float32; each sequence is computed alone, so that its bits do not depend on others; the
weights are those of the packed forward that it was made of.

Needs the packages ``onnx`` and ``onnxruntime``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import torch
from onnxruntime import OrtValue

from featpipe.encoders.onnx_graph import IDS, POSITIONS, STATES, build_graph
from featpipe.encoders.transfer import CPU
from featpipe.errors import UnsupportedModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.encoders.bert import PackedBert
    from featpipe.encoders.packing import Pack

    Array = NDArray[np.float32]

#: Of onnxruntime's messages: errors alone.
_ERRORS = 3


class OnnxTrunk:
    """See `featpipe.encoders.trunk.Trunk`.

    Args:
        bert: a packed forward on a processor, in any precision.
        n_layers: how many of its layers are computed.
        threads: that compute one text.

    Raises:
        CheckpointError: the files of the weights were overwritten.
        UnsupportedModel: onnxruntime refuses the graph.
    """

    device = CPU
    is_invariant = True
    needs_one_thread = False
    notes = ()

    def __init__(self, bert: PackedBert, n_layers: int, *, threads: int) -> None:
        self.width, self.n_words = bert.width, bert.n_words
        self._bert, self._n_layers = bert, n_layers
        graph = build_graph(bert, n_layers)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = _ERRORS
        if os.environ.get("GOMP_SPINCOUNT") == "0":  # of torch's threads; these heed another name
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Kept as long as the session, which reads them where they are.
        self._weights = list(map(OrtValue.ortvalue_from_numpy, graph.weights.values()))
        options.add_external_initializers(list(graph.weights), self._weights)
        try:
            self._session = onnxruntime.InferenceSession(
                graph.model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors have no class in common
            raise UnsupportedModel(f"onnxruntime refuses the model's graph: {error}") from error

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        """See `Trunk`; of no other number of layers than that of the constructor."""
        if n_layers not in {None, self._n_layers}:
            raise ValueError(f"a graph of {self._n_layers} layers cannot give {n_layers}")
        ids = pack.ids.astype(np.int32, copy=False)
        positions = self._bert.embeddings.position_rows(pack).astype(np.int32, copy=False)
        ends = np.cumsum(pack.lengths)
        states = [
            self._run(ids[end - length : end], positions[end - length : end])
            for end, length in zip(ends.tolist(), pack.lengths.tolist(), strict=True)
        ]
        return torch.from_numpy(states[0] if len(states) == 1 else np.concatenate(states))

    def copy_to(
        self, *, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> PackedBert:
        """See `Trunk`; a packed forward, which may be the one that this was made of."""
        if (device or CPU, dtype) == (self._bert.device, self._bert.dtype):
            return self._bert
        return self._bert.copy_to(device=device, dtype=dtype)

    def _run(self, ids: NDArray[np.int32], positions: NDArray[np.int32]) -> Array:
        """Shapes: each (t,) -> (t, width)."""
        if not len(ids):
            return np.empty((0, self.width), np.float32)
        inputs = {IDS: ids[None], POSITIONS: positions[None]}
        states: Array = self._session.run([STATES], inputs)[0][0]
        return states
