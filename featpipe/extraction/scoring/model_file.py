"""The file of a fitted field: a hash, a JSON head, and arrays. Plain data, no pickle.

::

    magic (8) | blake2b of the rest (16) | length of the head (8) | head (JSON) | arrays, end to end

The head names each array with its dtype and shape. Hashed weights are stored sparsely: of the
quarter million columns a field uses some ten thousand.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.extraction.scoring.calibration import Evidence
from featpipe.extraction.scoring.candidates import Boundaries
from featpipe.extraction.scoring.context import N_HASHED
from featpipe.extraction.scoring.field_model import FieldModel
from featpipe.extraction.scoring.logistic import Logistic
from featpipe.extraction.scoring.mentions import MentionModel
from featpipe.extraction.scoring.ranking import ValueModel
from featpipe.extraction.scoring.rejected import RejectedValues
from featpipe.extraction.scoring.sentence_model import SentenceModel
from featpipe.extraction.scoring.sentence_words import N_PLACES
from featpipe.extraction.scoring.similarity import SampleMentions, SampleSentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.generic]]
    Plain = dict[str, Any]  # Any: values whose types pack_model decides

_MAGIC = b"featfit1"
_HEAD = len(_MAGIC) + 16 + 8
_DTYPES = frozenset(("int32", "int64", "float32", "float64"))


class UnreadableModel(Exception):
    """The bytes are damaged or of another field. Internal to extraction."""


def pack_model(model: FieldModel, fingerprint: str) -> bytes:
    """Serialise a model."""
    arrays, plain = _take_apart(model)
    listed = [[name, str(a.dtype), list(a.shape)] for name, a in arrays.items()]
    head = json.dumps(
        {"fingerprint": fingerprint, "plain": plain, "arrays": listed}, ensure_ascii=True
    ).encode()
    body = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays.values())
    rest = len(head).to_bytes(8, "little") + head + body
    return _MAGIC + blake2b(rest, digest_size=16).digest() + rest


def unpack_model(data: bytes, fingerprint: str) -> FieldModel:
    """Deserialise a model.

    Raises:
        UnreadableModel: damaged, cut short, of another format or of another fingerprint.

    """
    rest = memoryview(data)[_HEAD - 8 :]
    if data[:8] != _MAGIC or blake2b(rest, digest_size=16).digest() != data[8:24]:
        raise UnreadableModel("it is damaged or no fitted field")
    # The hash is right: what follows was written by pack_model.
    end = 8 + int.from_bytes(rest[:8], "little")
    head = json.loads(bytes(rest[8:end]))
    if head["fingerprint"] != fingerprint:
        raise UnreadableModel("it is of another field")
    arrays: Arrays = {}
    for name, dtype, shape in head["arrays"]:
        if dtype not in _DTYPES:
            raise UnreadableModel(f"it holds {dtype}")
        n = int(np.prod(shape))
        size = n * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(rest[end : end + size], dtype).reshape(shape)
        end += size
    return _put_together(arrays, head["plain"])


def _take_apart(model: FieldModel) -> tuple[Arrays, Plain]:
    columns = np.flatnonzero(model.mentions.hashed).astype(np.int32)
    places = np.flatnonzero(model.sample_mentions.shares).astype(np.int32)
    words = np.flatnonzero(model.sample_mentions.inside).astype(np.int32)
    queries = model.sentences.queries
    arrays: Arrays = {
        "columns": columns,
        "hashed": model.mentions.hashed[columns],
        "measured": model.mentions.measured,
        "values": model.values.model.weights,
        "exemplars": model.exemplars,
        "owners": model.owners,
        "places": places,
        "shares": model.sample_mentions.shares[places],
        "numbers": model.sample_mentions.measures,
        "words": words,
        "inside": model.sample_mentions.inside[words],
        "marks": model.sample_mentions.marks,
        "queries": np.concatenate([*queries, np.empty(0, np.int64)]),
        "rejected": model.rejected.codes,
        "rejections": model.rejected.log_odds,
        "query_lengths": np.array([len(query) for query in queries], np.int64),
    }
    if model.sentences.vectors is not None:
        arrays["vectors"] = model.sentences.vectors
    sentence_bias = None
    if model.sentence_model is not None:
        sentence_words = np.flatnonzero(model.sentence_model.weights).astype(np.int32)
        arrays["sentence_words"] = sentence_words
        arrays["sentence_weights"] = model.sentence_model.weights[sentence_words]
        sentence_bias = model.sentence_model.bias
    boundaries: Plain = {}
    for field in fields(Boundaries):
        value = getattr(model.boundaries, field.name)
        if isinstance(value, np.ndarray):
            arrays[f"edges.{field.name}"] = value
        else:
            boundaries[field.name] = sorted(value) if isinstance(value, frozenset) else value
    return arrays, {
        "kind": model.kind,
        "is_many": model.is_many,
        "gives_several": model.gives_several,
        "is_mostly_many": model.is_mostly_many,
        "may_be_many": model.may_be_many,
        "trusts_names": model.trusts_names,
        "is_pretrained": model.is_pretrained,
        "aliases": list(model.aliases),
        "bias": model.mentions.bias,
        "sentence_bias": sentence_bias,
        "value_bias": model.values.model.bias,
        "ceiling": model.values.ceiling,
        "evidence": asdict(model.values.evidence),
        "edges": boundaries,
    }


def _put_together(arrays: Arrays, plain: Plain) -> FieldModel:
    given: Plain = dict(arrays)
    hashed = _spread(given["columns"], given["hashed"])
    mentions = SampleMentions(
        _spread(given["places"], given["shares"]),
        given["numbers"],
        _spread(given["words"], given["inside"]),
        given["marks"],
    )
    boundaries = plain["edges"] | {
        name.removeprefix("edges."): value
        for name, value in given.items()
        if name.startswith("edges.")
    }
    boundaries["known"] = frozenset(boundaries["known"])
    ends = np.cumsum(given["query_lengths"])
    queries = np.split(given["queries"], ends[:-1]) if len(ends) else []
    return FieldModel(
        kind=plain["kind"],
        is_many=plain["is_many"],
        gives_several=plain["gives_several"],
        is_mostly_many=plain["is_mostly_many"],
        may_be_many=plain["may_be_many"],
        aliases=tuple(plain["aliases"]),
        boundaries=Boundaries(**boundaries),
        mentions=MentionModel(hashed, given["measured"], plain["bias"]),
        values=ValueModel(
            Logistic(given["values"], plain["value_bias"]),
            plain["ceiling"],
            Evidence(**plain["evidence"]),
        ),
        sentences=SampleSentences(tuple(queries), given.get("vectors")),
        sentence_model=_sentence_model(given, plain["sentence_bias"]),
        sample_mentions=mentions,
        exemplars=given["exemplars"],
        owners=given["owners"],
        rejected=RejectedValues(given["rejected"], given["rejections"]),
        trusts_names=plain["trusts_names"],
        is_pretrained=plain["is_pretrained"],
    )


def _sentence_model(given: Plain, bias: float | None) -> SentenceModel | None:
    if bias is None:
        return None
    weights = _spread(given["sentence_words"], given["sentence_weights"], N_PLACES)
    return SentenceModel(weights, bias)


def _spread(
    places: NDArray[np.int32], numbers: NDArray[np.float32], n: int = N_HASHED
) -> NDArray[np.float32]:
    """Numbers at some places of a hashed space (n,), 0 at all others."""
    table = np.zeros(n, np.float32)
    table[places] = numbers
    return table
