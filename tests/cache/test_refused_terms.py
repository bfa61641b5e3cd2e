"""A disk that refuses a write gives no term the number of another."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from building import stored_terms
from sentence_cache import append_terms

from featpipe import Cache
from featpipe.cache import tables
from featpipe.cache.write import TermTables, TermWriter
from featpipe.errors import WriteFailed
from featpipe.lexical.terms import Analyser
from featpipe.store import Writer, key_of
from tests.store.crashing_disk import CountingDisk, FailingDisk

if TYPE_CHECKING:
    import pytest

    from featpipe.store.disk import Disk

#: Each has new terms, and some of those before: a batch is one commit.
BATCHES = [
    ["甲方付款。"],
    ["乙方交货。", "付款。"],
    ["双方盖章。", "交货。"],
    ["解除合同。", "甲乙双方。"],
]
COUNTER = Analyser("chars")
GROUP = tables.terms_group("chars", COUNTER.fingerprint)
NAMES = TermTables(f"{GROUP}/vocabulary", f"{GROUP}/units")
SPECS = {
    NAMES.vocabulary: tables.vocabulary_spec(COUNTER.spec, COUNTER.fingerprint),
    NAMES.units: tables.term_units_spec(COUNTER.spec, COUNTER.fingerprint),
}


def write(path: Path, disk: Disk) -> int:
    """Batch after batch, whatever became of the one before; the refused ones again at the end."""
    n_refused = 0
    with Writer.open(path, disk=disk) as writer:
        terms = TermWriter(path, writer, NAMES, SPECS)
        waiting = list(BATCHES)
        while waiting:
            batch = waiting.pop(0)
            try:
                append_terms(terms, COUNTER, batch)
                writer.commit()
            except WriteFailed:
                n_refused += 1
                waiting.append(batch)
    return n_refused


def test_units_have_their_terms_whichever_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda _: None)  # it fails as told, and takes no time
    counting = CountingDisk()
    write(tmp_path / "count.h5", counting)
    wanted = terms_by_unit(tmp_path / "count.h5")
    assert len(wanted) == len({text for batch in BATCHES for text in batch})
    n_points = 0
    for point in range(1, counting.n_points + 1):
        path = tmp_path / f"{point}.h5"
        try:
            n_points += write(path, FailingDisk(errno.EIO, point))
        except WriteFailed:  # at opening or closing
            continue
        assert terms_by_unit(path) == wanted, f"refused at {point}"
    assert n_points > counting.n_points / 2


def terms_by_unit(path: Path) -> dict[bytes, list[str]]:
    with Cache.open(path) as cache:
        found = stored_terms(cache)
    assert key_of(BATCHES[0][0]) in found
    return found
