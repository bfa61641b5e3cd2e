"""The dictionary passes the contract of any store, and answers like a dict across crashes."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from featpipe.errors import WriteFailed
from featpipe.store import Writer
from tests.store.contract import DictionaryStore, MemoryStore, Store, StoreContract
from tests.store.crashing_disk import CountingDisk, FailingDisk
from tests.store.folders import FolderStore
from tests.store.samples import vectors_of


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestDictionary(StoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[Store]:
        store = DictionaryStore(path)
        yield store
        store.close()


class TestFolder(StoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[Store]:
        store = FolderStore(path)
        yield store
        store.close()


class Crash(BaseException):
    """What a kill is to the process that it ends."""


class CrashingDisk(CountingDisk):
    """Nothing gets through any more from the n-th call on."""

    crash_at = -1

    def before(self, kind: str) -> None:
        super().before(kind)
        if 0 <= self.crash_at <= self.n_points:
            raise Crash


BATCHES = st.lists(st.integers(0, 400), max_size=120).map(lambda n: [f"t{i}" for i in n])


class DictionaryMachine(RuleBasedStateMachine):
    """The dictionary must always answer like a plain dict, across crashes and refusals."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(mkdtemp())
        self.disk = CrashingDisk()
        self.store = DictionaryStore(self.folder / "d.h5", self.disk)
        self.acknowledged: dict[str, bytes] = {}
        self.pending: dict[str, bytes] = {}

    @rule(batch=BATCHES)
    def append(self, batch: list[str]) -> None:
        new = {text for text in batch if text not in self.acknowledged | self.pending}
        assert self.store.append(batch, vectors_of(batch)) == len(new)
        self.remember(batch)

    def remember(self, batch: list[str]) -> None:
        for text, vector in zip(batch, vectors_of(batch), strict=True):
            if text not in self.acknowledged:
                self.pending.setdefault(text, vector.tobytes())

    @rule()
    def commit(self) -> None:
        self.store.commit()
        self.acknowledged |= self.pending
        self.pending = {}

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.disk = CrashingDisk()
        self.store.open(self.disk)
        self.acknowledged |= self.pending
        self.pending = {}

    @rule(batch=BATCHES, after=st.integers(1, 25))
    def crash(self, batch: list[str], after: int) -> None:
        """Killed while adding: all that was acknowledged, and some of the rest."""
        self.disk.crash_at = self.disk.n_points + after
        self.remember(batch)
        try:
            self.store.append(batch, vectors_of(batch))
            self.store.commit()
            self.store.writer.close()
        except Crash:
            pass
        else:
            self.acknowledged |= self.pending
        self.store.reader.close()
        self.store.writer.abandon()
        self.disk = CrashingDisk()
        self.store.open(self.disk)
        self.settle()

    @rule(batch=BATCHES, at=st.integers(1, 15), n_times=st.integers(1, 3))
    def refuse(self, batch: list[str], at: int, n_times: int) -> None:
        """The disk refuses for a while: what was pending is to be appended again."""
        self.store.writer._disk = FailingDisk(errno.ENOSPC, at, n_times)
        self.store.writer.allocator._disk = self.store.writer._disk
        self.remember(batch)
        try:
            self.store.append(batch, vectors_of(batch))
            self.store.commit()
        except WriteFailed:
            again = list(self.pending)
        else:
            again = []
        self.store.writer._disk = self.store.writer.allocator._disk = self.disk
        self.store.append(again, vectors_of(again))
        self.commit()

    def settle(self) -> None:
        """Of what was pending, that counts which is there."""
        candidates = list(self.pending)
        for text, found in zip(candidates, self.store.find(candidates), strict=True):
            if found is not None:
                self.acknowledged[text] = found
        self.pending = {}

    @invariant()
    def answers_match(self) -> None:
        if not hasattr(self, "store"):
            return
        texts = [f"t{i}" for i in range(401)]
        vectors = [vector.tobytes() for vector in vectors_of(texts)]
        expected = dict(zip(texts, vectors, strict=True))
        assert all(expected[text] == found for text, found in self.acknowledged.items())
        assert self.store.find(texts) == [self.acknowledged.get(text) for text in texts]
        assert self.store.n_rows() == len(self.acknowledged)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            with Writer.open(self.store.path) as writer:
                assert writer.recovery is None
            shutil.rmtree(self.folder)


TestDictionaryAgainstADict = DictionaryMachine.TestCase
TestDictionaryAgainstADict.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
