"""Adoption: vectors of an old file under the fingerprint of the model that may have made them.

The file does not say by which weights, pooling, prompt and normalisation it was made. So a sample
of its texts is encoded anew and compared, and only if all of it agrees are the vectors taken.

What the sample shows:

* A difference in how all vectors were made (weights, pooling, layer, prompt, normalisation) shows
  in any one text.
* Foreign rows, a share q of all, are missed by n texts drawn at random with probability
  (1 - q)^n at most. For q = 1 % and a probability of 0.1 %, n = ceil(ln 0.001 / ln 0.99) = 688. Of
  a file with fewer texts all are compared.
* A limit on the length of texts shows only in long ones: the longest that fit into one window are
  compared as well. Longer ones are not taken, as featpipe reads them in several windows.

Guarantees: nothing is written unless every compared text agrees. Not to be had: rows that are
foreign are found only by chance where they are fewer than that; and where the names in the file are
hashes of texts, nothing can be encoded and nothing is taken.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from featpipe.cache import tables
from featpipe.encoders.builtin import space_name
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.spec import EncoderSettings, encoder_spec, fingerprint_of
from featpipe.encoders.tokenizer import Tokenizer
from featpipe.errors import UnknownSpace, UsageError, raise_original
from featpipe.on_demand.messages import Embedded, EmbedQuery
from featpipe.on_demand.space import Checkpoints
from featpipe.on_demand.text_encoder import text_role
from featpipe.pool import Pool
from featpipe.store.import_vectors import Import, import_vectors, list_texts, read_some

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.encoders.checkpoint import Checkpoint
    from featpipe.encoders.spec import Spec
    from featpipe.on_demand.messages import Answer

    #: By text: (dim,).
    Vectors: TypeAlias = Mapping[str, NDArray[np.generic]]

#: Share of foreign rows that is to be found, and the probability of missing it.
FOREIGN_SHARE, MISS = 0.01, 0.001
#: Longest texts that are compared beside the sample.
N_LONGEST = 32

#: Largest relative difference ``|old - new| / |new|`` that is rounding. Two computations in float32
#: differ by 1e-6 to 1e-5, and storing in float16 adds up to 2^-11 = 5e-4 to either. A computation
#: in bfloat16 or float16 differs by more, and is another precision with another fingerprint.
TOLERANCE = 2e-3

_TASK_TEXTS = 64
#: Names that are digests rather than texts: MD5, SHA-1 and longer, in hexadecimal.
_DIGEST = re.compile(r"[0-9a-fA-F]{32,128}")
TOO_LONG = "it is longer than one window, which featpipe encodes otherwise"


@dataclass(frozen=True, slots=True)
class Adoption:
    """A sample that agreed, and what was taken in."""

    done: Import
    n_compared: int
    n_texts: int
    worst: float
    """Largest relative difference among them."""

    def __str__(self) -> str:
        sure = "all of them"
        if self.n_compared < self.n_texts:
            # What so many show; vectors with NaN, which are not taken, leave fewer to compare.
            share = 1 - MISS ** (1 / self.n_compared)
            sure = (
                f"enough to find {share:.1%} of foreign rows with a probability of {1 - MISS:.1%}"
            )
        return (
            f"{self.done}\ncompared {self.n_compared:,} of {self.n_texts:,} texts, {sure}: largest"
            f" difference {self.worst:.1e} of the vector's length, allowed {TOLERANCE:.0e}"
        )


def sample_size(share: float = FOREIGN_SHARE, miss: float = MISS) -> int:
    """Texts to draw so that `share` of foreign ones is missed with probability `miss` at most.

    ceil(ln miss / ln(1 - share)); drawing without replacement misses even less.
    """
    return math.ceil(math.log(miss) / math.log1p(-share))


def adopt_vectors(
    source: str | Path, cache: str | Path, model: str | Path, *, group: str = "word_emb"
) -> Adoption:
    """Append the vectors below `group` of an old file to the space of `model`, if they are its.

    They must be those of the model's own settings in float32 (`EncoderSettings`, precision
    ``exact``); they are stored in float16, as build-cache does, which goes on in this space.

    Raises:
        UnknownSpace: they are not, and nothing is written; the texts that differ most are named.
        UsageError: no text that can be compared.
        CheckpointError: a model folder that cannot be used.
        UnreadableDictionary, DictionaryLocked: as `featpipe.cache.merge.import_vectors`.

    """
    source, checkpoint = Path(source), describe_checkpoint(model)
    spec = encoder_spec(checkpoint, EncoderSettings(precision="exact"))
    lengths = _Lengths(checkpoint, spec)
    texts = list_texts(source, group)
    fitting = [text for text in texts if not lengths.judge([text])]
    if not fitting:
        raise UsageError(f"{source} holds no text of one window below {group}")
    sample = _draw(fitting)
    # Others are skipped by the import.
    old = {
        text: vector
        for text, vector in read_some(source, group, sample).items()
        if vector.shape == (checkpoint.dim,) and np.isfinite(vector).all()
    }
    worst = _compare(old, checkpoint, source)
    fingerprint = fingerprint_of(spec)
    table = tables.vectors_spec(spec, fingerprint, checkpoint.dim, spec["dtype"])
    done = import_vectors(
        source,
        cache,
        table=tables.space_table(space_name(model), fingerprint),
        group=group,
        spec=table,
        refuse=lengths.judge,
    )
    return Adoption(done, len(old), len(fitting), worst)


class _Lengths:
    """Which texts fit into one window."""

    def __init__(self, checkpoint: Checkpoint, spec: Spec) -> None:
        self._tokenizer = Tokenizer.load(checkpoint)
        prompt = self._tokenizer.encode([str(spec["prompt"])]).lengths[0]
        self._most = int(spec["max_length"]) - self._tokenizer.n_special - int(prompt)

    def judge(self, texts: Sequence[str]) -> Mapping[str, str]:
        """The reason by text, of those that do not."""
        lengths = self._tokenizer.encode(texts).lengths
        return {texts[row]: TOO_LONG for row in np.flatnonzero(lengths > self._most).tolist()}


def _draw(texts: Sequence[str]) -> list[str]:
    """A random sample, and the longest texts."""
    drawn = random.SystemRandom().sample(texts, min(sample_size(), len(texts)))
    longest = sorted(texts, key=len)[-N_LONGEST:]
    return list(dict.fromkeys([*drawn, *longest]))


def _compare(old: Vectors, checkpoint: Checkpoint, source: Path) -> float:
    """The largest relative difference to vectors made now.

    Raises:
        UnknownSpace: it is too large.
    """
    if not old:
        raise UnknownSpace(
            f"{source} was not made by {checkpoint.folder}: none of the compared vectors has"
            f" {checkpoint.dim} finite numbers"
        )
    texts = list(old)
    new = _encode(texts, checkpoint)
    differences = np.array([_differ(old[text], new.get(text)) for text in texts])
    worst = float(differences.max())
    if worst <= TOLERANCE:
        return worst
    order = np.argsort(-differences)[:5].tolist()
    named = "; ".join(f"{texts[row][:40]!r} by {differences[row]:.2g}" for row in order)
    n_foreign = int((differences > TOLERANCE).sum())
    raise UnknownSpace(
        f"{source} was not made by {checkpoint.folder} with its own settings: {n_foreign:,} of"
        f" {len(texts):,} compared vectors differ by more than {TOLERANCE:.0e} of their length"
        f" ({named}); nothing was imported",
        hint=_guess_why(texts, old, new),
    )


def _guess_why(texts: Sequence[str], old: Vectors, new: Vectors) -> str:
    if all(map(_DIGEST.fullmatch, texts)):
        return "the names in it are digests, not texts: their texts cannot be encoded and compared"
    both = [text for text in texts if text in new]
    unit = [_differ(_to_length_one(old[text]), _to_length_one(new[text])) for text in both]
    if both and max(unit) <= TOLERANCE:
        return "they differ in length alone: the one was normalised, the other not"
    return "leave --assume-model out to import them as a space of their own"


def _differ(old: NDArray[np.generic], new: NDArray[np.generic] | None) -> float:
    """``|old - new| / |new|``; infinite where they cannot be compared."""
    if new is None:
        return math.inf
    wide, wanted = np.asarray(old, np.float64), np.asarray(new, np.float64)
    return float(np.linalg.norm(wide - wanted) / max(float(np.linalg.norm(wanted)), 1e-30))


def _to_length_one(vector: NDArray[np.generic]) -> NDArray[np.float32]:
    wide = np.asarray(vector, np.float64)
    return np.asarray(wide / max(float(np.linalg.norm(wide)), 1e-30), np.float32)


def _encode(texts: Sequence[str], checkpoint: Checkpoint) -> Vectors:
    """Vectors by text, by a worker; without those that cannot be encoded."""
    settings = EncoderSettings(precision="exact", dtype="float32")
    role = text_role(Checkpoints(str(checkpoint.folder), encoder=settings), None, None)
    tasks = (
        [EmbedQuery((text,)) for text in texts[at : at + _TASK_TEXTS]]
        for at in range(0, len(texts), _TASK_TEXTS)
    )
    answers: list[Answer] = []
    with Pool([role]) as pool:
        for outcome in pool.map(role.name, tasks, ordered=True):
            if outcome.error is not None:
                raise_original(outcome.error)
            answers += cast("list[Answer]", outcome.value)
    return {
        text: np.array(answer.vectors[0])
        for text, answer in zip(texts, answers, strict=True)
        if isinstance(answer, Embedded)
    }
