"""Documents leave a cache: nothing finds them, and compacting leaves no byte of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from building import build
from click.testing import CliRunner
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.cache.forget import choose_documents, forget_documents
from featpipe.cache.forgotten import Forgotten, compact_cache, without_forgotten
from featpipe.cache.merge import import_vectors, merge_caches
from featpipe.cache.place_index import PlaceIndex
from featpipe.cache.summary import summarise
from featpipe.cli.main import featpipe
from featpipe.errors import MissingDocuments, UsageError
from featpipe.store import Reader
from featpipe.store.export import export_npy
from featpipe.store.verify import verify_dictionary

COMMON = "甲方与乙方签订合同。"
PRIVATE = "机密条款不得外传。"
PRIVATE_WORDS = "机密条款外传"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "open.txt").write_text(f"{COMMON}\n合同金额为三万元。", "utf-8")
    (folder / "private.txt").write_text(f"{COMMON}\n{PRIVATE}", "utf-8")
    (folder / "twice.txt").write_text("两份一样的文件内容。", "utf-8")
    (folder / "again.txt").write_text("两份一样的文件内容。", "utf-8")
    return folder


@pytest.fixture
def cache(tmp_path: Path, docs: Path, encoder_folder: Path, tagger_folder: Path) -> Path:
    path = tmp_path / "c.h5"
    assert build(path, docs, encoder_folder, ner=str(tagger_folder)).is_complete
    return path


def listed(path: Path) -> list[str]:
    with Cache.open(path) as cache:
        return sorted(document.id for document in cache.documents())


def forget_and_compact(cache: Path, *names: str | Path) -> None:
    with Cache.open(cache) as opened:
        opened.forget(*names)
    compact_cache(cache)


def test_a_forgotten_document_is_found_nowhere(cache: Path, tmp_path: Path, docs: Path) -> None:
    with Cache.open(cache) as opened:
        before, vectors = summarise(opened), opened.dictionary()
        hash_ = str(opened.document("docs/private.txt").meta["bytes_hash"])
        assert opened.find_content(hash_) is not None
        assert [hit.document for hit in opened.search("机密")] == ["docs/private.txt"]
        [gone] = opened.forget("docs/private.txt")
        assert gone.id == "docs/private.txt"
        assert "docs/private.txt" not in {d.id for d in opened.documents()}
        assert opened.find_document("docs/private.txt") is None
        assert opened.find_document(str(docs / "private.txt")) is None
        assert opened.find_content(hash_) is None
        assert opened.search("机密") == []
        for level in (None, "sentence"):
            dictionary = opened.dictionary(level=level)
            near = dictionary.nearest(np.ones(dictionary.dim), k=1000)[0]
            assert PRIVATE not in {found.text for found in near} | set(dictionary.texts())
            assert COMMON in {found.text for found in near} & set(dictionary.texts())
        after = summarise(opened)
        assert (after.documents, after.contents) == (before.documents - 1, before.contents - 1)
        assert after.texts < before.texts
        assert after.spaces[0].n_vectors == after.texts
        assert PRIVATE in vectors  # its row is still there for one that comes back
    exported = CliRunner().invoke(featpipe, ["export", str(cache), str(tmp_path / "out")])
    assert exported.exit_code == 0, exported.output
    written = b"".join(p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert PRIVATE.encode() not in written
    assert COMMON.encode() in written
    merge_caches([cache], tmp_path / "merged.h5")
    for word in (PRIVATE, "private.txt"):
        assert word.encode() not in (tmp_path / "merged.h5").read_bytes()


def test_scores_are_those_of_a_cache_that_never_had_it(
    cache: Path, tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    (docs / "private.txt").unlink()
    build(tmp_path / "without.h5", docs, encoder_folder)
    with Cache.open(cache) as opened, Cache.open(tmp_path / "without.h5") as without:
        opened.forget("docs/private.txt")
        found, expected = (
            {(hit.document, hit.text): hit.score for hit in one.search("签订合同")}
            for one in (opened, without)
        )
    assert found == pytest.approx(expected)


def secrets_of(path: Path) -> list[bytes]:
    """Bytes that only the private document has in the file: texts, names, vectors, terms."""
    with Cache.open(path) as opened:
        document = opened.document("docs/private.txt")
        forgotten = {unit.text for level in ("sentence", "word") for unit in document.units(level)}
        others = {
            unit.text
            for other in opened.documents()
            if other.id != document.id
            for level in ("paragraph", "sentence", "word")
            for unit in other.units(level)
        }
        vectors = opened.dictionary()
        alone = [vectors[text].tobytes() for text in sorted(forgotten - others)]
        own = [PRIVATE, *PRIVATE_WORDS, "private.txt", document.path]
        assert alone
        return [*(word.encode() for word in own), *alone]


def test_compacting_leaves_no_byte_of_it(
    cache: Path, docs: Path, encoder_folder: Path, tagger_folder: Path
) -> None:
    # A run whose record names it: it could not be read once.
    text = (docs / "private.txt").read_bytes()
    (docs / "private.txt").write_bytes(bytes(range(256)) * 40)
    assert len(build(cache, docs, encoder_folder, ner=str(tagger_folder)).quarantined) == 1
    (docs / "private.txt").write_bytes(text)
    secrets = secrets_of(cache)
    whole = cache.read_bytes()
    assert all(secret in whole for secret in secrets)
    with Cache.open(cache) as opened:
        opened.forget("docs/private.txt")
    done = compact_cache(cache)
    assert "of forgotten documents freed" in str(done)
    whole = cache.read_bytes()
    assert [secret for secret in secrets if secret in whole] == []
    for kept in (COMMON, "合同金额为三万元。", "open.txt"):
        assert kept.encode() in whole
    assert verify_dictionary(cache, is_deep=True).is_good
    with h5py.File(cache) as file:
        assert len(file["documents/keys"]) == 2
    assert build(cache, docs / "open.txt", encoder_folder).n_encoded == 0


def test_what_another_document_holds_stays(cache: Path) -> None:
    with Cache.open(cache) as opened:
        opened.forget("docs/again.txt")
        compact_cache(cache)
        opened.refresh()
        document = opened.document("docs/twice.txt")
        assert document.text == "两份一样的文件内容。"
        assert document.text in opened.dictionary()
        assert [hit.document for hit in opened.search("文件")] == ["docs/twice.txt"]
    assert b"again.txt" not in cache.read_bytes()


def test_one_that_comes_back_costs_nothing_before_compacting(
    cache: Path, docs: Path, encoder_folder: Path
) -> None:
    with Cache.open(cache) as opened:
        opened.forget(docs)
        assert list(opened.documents()) == []
    assert build(cache, docs, encoder_folder).n_encoded == 0
    assert len(listed(cache)) == 4
    forget_and_compact(cache, "docs/private.txt")
    assert build(cache, docs, encoder_folder).n_encoded > 0
    assert len(listed(cache)) == 4


def test_former_contents_of_a_document_that_stays_are_kept(
    cache: Path, docs: Path, encoder_folder: Path
) -> None:
    (docs / "open.txt").write_text("全新内容。", "utf-8")
    build(cache, docs, encoder_folder)
    forget_and_compact(cache, "docs/twice.txt")
    (docs / "open.txt").write_text(f"{COMMON}\n合同金额为三万元。", "utf-8")
    assert build(cache, docs / "open.txt", encoder_folder).n_encoded == 0


def test_former_contents_of_a_forgotten_document_are_freed(
    cache: Path, docs: Path, encoder_folder: Path
) -> None:
    (docs / "private.txt").write_text("全新内容。", "utf-8")
    build(cache, docs, encoder_folder)
    forget_and_compact(cache, "private.txt")
    assert PRIVATE.encode() not in cache.read_bytes()


@pytest.mark.parametrize(
    ("name", "n"),
    [("docs/a*", 1), ("docs", 4), ("docs/open.txt", 1), ("twice.txt", 1), ("*", 4)],
)
def test_names_choose_documents(cache: Path, name: str, n: int) -> None:
    done = CliRunner().invoke(featpipe, ["documents", "list", str(cache), name])
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, n)


def test_a_document_is_one_line_whatever_its_file_is_called(
    cache: Path, docs: Path, encoder_folder: Path
) -> None:
    (docs / "new\nline\x1b[2J\udcff.txt").write_text("全新内容。", "utf-8")
    build(cache, docs, encoder_folder)
    for command in (["list"], ["forget", "--dry-run"]):
        done = CliRunner().invoke(
            featpipe, ["documents", command[0], str(cache), "*2J*", *command[1:]]
        )
        [line, *rest] = done.output.splitlines()
        assert line == rf"docs/new\x0aline\x1b[2J\udcff.txt  {docs}/new\x0aline\x1b[2J\udcff.txt"
        assert len(rest) == len(command) - 1


def test_a_name_that_no_document_has_changes_nothing(cache: Path) -> None:
    with Cache.open(cache) as opened:
        with pytest.raises(MissingDocuments) as raised:
            opened.forget("docs/open.txt", "docs/privat.txt")
        assert "docs/private.txt" in raised.value.hint
        with pytest.raises(MissingDocuments):
            opened.forget()
    assert len(listed(cache)) == 4


def test_the_command_asks_before_many_leave(cache: Path) -> None:
    def run(*words: str, answer: str = "") -> int:
        command = ["documents", "forget", str(cache), *words]
        return CliRunner().invoke(featpipe, command, input=answer).exit_code

    assert run("docs", "--dry-run") == 0
    assert run("docs", answer="n\n") == 1
    assert len(listed(cache)) == 4
    assert run("docs/open.txt") == 0
    assert run("docs", "--yes") == 0
    assert listed(cache) == []


def test_without_an_answer_the_command_names_the_option(cache: Path) -> None:
    done = CliRunner().invoke(featpipe, ["documents", "forget", str(cache), "docs"], input="")
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint == "say --yes"
    assert len(listed(cache)) == 4


def test_a_document_is_shown_with_what_is_held(cache: Path) -> None:
    done = CliRunner().invoke(featpipe, ["documents", "show", str(cache), "docs/open.txt"])
    assert done.exit_code == 0
    assert "units      sentence 2" in done.stdout
    assert "text/plain" in done.stdout


_KILL = """
import sys
from pathlib import Path
from featpipe import Cache
from featpipe.cache.forget import choose_documents, forget_documents
with Cache.open(sys.argv[1]) as cache:
    print("ready", flush=True)
    sys.stdin.readline()
    forget_documents(cache.path, list(cache.documents()))
