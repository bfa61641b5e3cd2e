"""Encode: a worker that owns one device and turns unit texts into vectors and entities.

Vectors and entities share a process, so that a card holds one context.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.messages import TOGETHER, FeatureBatch, FeatureTask
from featpipe.encoders.encode_and_tag import encode_and_tag
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.lost_card import ending_with_card
from featpipe.encoders.precision import keep_least_cosine
from featpipe.encoders.spec import CUT_RULE
from featpipe.encoders.tagger import Tagger
from featpipe.errors import CheckpointError, EncodingError
from featpipe.report import Counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.build.messages import EncoderPlan, TaggerPlan
    from featpipe.cache.texts import Units
    from featpipe.encoders.encoded import Encoded
    from featpipe.encoders.entities import Entities


#: Texts on which a lower precision is measured, and about the most characters of them.
_SAMPLE, _SAMPLE_CHARACTERS = 64, 4096


class EncodeRole:
    """Loads its checkpoints at the first task that needs them.

    Args:
        encoder, tagger: what to fill; there may be no tagger.
        threads: CPU threads for this worker; given by the pool.
        device: ``cpu`` or ``cuda:i``; given by the pool.

    """

    def __init__(
        self, encoder: EncoderPlan, tagger: TaggerPlan | None, threads: int, device: str
    ) -> None:
        self._encoder_plan = encoder
        self._tagger_plan = tagger
        self._threads = threads
        self._device = device
        self._encoder: Encoder | None = None
        self._tagger: Tagger | None = None
        self._compared: dict[str, int] = {}
        """What was measured of an approximate precision, in words."""
        self._is_compared = False
        self._least_cosine = 1.0
        self._reported: dict[tuple[str, str], int] = {}
        """Notes in the batches so far: (kind, words) -> count."""

    def run(self, task: FeatureTask) -> FeatureBatch:
        """One row per unit; a unit that cannot be computed costs only itself.

        Where the card is lost, the process ends: in another one the pool finds the unit that it is
        lost with.
        """
        with ending_with_card(self._device):
            return self._run(task)

    def _run(self, task: FeatureTask) -> FeatureBatch:
        if task.table == self._encoder_plan.table:
            return self._encode(task)
        if self._tagger_plan is None or task.table not in {self._tagger_plan.table, TOGETHER}:
            raise ValueError(f"this worker fills no table named {task.table}")
        if task.table == TOGETHER:
            return self._encode_and_tag(task.units, self._tagger_plan)
        return self._tag(task, self._tagger_plan)

    def _encode_and_tag(self, units: Units, plan: TaggerPlan) -> FeatureBatch:
        """Vectors and entities of paragraphs by one forward; apart where one is at fault."""
        vectors = FeatureTask(self._encoder_plan.table, units)
        entities = FeatureTask(plan.table, units)
        encoder, tagger = self._load_encoder(), self._load_tagger(plan)
        self._compare(vectors, encoder)
        if tagger.trunk is encoder.trunk:
            try:
                encoded, found = encode_and_tag(encoder, tagger, units.texts.strings())
            except EncodingError:
                pass  # of one unit: apart, each feature names its own
            else:
                also = self._batch_entities(entities, tagger, found)
                return replace(self._batch_vectors(vectors, encoder, encoded), also=(also,))
        return replace(self._encode(vectors), also=(self._tag(entities, plan),))

    def _load_encoder(self) -> Encoder:
        if self._encoder is None:
            plan = self._encoder_plan
            self._encoder = Encoder.load(
                plan.path, plan.settings, device=self._device, threads=self._threads
            )
            _refuse_other(plan.fingerprint, self._encoder.fingerprint, plan.path)
        return self._encoder

    def _load_tagger(self, plan: TaggerPlan) -> Tagger:
        """With the encoder's trunk, where that is the same."""
        if self._tagger is None:
            self._tagger = Tagger.load(
                plan.path,
                plan.settings,
                device=self._device,
                threads=self._threads,
                trunk=None if self._encoder is None else self._encoder.trunk,
            )
            _refuse_other(plan.fingerprint, self._tagger.fingerprint, plan.path)
        return self._tagger

    def _encode(self, task: FeatureTask) -> FeatureBatch:
        encoder = self._load_encoder()
        self._compare(task, encoder)
        encoded = encoder.encode(task.units.texts.strings(), on_fault="report")
        return self._batch_vectors(task, encoder, encoded)

    def _batch_vectors(self, task: FeatureTask, encoder: Encoder, encoded: Encoded) -> FeatureBatch:
        good = np.array([at for at in range(len(task)) if at not in encoded.faults], np.intp)
        keys = task.units.keys
        beyond = np.maximum(encoded.n_tokens[good] - encoder.spec["max_length"], 0)
        is_cut = encoder.spec["window_rule"] == CUT_RULE
        return FeatureBatch(
            table=task.table,
            rows={"keys": keys[good], "vectors": encoded.vectors[good]} if len(good) else {},
            failed=tuple((keys[at].tobytes(), why) for at, why in encoded.faults.items()),
            counts=Counts(
                n_long=int(np.count_nonzero(beyond)),
                n_extra_windows=int((encoded.n_windows[good] - 1).sum()),
                n_long_tokens=int(beyond.sum()),
                n_cut_tokens=int(beyond.sum()) if is_cut else 0,
                tokenize_s=encoder.take_tokenize_s(),
                card_s=encoder.forwarder.take_card_s(),
            ),
            least_cosine=self._least_cosine,
            notes=self._new_notes("vectors", encoder.counts | self._compared),
        )

    def _compare(self, task: FeatureTask, encoder: Encoder) -> None:
        """Measure how far from exact this precision is, once, on texts of these documents."""
        plan = self._encoder_plan
        is_approx = plan.settings.precision == "approx"
        if self._is_compared or not (plan.is_unproven or is_approx):
            return
        self._is_compared = True
        found = encoder.compare_with_exact(_sample(task.units.texts.strings()))
        if plan.is_unproven:
            keep_least_cosine(encoder.spec, found)
            self._least_cosine = float(found.min())
        if is_approx:
            words = (
                f"approx: on {len(found)} of these texts the cosine to exact vectors is "
                f"{found.min():.4f} or more, {found.mean():.4f} on average"
            )
            self._compared = {words: 0}

    def _tag(self, task: FeatureTask, plan: TaggerPlan) -> FeatureBatch:
        tagger = self._load_tagger(plan)
        try:
            found = tagger.find_entities(task.units.texts.strings())
        except EncodingError as error:
            return self._tag_others(task, plan, error)
        return self._batch_entities(task, tagger, found)

    def _tag_others(
        self, task: FeatureTask, plan: TaggerPlan, error: EncodingError
    ) -> FeatureBatch:
        """The units that the error does not name."""
        named: tuple[int, ...] = getattr(error, "units", ())
        if not named:
            raise error
        rest = np.setdiff1d(np.arange(len(task)), named)
        batch = FeatureBatch(task.table, {})
        if len(rest):
            batch = self._tag(FeatureTask(task.table, task.units.take(rest)), plan)
        lost = tuple((task.units.keys[at].tobytes(), error.message) for at in named)
        return replace(batch, failed=batch.failed + lost)

    def _batch_entities(self, task: FeatureTask, tagger: Tagger, found: Entities) -> FeatureBatch:
        spans = np.stack([found.start, found.end], axis=1).astype(np.uint32)
        return FeatureBatch(
            table=task.table,
            rows={
                "keys": task.units.keys,
                "spans": (spans, found.lengths),
                "labels": (found.label, found.lengths),
                "scores": (found.score, found.lengths),
            },
            counts=Counts(n_entities=len(found.start), card_s=tagger.take_card_s()),
            notes=self._new_notes("entities", tagger.counts),
        )

    def _new_notes(self, kind: str, counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
        """Events since the last batch, and lasting facts once."""
        notes = {
            words: n - self._reported.get((kind, words), 0)
            for words, n in counts.items()
            if n > self._reported.get((kind, words), -1)
        }
        self._reported |= {(kind, words): n for words, n in counts.items()}
        return tuple(notes.items())


def _sample(texts: Sequence[str]) -> list[str]:
    """Some of the texts, evenly from all of them; few where they are long."""
    rows = np.unique(np.linspace(0, len(texts) - 1, _SAMPLE).astype(np.intp)).tolist()
    mean = sum(len(texts[row]) for row in rows) / len(rows)
    step = max(1, round(mean * len(rows) / _SAMPLE_CHARACTERS))
    return [texts[row] for row in rows[::step]]


def _refuse_other(expected: str, found: str, path: str) -> None:
    """Refuse to fill a space with another checkpoint's vectors: weights may change under a path."""
    if expected != found:
        raise CheckpointError(
            f"{path} changed while the run was going on: its fingerprint was {expected[:12]} "
            f"and is now {found[:12]}",
            hint="run the command again; what is stored is untouched",
        )
