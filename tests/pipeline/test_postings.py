"""Kept postings: mapped when they are right, made anew on any doubt, never another score."""

from __future__ import annotations

import logging
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from rank_bm25 import BM25Okapi
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.errors import UnknownSpace
from featpipe.features.array_file import map_arrays, write_arrays
from featpipe.features.bm25 import Segment
from featpipe.features.terms import Analyser
from featpipe.pipeline import postings
from featpipe.pipeline.search import SentenceSearch

IntArray = np.ndarray[Any, Any]
Backend = Literal["numba", "numpy"]

QUERIES = ["合同金额", "违约责任由", "甲乙丙", "龘", "合合同同"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's postings are kept."""
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of sentences of every time postings were derived."""
    seen: list[int] = []
    honest = Segment.from_ids

    def counting(
        ids: IntArray, lengths: IntArray, *, backend: Literal["numba", "numpy"]
    ) -> Segment:
        seen.append(len(lengths))
        return honest(ids, lengths, backend=backend)

    monkeypatch.setattr(Segment, "from_ids", counting)
    return seen


def sentences(seed: int, n: int) -> list[str]:
    choice = random.Random(seed)  # noqa: S311  # a fixed sample, not a secret
    return ["".join(choice.choices("合同金额违约责任由甲乙丙丁", k=8)) + "。" for _ in range(n)]


def write(path: Path, numbers: range, n: int = 5) -> None:
    write_documents(path, {f"{number}.txt": sentences(number, n) for number in numbers})


def found(path: Path) -> list[tuple[str, int, int, float]]:
    with Cache.open(path) as cache:
        search = SentenceSearch(cache, backend="numpy")
        hits = [hit for query in QUERIES for hit in search.search(query, 20)]
    return [(hit.document, hit.start, hit.end, hit.score) for hit in hits]


def expected(path: Path) -> list[tuple[str, int, int, float]]:
    """Of a fresh rank-bm25 over the sentences as they are."""
    analyser = Analyser("chars")
    with Cache.open(path) as cache:
        units = [(d.id, unit) for d in cache.documents() for unit in d.units("sentence")]
    terms = [analyser.terms(unit.text) for _, unit in units]
    if not any(terms):
        return []
    oracle = BM25Okapi(terms)
    answers = []
    for query in QUERIES:
        asked = set(analyser.terms(query))
        scores = oracle.get_scores(analyser.terms(query))
        holding = [at for at in range(len(units)) if asked & set(terms[at])]
        order = sorted(holding, key=lambda at: -scores[at])[:20]  # used at once
        answers += [
            (units[at][0], units[at][1].start, units[at][1].end, float(scores[at])) for at in order
        ]
    return answers


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("postings-*/*"))


def test_a_second_search_derives_nothing(tmp_path: Path, derived: list[int]) -> None:
    write(tmp_path / "c.h5", range(4))
    first = found(tmp_path / "c.h5")
    assert derived == [20]
    assert found(tmp_path / "c.h5") == first == expected(tmp_path / "c.h5")
    assert derived == [20]


def test_added_documents_make_one_more_segment(
    tmp_path: Path, folder: Path, derived: list[int]
) -> None:
    write(tmp_path / "c.h5", range(8))
    found(tmp_path / "c.h5")
    write(tmp_path / "c.h5", range(8, 10))
    for _ in range(2):
        assert found(tmp_path / "c.h5") == expected(tmp_path / "c.h5")
    assert derived == [40, 10]
    assert [file.name for file in files(folder)] == ["0.arrays", "1.arrays"]


def test_many_small_additions_become_one_segment_again(
    tmp_path: Path, folder: Path, derived: list[int]
) -> None:
    write(tmp_path / "c.h5", range(20), n=2)
    for number in range(20, 20 + postings._MAX_SEGMENTS):
        found(tmp_path / "c.h5")
        write(tmp_path / "c.h5", range(number, number + 1), n=2)
    assert len(files(folder)) == postings._MAX_SEGMENTS
    assert found(tmp_path / "c.h5") == expected(tmp_path / "c.h5")
    assert derived == [40, *[2] * (postings._MAX_SEGMENTS - 1), 56]
    assert [file.name for file in files(folder)] == ["0.arrays"]


def test_a_replaced_document_leaves_no_trace_in_the_scores(
    tmp_path: Path, derived: list[int]
) -> None:
    write(tmp_path / "c.h5", range(6))
    found(tmp_path / "c.h5")
    write_documents(tmp_path / "c.h5", {"2.txt": sentences(77, 4)})
    assert found(tmp_path / "c.h5") == expected(tmp_path / "c.h5")
    assert derived == [30, 29]


def test_another_cache_in_the_place_of_the_first_is_told_apart(
    tmp_path: Path, derived: list[int]
) -> None:
    """The same documents in another order have the same keys, but terms of other numbers."""
    write(tmp_path / "c.h5", range(4))
    found(tmp_path / "c.h5")
    (tmp_path / "c.h5").unlink()
    write_documents(tmp_path / "d.h5", {f"{n}.txt": sentences(n, 5) for n in (3, 2, 1, 0)})
    write_documents(tmp_path / "d.h5", {f"{n}.txt": sentences(n, 5) for n in range(4)})
    (tmp_path / "d.h5").rename(tmp_path / "c.h5")
    assert found(tmp_path / "c.h5") == expected(tmp_path / "c.h5")
    assert derived == [20, 20]


def test_a_backup_that_went_another_way_is_told_apart(tmp_path: Path, derived: list[int]) -> None:
    """Same file, same salts, same numbers of rows: only what was added differs."""
    write(tmp_path / "c.h5", range(4))
    shutil.copyfile(tmp_path / "c.h5", tmp_path / "backup")
    write_documents(tmp_path / "c.h5", {"new.txt": ["甲方合同。", "乙方责任。"]})
    found(tmp_path / "c.h5")
    (tmp_path / "backup").replace(tmp_path / "c.h5")
    write_documents(tmp_path / "c.h5", {"new.txt": ["丙方合同。", "丁方责任。"]})
    assert found(tmp_path / "c.h5") == expected(tmp_path / "c.h5")
    assert derived == [22, 22]


@pytest.mark.parametrize(
    "damage", ["cut short", "longer", "header", "array", "empty", "foreign", "folder", "version"]
)
def test_damaged_postings_are_made_anew(
    tmp_path: Path, folder: Path, derived: list[int], damage: str
) -> None:
    write(tmp_path / "c.h5", range(4))
    right = found(tmp_path / "c.h5")
    (file,) = files(folder)
    data = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.parent.rmdir()
    elif damage == "version":
        mapped = map_arrays(file)
        write_arrays(file, mapped.about | {"segment": -1}, mapped.arrays)
    else:
        rows = data.index(map_arrays(file).arrays["rows"].tobytes())
        at = {"header": 60, "array": rows + 7}.get(damage, 0)
        flipped = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        damaged = {
            "cut short": data[:-1],
            "longer": data + b"x",
            "empty": b"",
            "foreign": b"x" * 99,
        }
        file.write_bytes(damaged.get(damage, flipped))
    assert found(tmp_path / "c.h5") == right
    assert derived == [20, 20]
    assert found(tmp_path / "c.h5") == right
    assert derived == [20, 20]
    assert len(files(folder)) == 1


def test_without_a_place_to_write_search_goes_on_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "c.h5", range(4))
    (tmp_path / "in the way").write_text("a file")
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "in the way"))
    with caplog.at_level(logging.WARNING):
        assert found(tmp_path / "c.h5") == found(tmp_path / "c.h5") == expected(tmp_path / "c.h5")
    assert [record.getMessage()[:41] for record in caplog.records] == [
        "postings are derived anew in each process"
    ]


def test_many_may_open_at_once(tmp_path: Path, folder: Path) -> None:
    write(tmp_path / "c.h5", range(4))
    answers: list[object] = []

    def ask() -> None:
        answers.append(found(tmp_path / "c.h5"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected(tmp_path / "c.h5")] * 8
    assert [file.name for file in files(folder)] == ["0.arrays"]


def test_postings_of_a_cache_that_is_gone_are_removed(tmp_path: Path, folder: Path) -> None:
    for name in ("gone.h5", "here.h5"):
        write(tmp_path / name, range(2))
        found(tmp_path / name)
    (tmp_path / "gone.h5").unlink()
    write(tmp_path / "new.h5", range(2))
    found(tmp_path / "new.h5")
    kept = {map_arrays(file).about["cache"] for file in files(folder)}
    assert kept == {str(tmp_path / "here.h5"), str(tmp_path / "new.h5")}


def test_what_a_killed_writer_left_behind_is_removed_in_time(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "c.h5", range(2))
    found(tmp_path / "c.h5")
    (place,) = folder.iterdir()
    left = place / ".0.arrays-123-abc"
    left.write_bytes(b"half")
    write(tmp_path / "c.h5", range(2, 3))
    found(tmp_path / "c.h5")
    assert left.exists()  # its writer may be alive
    monkeypatch.setattr(postings, "_ABANDONED_AFTER_S", -1.0)
    write(tmp_path / "c.h5", range(3, 4))
    found(tmp_path / "c.h5")
    assert not left.exists()


def test_a_sentence_without_terms_is_an_error_not_a_miss(tmp_path: Path) -> None:
    write_documents(tmp_path / "c.h5", {"a.txt": ["甲方。"]})
    write_documents(tmp_path / "c.h5", {"b.txt": ["乙方。"]}, "words")
    with Cache.open(tmp_path / "c.h5") as cache:
        with pytest.raises(UnknownSpace, match=r"1 sentences have no terms in terms/chars@"):
            SentenceSearch(cache, "chars")
        with pytest.raises(UnknownSpace, match="terms must be named"):
            SentenceSearch(cache)


class CacheMachine(RuleBasedStateMachine):
    """A cache grows, changes, is replaced by a backup; its postings are damaged or forgotten."""

    @initialize(folder=st.just(None))
    def begin(self, folder: None) -> None:  # noqa: ARG002  # hypothesis wants an argument
        self.folder = machine_folder() / f"{random.getrandbits(64):x}"  # a name
        self.folder.mkdir()
        self.path = self.folder / "c.h5"
        write_documents(self.path, {"first": ["合同金额。"]})

    @rule(
        name=st.sampled_from("abcd"),
        texts=st.lists(st.text("合同金额甲。", min_size=1, max_size=5), max_size=3),
    )
    def put(self, name: str, texts: list[str]) -> None:
        write_documents(self.path, {name: texts})

    @rule()
    def back_up(self) -> None:
        shutil.copyfile(self.path, self.folder / "backup")

    @rule()
    def restore(self) -> None:
        if (self.folder / "backup").exists():
            shutil.copyfile(self.folder / "backup", self.folder / "copy")
            (self.folder / "copy").replace(self.path)

    @rule(number=st.integers(0, 3))
    def lose_a_segment(self, number: int) -> None:
        with Cache.open(self.path) as cache:
            group = next(name for name in cache.reader.tables() if name.endswith("/units"))
        kept = postings.folder_of(self.path, group.removesuffix("/units"))
        (kept / f"{number}.arrays").unlink(missing_ok=True)

    @invariant()
    def search_answers_as_a_fresh_rank_bm25(self) -> None:
        assert found(self.path) == expected(self.path)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


_machine_folder: list[Path] = []


def machine_folder() -> Path:
    return _machine_folder[0]


@pytest.fixture(autouse=True)
def folder_for_machines(tmp_path: Path) -> Iterator[None]:
    _machine_folder[:] = [tmp_path]
    yield
    _machine_folder.clear()


CacheMachine.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=12,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
test_a_cache_with_any_past_is_searched_as_by_a_fresh_rank_bm25 = CacheMachine.TestCase
