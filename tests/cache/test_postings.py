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
from sentence_cache import append_terms, write_documents

from featpipe import Cache, user_cache
from featpipe.cache import postings, tables
from featpipe.cache.search import SentenceSearch
from featpipe.cache.search_worker import SearchQuery, SearchRole
from featpipe.cache.write import TermTables, TermWriter
from featpipe.errors import FeatpipeError, UnknownSpace
from featpipe.lexical.segment import Segment
from featpipe.lexical.terms import Analyser
from featpipe.store import Writer
from featpipe.user_cache import ArrayFile

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
        mapped = ArrayFile.map(file)
        ArrayFile.write(file, mapped.about | {"segment": -1}, mapped.arrays)
    else:
        rows = data.index(ArrayFile.map(file).arrays["rows"].tobytes())
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
    kept = {ArrayFile.map(file).about["cache"] for file in files(folder)}
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
    monkeypatch.setattr(user_cache, "_IN_USE_S", -1.0)
    write(tmp_path / "c.h5", range(3, 4))
    found(tmp_path / "c.h5")
    assert not left.exists()


@pytest.mark.parametrize("field", ["rows", "codes", "pointers", "order", "lengths"])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_no_flipped_bit_in_the_middle_makes_a_kernel_leave_its_arrays(
    tmp_path: Path, folder: Path, derived: list[int], field: str, backend: Backend
) -> None:
    """Ends are summed, middles are not: what points outside is found by its bounds."""
    choice = random.Random(8)  # noqa: S311  # a fixed sample, not a secret
    rare = ["".join(map(chr, choice.choices(range(0x4E00, 0x5800), k=8))) for _ in range(1100)]
    common = sentences(8, 1100)
    texts = [first + second for first, second in zip(rare, common, strict=True)]
    write_documents(tmp_path / "c.h5", {"a.txt": texts})
    right = found(tmp_path / "c.h5")
    (file,) = files(folder)
    array = ArrayFile.map(file).arrays[field]
    assert array.nbytes > 2 * 4096 + 64
    data = bytearray(file.read_bytes())
    begin = data.index(array.tobytes())
    item = array.itemsize
    last_byte = begin + (len(array) // 2) * item + item - 1  # the sign and the highest digits
    data[last_byte] ^= 0xC0
    file.write_bytes(data)
    ArrayFile.map(file)  # its sums do not tell
    with Cache.open(tmp_path / "c.h5") as cache:
        search = SentenceSearch(cache, backend=backend)
        hits = [hit for query in QUERIES for hit in search.search(query, 20)]
    assert derived == [1100, 1100]
    assert [(hit.document, hit.start, hit.end, hit.score) for hit in hits] == right


def test_several_analysers_must_be_told_apart(tmp_path: Path) -> None:
    write_documents(tmp_path / "c.h5", {"a.txt": ["甲方。"]})
    write_documents(tmp_path / "c.h5", {"b.txt": ["乙方。"]}, "words")
    with (
        Cache.open(tmp_path / "c.h5") as cache,
        pytest.raises(UnknownSpace, match="terms must be named"),
    ):
        SentenceSearch(cache)


def test_beside_a_running_build_what_has_terms_is_searched_and_the_rest_is_told(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A build writes documents before their terms; here the terms of another analyser."""
    path = tmp_path / "c.h5"
    write_documents(path, {"a.txt": ["甲方合同。", "乙方责任。"], "b.txt": ["丙方金额。"]})
    before = files_after_search(path, folder)
    late = {"c.txt": ["丁方合同。", "甲方合同。", "合同金额。", "丙方金额。"], "d.txt": ["戊。"]}
    write_documents(path, late, "words")
    with Cache.open(path) as cache, caplog.at_level(logging.WARNING):
        search = SentenceSearch(cache, "chars", backend="numpy")
        assert (search.n_sentences, search.n_without_terms) == (5, 3)
        hits = search.search("合同金额", 9)
        by_document = search.search("合同金额", 9, level="document")
    assert "3 of 8 sentences have no terms yet" in caplog.text
    texts = ["甲方合同。", "乙方责任。", "丙方金额。", "甲方合同。", "丙方金额。"]
    analyser = Analyser("chars")
    scores = BM25Okapi([analyser.terms(text) for text in texts]).get_scores(
        analyser.terms("合同金额")
    )
    places = [("a.txt", 0), ("a.txt", 5), ("b.txt", 0), ("c.txt", 5), ("c.txt", 15)]
    order = sorted([0, 2, 3, 4], key=lambda at: -scores[at])
    assert [(h.document, h.start, h.text, h.score) for h in hits] == [
        (*places[at], texts[at], scores[at]) for at in order
    ]
    assert {hit.document for hit in by_document} == {"a.txt", "b.txt", "c.txt"}
    assert files(folder) == before  # postings with a gap are not kept
    write_documents(path, late)  # the terms arrive
    with Cache.open(path) as cache:
        search = SentenceSearch(cache, "chars", backend="numpy")
        assert (search.n_sentences, search.n_without_terms) == (8, 0)
        assert search.search("丁戊", 9)[0].text == "戊。"


def test_a_search_worker_takes_in_terms_that_arrive_after_their_documents(tmp_path: Path) -> None:
    path = tmp_path / "c.h5"
    write_documents(path, {"a.txt": ["甲方合同。", "乙方责任。"]})
    write_documents(path, {"b.txt": ["丙方金额。"]}, "words")
    role = SearchRole(str(path), None, "chars")
    try:
        assert role.run([SearchQuery("金额")]) == [[]]
        with Writer.open(path) as writer:  # terms alone, no sighting
            counter = Analyser("chars")
            group = tables.terms_group("chars", counter.fingerprint)
            at = TermTables(f"{group}/vocabulary", f"{group}/units")
            specs = {
                at.vocabulary: tables.vocabulary_spec(counter.spec, counter.fingerprint),
                at.units: tables.term_units_spec(counter.spec, counter.fingerprint),
            }
            append_terms(TermWriter(path, writer, at, specs), counter, ["丙方金额。"])
            writer.commit()
        (hits,) = role.run([SearchQuery("金额")])
        assert not isinstance(hits, FeatpipeError)
        assert [hit.text for hit in hits] == ["丙方金额。"]
    finally:
        role.close()


def files_after_search(path: Path, folder: Path) -> list[Path]:
    with Cache.open(path) as cache:
        SentenceSearch(cache, "chars", backend="numpy")
    return files(folder)


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
