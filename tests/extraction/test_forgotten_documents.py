"""A forgotten document leaves extraction, its results and the report, and then the file."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from featpipe import Cache, Pipeline
from featpipe.cache.forgotten import compact_cache
from featpipe.cli.main import featpipe
from featpipe.html_report.results import read_stored

NAME = "contracts/lease_shop.txt"


def call(*words: object) -> str:
    done = CliRunner().invoke(featpipe, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_results_of_a_forgotten_document_leave_with_it(cache: Path, templates: Path) -> None:
    where = ("--cache", cache, "--templates", templates / "lease.toml")
    call("reprocess", *where)
    with Cache.open(cache) as opened:
        path = opened.document(NAME).path
        before = {place for _, place in read_stored(opened).fields}
        assert path in before
        opened.forget(NAME)
        assert {place for _, place in read_stored(opened).fields} == before - {path}
    assert "lease_shop" not in call("documents", "list", cache)
    assert b"lease_shop" in cache.read_bytes()
    compact_cache(cache)
    assert b"lease_shop" not in cache.read_bytes()
    with Cache.open(cache) as opened:
        assert {place for _, place in read_stored(opened).fields} <= before - {path}


def test_results_of_a_document_whose_name_begins_alike_stay(
    cache: Path, built: Path, documents: Path, templates: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "more" / "documents" / "contracts"
    folder.mkdir(parents=True)
    text = (documents / "contracts" / "lease_shop.txt").read_bytes()
    (folder / "lease_kiosk.txt.old.txt").write_bytes(text + "\n另有约定。".encode())
    (folder / "lease_kiosk.txt").write_bytes(text + "\n再有约定。".encode())
    with Pipeline(cache, built.parent / "tiny", "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder.parent).is_complete
    call("reprocess", "--cache", cache, "--templates", templates / "lease.toml")
    with Cache.open(cache) as opened:
        gone = opened.document("documents/contracts/lease_kiosk.txt")
        before = read_stored(opened).fields
        opened.forget(gone.id)
    compact_cache(cache)
    with Cache.open(cache) as opened:
        found = read_stored(opened).fields
    assert found.keys() == {place for place in before if place[1] != gone.path}
