"""A forgotten document leaves extraction, its results and the report, and then the file."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from featpipe import Cache
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