"""


@pytest.mark.parametrize("n_changes", [1, 2, 3])
def test_killed_at_any_instant_all_have_left_or_none(cache: Path, n_changes: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _KILL, str(cache)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == "ready\n"
        child.stdin.write("go\n")
        child.stdin.flush()
        last, seen = cache.stat().st_mtime_ns, 0
        while child.poll() is None and seen < n_changes:
            now = cache.stat().st_mtime_ns
            seen += now != last
            last = now
        if child.poll() is None:  # on a quick disk all may be done before so many times are seen
            os.killpg(child.pid, signal.SIGKILL)
    assert len(listed(cache)) in {0, 4}
    with Cache.open(cache) as opened:
        forget_documents(cache, list(opened.documents()))
    assert listed(cache) == []


def test_readers_from_before_find_no_document_there_either(cache: Path) -> None:
    """They take the last row of a path, and look its key up."""
    with Cache.open(cache) as opened:
        gone = opened.document("docs/open.txt")
        forget_documents(cache, [gone])
    with Reader(cache) as reader:
        log = reader.table("sources")
        key = bytes(np.asarray(log.row("document", log.n_rows - 1)))
        assert bytes(np.asarray(log.ragged("path", log.n_rows - 1))).decode() == gone.path
        assert reader.table("documents").find_one(key) < 0
        assert PlaceIndex(reader).find_path(gone.path) is None
        assert Forgotten(reader).names == {gone.id, gone.path}


def test_an_export_without_forgotten_documents_is_for_those_who_may_read_the_cache(
    cache: Path, tmp_path: Path
) -> None:
    cache.chmod(0o600)
    with Cache.open(cache) as opened:
        opened.forget("docs/private.txt")
    with without_forgotten(cache) as source:
        export_npy(source, tmp_path / "out", tables=["texts"])
    assert (tmp_path / "out" / "texts").stat().st_mode & 0o777 == 0o700


def test_imported_vectors_keep_their_texts(cache: Path, tmp_path: Path) -> None:
    texts = [PRIVATE, "别的"]
    with h5py.File(tmp_path / "old.h5", "w") as old:
        for number, text in enumerate(texts, 1):
            old[f"word_emb/{text}"] = np.full(4, number, np.float32)
    import_vectors(tmp_path / "old.h5", cache)
    forget_and_compact(cache, "docs/private.txt")
    with Cache.open(cache) as opened:
        assert opened.search("机密") == []
        vectors = opened.dictionary("old")
        assert sorted(vectors.texts()) == sorted(texts)
        assert vectors[PRIVATE].tolist() == [1.0] * 4


def test_folders_are_named_as_documents_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their ids, by paths from here, and where their names look like patterns."""
    names = [f"合同{end}/{name}" for end in ("[2]", "2", "") for name in ("a.txt", "b.txt")]
    write_documents(tmp_path / "c.h5", {name: [name] for name in names})  # below /docs
    monkeypatch.chdir("/")
    with Cache.open(tmp_path / "c.h5") as cache:

        def chosen(name: str) -> list[str]:
            return [d.id for d in choose_documents(cache.stored_documents, [name])]

        assert chosen("合同[2]") == names[:2]
        assert chosen("合同[0-9]/a*") == names[2:3]
        assert chosen("docs/合同2") == chosen("./docs/合同2/") == names[2:4]
        for name in ("", "合同[3]", "./合同2"):
            with pytest.raises(MissingDocuments):
                chosen(name)
