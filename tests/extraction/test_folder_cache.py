"""Extraction from a folder cache: values, results and reprocessing as from the file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featpipe import Cache, Extractor
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.extraction.template_file import check_template
from featpipe.html_report.results import list_runs

if TYPE_CHECKING:
    from folder_cache import Pair

TEMPLATE = check_template(
    {
        "name": "合同",
        "documents": ["*.txt"],
        "fields": [{"name": "合同金额"}, {"name": "乙方"}],
        "samples": [
            {"document": "docs/01.txt", "fields": {"合同金额": "1,000万元", "乙方": "张四"}},
            {"document": "docs/02.txt", "fields": {"合同金额": "2,000万元", "乙方": "张五"}},
        ],
    },
    "",
    Path("t.toml"),
)


@pytest.fixture
def caches(pair: Pair, tmp_path: Path) -> tuple[Path, Path]:
    """Copies of both, to be written to."""
    folder = Path(shutil.copytree(pair.folder, tmp_path / "own.fp"))
    return folder, Path(shutil.copyfile(pair.file, tmp_path / "own.h5"))


def test_values_and_results_are_those_of_the_file(caches: tuple[Path, Path]) -> None:
    found = []
    for cache in caches:
        with Extractor([TEMPLATE], cache) as extractor:
            one = extractor.extract("docs/07.txt")
            first, second = reprocess(extractor), reprocess(extractor)
            assert (first.n_extracted, second.n_extracted) == (20 * 2, 0)
        with Extractor([TEMPLATE], cache) as extractor:
            assert reprocess(extractor).n_extracted == 0
            stored = {e.document: dict(e.fields) for e in read_results(extractor)}
        with Cache.open(cache) as opened:
            assert len(list_runs(opened)) == 1
        found.append((dict(one.fields), stored))
    assert found[0] == found[1]
    assert (caches[0] / "results.h5").is_file()


def test_results_of_forgotten_documents_are_gone(caches: tuple[Path, Path]) -> None:
    left = []
    for cache in caches:
        with Extractor([TEMPLATE], cache) as extractor:
            reprocess(extractor)
        with Cache.open(cache) as opened:
            opened.forget("docs/07.txt")
        with Extractor([TEMPLATE], cache) as extractor:
            left.append({e.document for e in read_results(extractor)})
    assert left[0] == left[1]
    assert len(left[0]) == 19
