"""What computes the vectors of queries: torch, as everything else, or onnxruntime.

The packed forward is made for many texts at a time; onnxruntime answers a single short one sooner.
Passages are computed by torch in any case: their vectors are stored, under a fingerprint.

Guarantees: vectors of another backend have a fingerprint of their own; before the first query they
are held against those of the packed forward in float32, on texts of several lengths, and where one
differs by more than `LARGEST_DIFFERENCE` the backend is not used. Imports no torch.
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, get_args

from featpipe.errors import MissingExtra, UnsupportedModel, UsageError

if TYPE_CHECKING:
    from featpipe.encoders.encoder import Encoder

QueryBackend = Literal["torch", "onnx"]

#: Largest relative difference ``|other - torch| / |torch|`` of a probe's vectors: a cosine of
#: .9999995. Two computations in float32 differ by 1e-7 to 1e-5.
LARGEST_DIFFERENCE = 1e-3

_PACKAGES = ("onnx", "onnxruntime")
_SENTENCES = (
    "谁承担违约责任？",
    "What is the rent of flat 12?",
    "甲方应于 2024-05-01 前付清 3,000 元。",
)
_PROBES = ("", "租", *_SENTENCES, *("".join(_SENTENCES) * n for n in (1, 4)))


def check_query_backend(name: str, device: str = "cpu") -> None:
    """Refuse a backend that cannot be used here.

    Raises:
        UsageError: another word, or a card.
        MissingExtra: its packages are not installed.
    """
    if name not in get_args(QueryBackend):
        known = ", ".join(get_args(QueryBackend))
        raise UsageError(f"query backend {name!r} is none of {known}")
    if name == "torch":
        return
    if device != "cpu":
        raise UsageError(
            f"query backend {name} computes on processors, not on {device}",
            hint="leave the backend out, or say device cpu",
        )
    missing = [package for package in _PACKAGES if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"query backend {name} needs {' and '.join(missing)}",
            hint="pip install 'featpipe[onnx]'",
        )


def onnx_encoder(encoder: Encoder) -> Encoder:
    """The same model and settings, computed by onnxruntime in float32.

    Args:
        encoder: on a processor.

    Raises:
        UnsupportedModel: a model without the packed forward, or in int8, or one whose vectors
            differ from those of the packed forward.
        CheckpointError: the files of the weights were overwritten.
    """
    from featpipe.encoders.bert import PackedBert
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.onnx_trunk import OnnxTrunk

    bert, spec = encoder.trunk, encoder.spec
    if not isinstance(bert, PackedBert):
        raise UnsupportedModel(f"{spec['architecture']} has no forward of featpipe's own")
    if spec["precision"] == "approx":
        raise UnsupportedModel("onnxruntime computes in float32, and the space is in int8")
    trunk = OnnxTrunk(bert, spec["layer"], threads=encoder.threads)
    parts = {"precision": "exact", "arithmetic": f"float32, onnxruntime {version('onnxruntime')}"}
    made = Encoder(
        trunk, encoder.tokenizer, spec | parts, encoder.steps, refuses_long=encoder.refuses_long
    )
    made.threads = encoder.threads
    _refuse_different(made)
    return made


def _refuse_different(made: Encoder) -> None:
    """Hold the vectors of some texts against those of the packed forward in float32.

    Raises:
        UnsupportedModel: they differ.
    """
    import numpy as np

    from featpipe.encoders.encoder import Encoder

    spec = made.spec | {"dtype": "float32"}
    found, expected = (
        Encoder(trunk, made.tokenizer, spec, made.steps).encode(_PROBES, on_fault="report")
        for trunk in (made.trunk, made.trunk.copy_to())
    )
    wanted = expected.vectors.astype(np.float64)
    differences = np.linalg.norm(found.vectors.astype(np.float64) - wanted, axis=1)
    worst = (differences / np.maximum(np.linalg.norm(wanted, axis=1), 1e-30)).max()
    if found.faults != expected.faults or not worst <= LARGEST_DIFFERENCE:
        raise UnsupportedModel(
            f"onnxruntime's vectors differ from those of torch by {worst:.1e} of their length,"
            f" allowed {LARGEST_DIFFERENCE:.0e}"
        )
