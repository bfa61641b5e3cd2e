"""``featpipe search`` as people run it: ranked lines, JSON, and what it says where it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import HANG_S

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TEXTS = {
    "a.txt": "甲方与乙方签订合同。合同金额为三万元。违约金为合同金额的百分之十。",
    "b.txt": "本公司收到中标通知书。中标金额为五亿元。",
    "c.txt": "会议审议通过了利润分配方案。",
}
QUERY = "违约金"


def featpipe(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "featpipe", *arguments],
        cwd=folder,
        env=os.environ | {"FEATPIPE_CACHE_DIR": str(folder / "kept")},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a cache ``c.h5`` of the texts, and ``empty.h5`` of a file that is no document."""
    folder = tmp_path_factory.mktemp("search")
    for name, text in TEXTS.items():
        (folder / "docs").mkdir(exist_ok=True)
        (folder / "docs" / name).write_text(text, "utf-8")
    (folder / "bad").mkdir()
    (folder / "bad" / "bad.bin").write_bytes(bytes(range(256)) * 40)
    for documents, cache, code in (("docs", "c.h5", 0), ("bad", "empty.h5", 1)):
        done = featpipe(folder, "build-cache", documents, "--cache", cache, "--ner", "none")
        assert done.returncode == code, done.stderr
    return folder


@pytest.fixture
def search(folder: Path) -> Run:
    def search(*arguments: str) -> subprocess.CompletedProcess[str]:
        return featpipe(folder, "search", *arguments)

    return search


def test_hits_are_lines_with_score_document_offsets_and_sentence(search: Run) -> None:
    done = search("c.h5", QUERY)
    assert done.returncode == 0, done.stderr
    score, rest = done.stdout.splitlines()[0].split(maxsplit=1)
    assert float(score) > 0
    assert rest == "docs/a.txt[19:33]  违约金为合同金额的百分之十。"
    assert done.stderr == ""


def test_json_hits_point_at_their_characters_best_first(search: Run) -> None:
    done = search("c.h5", "合同金额", "--json")
    hits = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(hits) == 4  # the sentence of b.txt holds 金额
    for hit in hits:
        assert (
            TEXTS[hit["document"].removeprefix("docs/")][hit["start"] : hit["end"]] == hit["text"]
        )
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_as_many_hits_as_asked_for(search: Run) -> None:
    assert len(search("c.h5", "合同金额", "-k", "2").stdout.splitlines()) == 2


def test_documents_are_ranked_by_their_best_sentence(search: Run) -> None:
    done = search("c.h5", "合同金额", "--level", "document", "--json")
    ranked = [json.loads(line)["document"] for line in done.stdout.splitlines()]
    assert ranked == ["docs/a.txt", "docs/b.txt"]


def test_hybrid_ranks_by_words_and_vectors(search: Run) -> None:
    done = search("c.h5", "违约金为合同金额的百分之十。", "--hybrid", "--json", "-k", "6")
    assert done.returncode == 0, done.stderr
    hits = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(hits) == 6  # vectors rank sentences without any of the words, too
    assert hits[0]["text"] == "违约金为合同金额的百分之十。"
    assert hits[0]["score"] == pytest.approx(1.0)
    assert {hit["query_prompt"] for hit in hits} == {""}
    assert done.stderr.startswith("query prompt: '' (as passages")


def test_the_prompt_of_a_query_is_an_option_and_is_named_in_each_hit(search: Run) -> None:
    told = []
    for prompt in ((), ("--query-prompt", "会议审议通过了")):
        done = search("c.h5", QUERY, "--hybrid", "--weight", "0", "--json", "-k", "6", *prompt)
        assert done.returncode == 0, done.stderr
        hits = [json.loads(line) for line in done.stdout.splitlines()]
        assert {hit["query_prompt"] for hit in hits} == {"".join(prompt[1:])}
        told.append([(hit["text"], hit["score"]) for hit in hits])
    assert told[0] != told[1]
    [hit, *_] = [json.loads(line) for line in search("c.h5", QUERY, "--json").stdout.splitlines()]
    assert hit["query_prompt"] is None


def test_the_weight_of_the_words_is_an_option_of_hybrid_search(search: Run) -> None:
    query = "违约金为合同金额的百分之十。"
    words = [json.loads(line) for line in search("c.h5", query, "--json").stdout.splitlines()]
    told = {}
    for weight in ("0", "0.8", "1"):
        done = search("c.h5", query, "--hybrid", "--weight", weight, "--json", "-k", "6")
        assert done.returncode == 0, done.stderr
        hits = [json.loads(line) for line in done.stdout.splitlines()]
        told[weight] = [(hit["text"], hit["score"]) for hit in hits]
    ranked = [hit["text"] for hit in words if hit["score"] > 0]
    assert ranked
    assert [text for text, _ in told["1"]][: len(ranked)] == ranked
    assert told["0"] != told["1"]
    default = search("c.h5", query, "--hybrid", "--json", "-k", "6").stdout.splitlines()
    hits = [json.loads(line) for line in default]
    assert [(hit["text"], hit["score"]) for hit in hits] == told["0.8"]
    for arguments in (
        ["--weight", "0.5"], ["--hybrid", "--weight", "2"], ["--query-prompt", "a"],
    ):  # fmt: skip
        done = search("c.h5", query, *arguments)
        assert done.returncode == 2
        assert arguments[-2] in done.stderr


def test_hybrid_and_document_level_exclude_each_other(search: Run) -> None:
    done = search("c.h5", QUERY, "--hybrid", "--level", "document")
    assert done.returncode == 2
    assert "--hybrid ranks sentences" in done.stderr


def test_what_no_sentence_holds_is_said_not_to_be_found(search: Run) -> None:
    for query in ("龘", "", "，。"):
        done = search("c.h5", query)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing found\n")


def test_an_analyser_whose_terms_are_not_there_is_named_with_those_that_are(search: Run) -> None:
    done = search("c.h5", QUERY, "--analyser", "words")
    assert done.returncode == 3
    assert done.stderr.startswith("error: no terms of words in c.h5: it holds chars@")
    assert "run build-cache, with that analyser (in a program: BuildSettings(" in done.stderr


def test_a_cache_without_documents_has_nothing_to_find(search: Run) -> None:
    done = search("empty.h5", QUERY)
    assert done.returncode == 3
    assert done.stderr.startswith("error: no terms in empty.h5: it holds none\n")
    assert "Traceback" not in done.stderr


def test_an_absent_cache_is_named(search: Run) -> None:
    done = search("absent.h5", QUERY)
    assert done.returncode == 3
    assert "absent.h5" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_search_maps_what_the_first_one_kept(search: Run, folder: Path) -> None:
    first = search("c.h5", QUERY).stdout
    (kept,) = (folder / "kept").glob("postings-*/*")
    before = kept.stat()
    assert search("c.h5", QUERY).stdout == first
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_search_by_words_loads_neither_torch_nor_numba(folder: Path) -> None:
    program = (
        "import sys; sys.argv = ['featpipe', 'search', 'c.h5', '违约金']\n"
        "from featpipe.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "found = {'torch', 'transformers', 'numba', 'h5py', 'jieba', 'scipy'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"FEATPIPE_CACHE_DIR": str(folder / "kept")},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
