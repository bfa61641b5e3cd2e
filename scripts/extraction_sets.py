"""The labelled sets of extraction, and their parts: for development, and held out.

Companies (of announcements, contracts and receipts) and event types (of sentences) are held out by
the hash of their name, so that a part is the same on every machine and nobody chose it. What is
tuned or learnt looks at the part ``dev`` alone; ``held-out`` is measured when that is done. What
rests on pretrained fields is tuned on one half of ``dev`` with fields pretrained on the other.

Four sets lie in the folder of data. ``freezes`` is written by ``freeze_documents.py``, and
``parties`` by ``party_documents.py``. The others lie in ``data/labelled`` and were written by hand:
case facts of eighteen courts, and announcements of shares that thirteen companies' holders traded,
that twelve companies bought back, and that thirteen companies' holders pledged; short news of
companies, of ten kinds. Six institutions of each, and sixteen of the 33 sources of news, were held
out when they were written, by others.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, get_args

import freeze_documents
import party_documents
from harness import ROOT, read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Part = Literal["all", "dev", "held-out", "dev-a", "dev-b"]
PARTS: tuple[Part, ...] = get_args(Part)
DEV_PARTS = tuple(part for part in PARTS if part.startswith("dev"))
#: What weights are learnt from; the other set is there to measure alone.
LEARNT_SETS = ("fddc_hetong", "fewfc_base", "cuad", "sroie")
#: Sets that programs of ours write.
_WRITTEN = {"freezes": freeze_documents.make_rows, "parties": party_documents.make_rows}
#: Sets that we wrote by hand: each row says which part it is of.
_BY_HAND = {
    "thefts": "theft_facts",
    "trades": "share_trades",
    "repurchases": "share_repurchases",
    "pledges": "share_pledges",
    "news": "company_news",
    "dividends": "dividend_announcements",
    "loans": "loan_judgments",
    "guarantees": "guarantee_announcements",
    "labour": "labour_decisions",
}
SETS = (*LEARNT_SETS, *_WRITTEN, *_BY_HAND)
SHORT = {"fddc_hetong": "fddc", "fewfc_base": "fewfc"}
_MOST_SAMPLES = 20
_code = re.compile(r"(?:证券|股票)代码\W{0,3}(\d{6})")


@dataclass(frozen=True)
class Task:
    """One template of one set: documents to draw samples from, and others to test on."""

    name: str
    pool: list[dict]
    test: list[dict]


def read_set(folder: Path, name: str, n_test: int, part: Part = "all") -> list[Task]:
    """The templates of a set with their parts; the same test documents in every run.

    Where all that is held out of a set by hand would be samples, it is tested on, and the samples
    are documents for development: of other institutions.
    """
    by_template: dict[str, list[dict]] = defaultdict(list)
    for row in read_part(folder, name, part):
        by_template[row["template"]].append(row)
    others = read_part(folder, name, "dev") if part == "held-out" and name in _BY_HAND else []
    tasks = []
    for template, own in by_template.items():
        pool = [row for row in others if row["template"] == template]
        is_small = len(own) <= _MOST_SAMPLES <= len(pool)
        tasks.append(Task(template, pool, own) if is_small else _task(template, own, n_test))
    return tasks


def read_part(folder: Path, name: str, part: Part) -> list[dict]:
    """The documents of a part of a set."""
    rows = read_rows(folder, name)
    return [
        row
        for row, group in zip(rows, groups_of(name, rows), strict=True)
        if (is_in(group, part) if "split" not in row else part in {row["split"], "all"})
    ]


def read_rows(folder: Path, name: str) -> list[dict]:
    """All documents of a set."""
    if name in _WRITTEN:
        return _WRITTEN[name]()
    if name in _BY_HAND:
        return list(read_lines(ROOT / "data" / "labelled" / f"{_BY_HAND[name]}.jsonl"))
    return list(read_lines(folder / "fields" / f"{name}.jsonl.xz"))


def _task(template: str, own: list[dict], n_test: int) -> Task:
    chance = random.Random(7)  # noqa: S311  # a draw, no secret
    parts = [
        [r for r in own if r.get("part") in named]
        for named in ({"ref", "train_base"}, {"eval", "test_base"})
    ]
    if not parts[0]:
        chance.shuffle(own)
        # A set by hand is small: half of it would not be 20 samples.
        least = _MOST_SAMPLES if "split" in own[0] else 0
        n_pool = min(100, max(least, len(own) // 2))
        parts = [own[:n_pool], own[n_pool:]]
    return Task(template, parts[0], chance.sample(parts[1], min(n_test, len(parts[1]))))


def is_in(group: str, part: Part) -> bool:
    """Whether a company or an event type belongs to a part."""
    own = {"held-out"} if is_held_out(group) else {"dev", f"dev-{half_of(group)}"}
    return part in own | {"all"}


def half_of(group: str) -> str:
    """Half of the part for development: "a" or "b"."""
    return "ab"[blake2b(group.encode(), digest_size=2, person=b"featpipe-split").digest()[1] % 2]


def is_held_out(group: str) -> bool:
    """Whether a company or an event type belongs to the part that is not looked at."""
    return blake2b(group.encode(), digest_size=1, person=b"featpipe-split").digest()[0] % 2 == 1


def groups_of(name: str, rows: Sequence[dict]) -> list[str]:
    """What each row must not be parted from: its company, or its event type."""
    if name == "fewfc_base":
        return [row["template"] for row in rows]
    if name == "cuad":
        return [re.split(r"[_-]", row["doc_id"])[0].lower() for row in rows]
    if name in _BY_HAND:
        return [row["institution"] for row in rows]
    if name in _WRITTEN:  # a company's documents are numbered; parties are in one each
        return [row["doc_id"].split("_")[0] if name == "freezes" else row["doc_id"] for row in rows]
    if name == "sroie":
        return [_letters(row["fields"].get("company", [row["doc_id"]])[0]) for row in rows]
    return _joined([_companies(row) for row in rows])


def _companies(row: dict) -> list[str]:
    """Names an announcement's company goes by: its codes, and the contractors."""
    codes = _code.findall(row["text"])[:1]
    return [*codes, *map(_letters, row["fields"].get("乙方", [])[:1])] or [row["doc_id"]]


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _joined(names: Sequence[Sequence[str]]) -> list[str]:
    """The first name of each group of rows that share names, directly or through others."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for own in names:
        for other in own[1:]:
            first, second = sorted((root(own[0]), root(other)))
            parent[second] = first
    return [root(own[0]) for own in names]
