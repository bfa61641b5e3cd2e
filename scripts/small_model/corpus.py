# ruff: noqa: E501 - patterns and lists
"""The texts the built-in model may learn from, by source, without what is held back for evaluation.

Guarantees: nothing is read from a labelled set whose licence is unstated (`ner/`, `similarity/`) and
no retrieval query is read; the parts held back here are the ones `scripts/eval_model.py` scores.
Where the shared data are absent, the project's own documents are the whole corpus.
"""

from __future__ import annotations

import json
import lzma
import re
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HELD_BACK = 40  # one document in so many is never learnt from
WEIGHTS = {"laws": 0.3, "articles": 0.15, "announcements": 0.25, "abstracts": 0.22, "own": 0.08}


@dataclass
class Corpus:
    """Paragraph texts by source; `titled` are (title, text) pairs that name each other.

    `passages` (encyclopaedia articles) lend their sentences to entity samples and to nothing else:
    retrieval is scored over them.
    """

    texts: dict[str, list[str]] = field(default_factory=dict)
    titled: list[tuple[str, str]] = field(default_factory=list)
    passages: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    contracts: list[dict[str, Any]] = field(default_factory=list)
    held_laws: list[str] = field(default_factory=list)
    held_announcements: list[dict[str, Any]] = field(default_factory=list)


def is_held_back(identity: str) -> bool:
    """A document's identity decides, so that the split is the same everywhere."""
    return zlib.crc32(identity.encode()) % HELD_BACK == 0


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a `.jsonl.xz` file; nothing when it is absent."""
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


def load_corpus(own: Path, shared: Path | None) -> Corpus:
    """Read every allowed source below `own` (the repository's data) and `shared`."""
    corpus = Corpus({"own": [text for _, text in sorted(read_own(own / "documents").items())]})
    if shared is None:
        return corpus
    _read_laws(corpus, shared)
    _read_announcements(corpus, shared)
    abstracts = (
        r["text"] for r in read_records(shared / "retrieval/csl_title_abstract_corpus.jsonl.xz")
    )
    corpus.texts["abstracts"] = [text for text in abstracts if text]
    passages = read_records(shared / "retrieval/cmrc2018_corpus.jsonl.xz")
    corpus.passages = [record["text"] for record in passages if record["text"]]
    corpus.events = list(read_records(shared / "fields/fewfc_base.jsonl.xz"))
    corpus.texts = {name: texts for name, texts in corpus.texts.items() if texts}
    return corpus


def _read_laws(corpus: Corpus, shared: Path) -> None:
    laws = []
    for record in read_records(shared / "corpus/laws_national.jsonl.xz"):
        lines = [re.sub(r"^[#\-*>\s]+", "", line) for line in record["text"].split("\n")]
        text = "\n".join(line for line in lines if line and not line.startswith("<!--"))
        if is_held_back(record["id"]):
            corpus.held_laws.append(text)
        else:
            laws.append(text)
    corpus.texts["laws"] = laws
    held = {title for title in (text.split("\n", 1)[0] for text in corpus.held_laws) if title}
    for record in read_records(shared / "retrieval/stard_corpus.jsonl.xz"):
        name = record["title"].partition("第")[0].removeprefix("中华人民共和国")
        if not any(name in title for title in held):
            corpus.titled.append((record["title"], record["text"]))
    corpus.texts["articles"] = [text for _, text in corpus.titled]


def _read_announcements(corpus: Corpus, shared: Path) -> None:
    texts = []
    for record in read_records(shared / "fields/fddc_hetong.jsonl.xz"):
        if is_held_back(record["doc_id"]):
            corpus.held_announcements.append(record)
        else:
            corpus.contracts.append(record)
            texts.append(record["text"])
    corpus.texts["announcements"] = texts


class _Text(HTMLParser):
    """The text of a page, a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.parts.append("\n" if tag in {"p", "div", "tr", "h1", "h2"} else " ")


def read_own(folder: Path) -> dict[str, str]:
    """The project's own txt, md and html documents as text, by their names."""
    found = {}
    for path in folder.rglob("*"):
        if path.suffix not in {".txt", ".md", ".html"}:
            continue
        text = path.read_bytes().decode("gb18030" if "gb18030" in path.name else "utf-8")
        if path.suffix == ".html":
            parser = _Text()
            parser.feed(text.partition("</head>")[2])
            text = "".join(parser.parts)
        lines = (re.sub(r"^[#|\s]+", "", line).strip() for line in text.split("\n"))
        found[path.relative_to(folder).as_posix()] = "\n".join(line for line in lines if line)
    return found
