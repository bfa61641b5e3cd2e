"""A workload to be interrupted, and what must be in the file whenever it is.

Tables are made on the way, several are touched by each commit, one batch outgrows a chunk size, and
the file is closed and opened again once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h5py
import numpy as np

from featpipe.store import Reader, Writer, keys_of
from tests.store.samples import RUNS, TEXTS, VECTORS, ragged_text, vectors_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.store.disk import Disk

BATCHES = (3, 1, 40, 7, 900, 2, 30)
N_TABLES = 3


def texts_of(batch: int) -> list[str]:
    return [f"{batch}/{i}" for i in range(BATCHES[batch])]


def append_batch(writer: Writer, batch: int) -> None:
    texts = texts_of(batch)
    table = writer.table(f"embeddings/{batch % N_TABLES}", VECTORS)
    table.append({"keys": keys_of(texts), "vectors": vectors_of(texts)})
    data = {"keys": keys_of(texts), "text": ragged_text(texts)}
    writer.table("texts", TEXTS).append(data)


def write_batches(path: Path, disk: Disk, acknowledge: Callable[[int], None]) -> None:
    """Calls ``acknowledge`` with each batch's number when its commit has returned."""
    for batches in (range(4), range(4, len(BATCHES))):
        with Writer.open(path, disk=disk) as writer:
            for batch in batches:
                append_batch(writer, batch)
                writer.table("runs", RUNS).append({"record": ragged_text([str(batch)])})
                writer.commit()
                acknowledge(batch)


def finish(path: Path) -> None:
    """Take over the file as the next writer does, and add whatever is missing."""
    with Writer.open(path) as writer:
        assert writer.recovery is None or not writer.recovery.damaged
        for batch in range(len(BATCHES)):
            append_batch(writer, batch)
            writer.commit()


def check_plain(path: Path, n_acknowledged: int, *, may_lag: bool = False) -> None:
    """Through plain h5py: acknowledged rows are there, and whatever is there is right.

    ``may_lag``: the lengths need not be durable yet (power was lost, and no writer has
    opened the file since).
    """
    with h5py.File(path) as file:
        for table in range(N_TABLES):
            texts = [t for b in range(len(BATCHES)) if b % N_TABLES == table for t in texts_of(b)]
            n_acked = sum(BATCHES[b] for b in range(n_acknowledged) if b % N_TABLES == table)
            group = file.get(f"embeddings/{table}")
            if group is None:
                assert not n_acked
                continue
            n_rows = len(group["keys"])  # by which a reader goes: no other column is behind
            assert min(len(group[name]) for name in ("checks", "vectors")) >= n_rows
            assert may_lag or n_rows >= n_acked
            assert n_rows <= len(texts)
            assert same(group["vectors"][:n_rows], vectors_of(texts[:n_rows]))
            assert same(group["keys"][:n_rows], keys_of(texts[:n_rows]))
        if "texts" in file:
            check_plain_texts(file["texts"])
        runs = file.get("runs")
        assert runs is not None or not n_acknowledged
        if runs is not None:
            ends = runs["record_end"][:].tolist()
            data = runs["record"][:].tobytes()
            ends = [end for end in ends if end <= len(data)]
            records = [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
            assert records == [str(i) for i in range(len(records))]
            assert may_lag or len(records) >= n_acknowledged


def check_plain_texts(group: h5py.Group) -> None:
    """As many texts as there are keys, each whole and the right one."""
    n_rows = len(group["keys"])
    ends = group["text_end"][:n_rows].tolist()
    assert len(ends) == n_rows
    data = group["text"][:].tobytes()
    found = [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
    texts = [text for batch in range(len(BATCHES)) for text in texts_of(batch)]
    assert found == texts[:n_rows]
    assert same(group["keys"][:n_rows], keys_of(texts[:n_rows]))


def check_featpipe(path: Path, n_acknowledged: int, *, may_lag: bool = False) -> None:
    """Through a reader: the same, found by key."""
    with Reader(path) as reader:
        names = set(reader.tables())
        for batch in range(len(BATCHES)):
            texts, name = texts_of(batch), f"embeddings/{batch % N_TABLES}"
            if name in names:
                table = reader.table(name)
                rows = table.find(keys_of(texts))
                assert may_lag or batch >= n_acknowledged or (rows >= 0).all()
                found = np.flatnonzero(rows >= 0)
                assert same(table.gather("vectors", rows[found]), vectors_of(texts)[found])
            if "texts" in names:
                table = reader.table("texts")
                rows = table.find(keys_of(texts))
                assert may_lag or batch >= n_acknowledged or (rows >= 0).all()
                values, _ = table.ragged_many("text", rows[rows >= 0])
                kept = [text for text, row in zip(texts, rows.tolist(), strict=True) if row >= 0]
                assert values.tobytes().decode() == "".join(kept)
        assert may_lag or not n_acknowledged or names >= {"texts", "embeddings/0"}


def same(left: NDArray[np.generic], right: NDArray[np.generic]) -> bool:
    """Bit for bit."""
    return left.shape == right.shape and left.tobytes() == right.tobytes()
