"""Encode: a worker that owns one device and turns unit texts into vectors and entities.

Vectors and entities share a process, so that a card holds one context. The cache arrives as a path;
the worker opens it itself and leaves out what is stored by now (a task that is repeated after the
loss of a worker may find its rows there).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.messages import TOGETHER, FeatureBatch, FeatureTask
from featpipe.encoders.encoder import Encoded, Encoder
from featpipe.encoders.spec import CUT_RULE
from featpipe.encoders.tagger import Tagger, encode_and_tag
from featpipe.errors import CheckpointError, EncodingError
from featpipe.store import Reader

if TYPE_CHECKING:
    from featpipe.build.messages import EncoderPlan, TaggerPlan
    from featpipe.cache.texts import Keys, Units
    from featpipe.encoders.entities import Entities


#: Texts on which an approximate precision is measured.
_SAMPLE = 64


class EncodeRole:
    """Loads its checkpoints at the first task that needs them.

    Args:
        cache: path of the file, for looking up what it holds.
        encoder, tagger: what to fill; either may be absent.
        threads: CPU threads for this worker; given by the engine.
        device: ``cpu`` or ``cuda:i``; given by the engine.

    """

    def __init__(
        self,
        cache: str,
        encoder: EncoderPlan | None,
        tagger: TaggerPlan | None,
        threads: int,
        device: str,
    ) -> None:
        self._reader = Reader(cache)
        self._encoder_plan = encoder
        self._tagger_plan = tagger
        self._threads = threads
        self._device = device
        self._encoder: Encoder | None = None
        self._tagger: Tagger | None = None
        self._compared: dict[str, int] = {}
        """What was measured of an approximate precision, once."""
        self._told: dict[tuple[str, str], int] = {}

    def run(self, task: FeatureTask) -> FeatureBatch:
        """One row per unit that lacks one; a unit that cannot be computed costs only itself."""
        if task.table == TOGETHER:
            return self._run_together(task.units)
        missing, stored = self._split_stored(task)
        batch = self._compute(missing) if len(missing) else FeatureBatch(task.table, {})
        return replace(batch, stored=stored)

    def close(self) -> None:
        """Let go of the cache."""
        self._reader.close()

    def _split_stored(self, task: FeatureTask) -> tuple[FeatureTask, Keys]:
        """The units without a row, and the keys of those that have one."""
        self._reader.refresh()
        if task.table not in self._reader:
            return task, task.units.keys[:0]
        rows = self._reader.table(task.table).find(task.units.keys)
        if (rows < 0).all():
            return task, task.units.keys[:0]
        missing = task.units.take(np.flatnonzero(rows < 0))
        return FeatureTask(task.table, missing), task.units.keys[rows >= 0]

    def _compute(self, task: FeatureTask) -> FeatureBatch:
        if self._encoder_plan is not None and task.table == self._encoder_plan.table:
            return self._encode(task, self._encoder_plan)
        if self._tagger_plan is not None and task.table == self._tagger_plan.table:
            return self._tag(task, self._tagger_plan)
        raise ValueError(f"this worker fills no table named {task.table}")

    def _run_together(self, units: Units) -> FeatureBatch:
        """Vectors and entities of paragraphs by one forward; apart where some are stored."""
        if self._encoder_plan is None or self._tagger_plan is None:
            raise ValueError("this worker does not fill both tables")
        vectors = FeatureTask(self._encoder_plan.table, units)
        entities = FeatureTask(self._tagger_plan.table, units)
        is_new = all(not len(self._split_stored(task)[1]) for task in (vectors, entities))
        encoder = self._load_encoder(self._encoder_plan)
        tagger = self._load_tagger(self._tagger_plan)
        if is_new and tagger.trunk is encoder.trunk:
            try:
                encoded, found = encode_and_tag(encoder, tagger, units.texts.strings())
            except EncodingError:
                pass  # of one unit: apart, each feature names its own
            else:
                also = self._batch_entities(entities, tagger, found)
                return replace(self._batch_vectors(vectors, encoder, encoded), also=(also,))
        return replace(self.run(vectors), also=(self.run(entities),))

    def _load_encoder(self, plan: EncoderPlan) -> Encoder:
        if self._encoder is None:
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

    def _encode(self, task: FeatureTask, plan: EncoderPlan) -> FeatureBatch:
        encoder = self._load_encoder(plan)
        if plan.settings.precision == "approx" and not self._compared:
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
            n_tokens=int(encoded.n_tokens.sum()),
            n_extra_windows=int((encoded.n_windows[good] - 1).sum()),
            n_long=int(np.count_nonzero(beyond)),
            n_long_tokens=int(beyond.sum()),
            n_cut_tokens=int(beyond.sum()) if is_cut else 0,
            notes=self._news("vectors", encoder.counts | self._compared),
        )

    def _compare(self, task: FeatureTask, encoder: Encoder) -> None:
        """Say how far from exact this precision is, on texts of this very corpus."""
        rows = np.unique(np.linspace(0, len(task) - 1, _SAMPLE).astype(np.intp))
        found = encoder.compare_with_exact(task.units.texts.take(rows).strings())
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
            n_entities=len(found.start),
            notes=self._news("entities", tagger.counts),
        )

    def _news(self, kind: str, counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
        """What happened since it was last told, and what holds, once."""
        news = {
            words: n - self._told.get((kind, words), 0)
            for words, n in counts.items()
            if n > self._told.get((kind, words), -1)
        }
        self._told |= {(kind, words): n for words, n in counts.items()}
        return tuple(news.items())


def _refuse_other(expected: str, found: str, path: str) -> None:
    """Refuse to fill a space with another checkpoint's vectors: weights may change under a path."""
    if expected != found:
        raise CheckpointError(
            f"{path} changed while the run was going on: its fingerprint was {expected[:12]} "
            f"and is now {found[:12]}",
            hint="run the command again; what is stored is untouched",
        )
