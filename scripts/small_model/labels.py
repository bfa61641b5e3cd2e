# ruff: noqa: E501, SIM905, PLR0912 - patterns and word lists; one branch for each kind drawn
"""Entity samples without a labelled set: drawn sentences, frames, and real sentences by patterns.

Four in five samples are drawn from jieba's grammar, or are frames, or tagged sentences whose names
and many of whose common words are exchanged for drawn ones: their labels are exact but for names
that the tagger overlooked. The others are announcement and event sentences whose labels come from
annotated values, typed patterns and jieba's tagger: they are weak.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from small_model import frames, gazetteer, grammar
from small_model.values import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from small_model.corpus import Corpus

Span = tuple[int, int, str]
DIGITS = "0-9０-９〇零一二三四五六七八九十"
PATTERNS = (
    ("LAW", re.compile(r"《[^《》]{2,28}?(?:法|条例|规定|办法|细则|解释|通则|合同|协议|协议书|合同书)(?:（[^（）]{1,12}）)?》")),
    ("DATE", re.compile(rf"[{DIGITS}]{{2,4}} ?年 ?(?:[{DIGITS}]{{1,3}} ?月 ?(?:[{DIGITS}]{{1,3}} ?日)?)?|[{DIGITS}]{{1,3}}月[{DIGITS}]{{1,3}}日|\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}")),
    ("MONEY", re.compile(r"(?:人民币|美元|港币)? ?[0-9][0-9,，.]* ?(?:万|亿|百万|千万)? ?(?:元|美元|欧元|港元|日元)(?:人民币)?|(?:人民币)?[零壹贰叁肆伍陆柒捌玖拾佰仟万亿]{2,}元(?:[零壹贰叁肆伍陆柒捌玖角分]*整?)")),
    ("PERCENT", re.compile(r"[0-9０-９][0-9０-９.,．]* ?[%％‰]|百分之[零〇一二三四五六七八九十百点]+")),
    ("ORG", re.compile(r"(?:(?<=[：:，。；、（“\n ])|^)[一-鿿]{2,8}(?:（[一-鿿]{2,4}）)?[一-鿿]{2,14}(?:有限责任公司|股份有限公司|集团有限公司|有限公司)(?=[（，。；、\n ”]|$)")),
    # A company whose beginning is not sure: its characters are not learnt from.
    ("?", re.compile(r"[一-鿿]{2,8}(?:（[一-鿿]{2,4}）)?[一-鿿]{2,14}(?:有限责任公司|股份有限公司|集团有限公司|有限公司|公司)")),
)  # fmt: skip
SENTENCE_WORDS = re.compile("[由和与为向对在的是及于从给]|收到|关于|通过|确定|以下")
EVENT_KINDS = {
    "sub-org": "ORG", "obj-org": "ORG", "target-company": "ORG", "share-org": "ORG", "sub-per": "PER",
    "obj-per": "PER", "share-per": "PER", "date": "DATE", "money": "MONEY", "proportion": "PERCENT",
}  # fmt: skip
NO_PEOPLE = frozenset(
    "陈述 高新 高度 金额 明确 明白 文明 安排 武功 温和 向上 和谐 成功 季度 严格 范围 时报 项目 宗旨 包头 高级 成本 成立 应当 安全".split()
)
ORGANISATION_ENDS = tuple(
    "大学 学院 中学 小学 学校 公司 集团 银行 委员会 协会 学会 联合会 基金会 医院 法院 检察院 政府 议会 电视台 电台 出版社 报社 日报 研究所 研究院 俱乐部 乐团 乐队 剧团 联盟 党 军队 海军 空军 陆军 舰队 大使馆 教会 工厂 博物馆 图书馆 公安局 铁路局 组织".split()
)
PLACE_ENDS = frozenset("省市县镇乡村区州岛山河湖江")
HEAD_TAGS = frozenset({"ns", "nz", "nt", "nr", "nrt", "nrfg", "j"})
RUN_TAGS = HEAD_TAGS | {"n", "vn", "b", "an", "eng"}
IMPLAUSIBLE = {"ORG": "[、和及0-9%股东]|某|^公司$|^[^一-鿿]*$", "PER": "[、和及等某]|.{8}", "DATE": "^[^0-9一二三]*$",
               "MONEY": "^[^元]*$", "PERCENT": "^[^%％]*$"}  # fmt: skip


class Labeller:
    """Draws samples; `rng` alone decides which."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        plain = ("abstracts", "announcements", "laws", "own")
        self.texts = [corpus.texts[name] for name in plain if name in corpus.texts]
        if corpus.passages:  # as often as the others together: they tell of the world
            self.texts += [corpus.passages] * len(self.texts)
        self.events: dict[int, tuple[str, list[Span]]] = {}

    def draw(self, rng: Random) -> tuple[str, list[Span]]:
        """One text of up to about 120 characters with its entities, in order, not overlapping.

        The kind "?" marks characters whose label is not known.
        """
        kind = rng.random()
        if kind < 0.36:
            return join_pieces(grammar.draw_sentence(rng, rng.choice((8, 16, 24, 40))))
        if kind < 0.58:
            return fill_frames(rng)
        if kind < 0.82:
            return exchange_words(self._sentence(rng), rng)
        if kind < 0.92 and self.corpus.events:
            return self._event(rng.randrange(len(self.corpus.events)))
        if self.corpus.contracts:
            return label_contract(rng.choice(self.corpus.contracts), rng)
        return exchange_words(self._sentence(rng), rng)

    def _event(self, number: int) -> tuple[str, list[Span]]:
        if number not in self.events:
            self.events[number] = label_event(self.corpus.events[number])
        return self.events[number]

    def _sentence(self, rng: Random) -> str:
        text = rng.choice(rng.choice(self.texts))
        at = rng.randrange(max(len(text) - 90, 1))
        found = re.search("[。\n；]", text[at:])
        return text[at + found.end() :][:90] if found else text[:90]


def join_pieces(pieces: list[tuple[str, str | None]]) -> tuple[str, list[Span]]:
    """Pieces of text, some of them names of a kind -> the text and its spans."""
    text, spans = "", []
    for piece, kind in pieces:
        if kind is not None and piece:
            spans.append((len(text), len(text) + len(piece), kind))
        text += piece
    return text, spans


def fill_frames(rng: Random) -> tuple[str, list[Span]]:
    """One or two frames with everything drawn."""
    pieces: list[tuple[str, str | None]] = []
    for _ in range(rng.choice((1, 1, 2))):
        for part in re.split(r"(\{\w+\})", rng.choice(frames.FRAMES)):
            slot = part[1:-1] if part.startswith("{") else ""
            if slot in NAMES:
                pieces.append((NAMES[slot](rng), slot))
            elif slot == "t":
                pieces.append((rng.choice(frames.TITLES), None))
            elif slot:
                pieces.append((gazetteer.draw_word(rng, slot), None))
            else:
                pieces.append((part, None))
    return join_pieces(pieces)


def exchange_words(sentence: str, rng: Random) -> tuple[str, list[Span]]:
    """A real sentence whose words are exchanged, by part of speech, for names and common words."""
    import jieba.posseg

    pieces: list[tuple[str, str | None]] = []
    share = rng.choice((0.03, 0.12))
    typed = find_patterns(sentence)
    at = 0
    for word, tag in join_organisations([(p.word, p.flag) for p in jieba.posseg.cut(sentence)]):
        start, at = at, at + len(word)
        known = next((kind for s, e, kind in typed if s < at and e > start), None)
        if known is not None:
            pieces.append((word, known))
        elif tag in {"nr", "nrt", "nrfg"} and len(word) > 1:
            pieces.append((gazetteer.draw_person(rng), "PER"))
        elif tag == "ns" and len(word) > 1:
            pieces.append((gazetteer.draw_place(rng), "LOC"))
        elif tag == "nt":
            pieces.append((gazetteer.draw_organisation(rng), "ORG"))
        elif tag == "n" and rng.random() < share:
            kind = rng.choice(("PER", "LOC", "ORG"))
            pieces.append((NAMES[kind](rng), kind))
        elif tag in {"n", "v", "a", "vn"} and len(word) > 1 and rng.random() < 0.4:
            pieces.append((gazetteer.draw_word(rng, tag), None))
        else:
            pieces.append((word, None))
    merged: list[tuple[str, str | None]] = []
    for piece, kind in pieces:
        if kind in {"DATE", "MONEY", "PERCENT", "LAW", "?"} and merged and merged[-1][1] == kind:
            merged[-1] = (merged[-1][0] + piece, kind)
        else:
            merged.append((piece, kind))
    return join_pieces(merged)


def join_organisations(words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Runs from a name to a noun that ends organisations become one word of the tag nt.

    The tagger cuts 北京/ns 铁路局/n and 中国/ns 足球/n 协会/n apart. A place and the sort of place
    that follows it (铜山/ns 县/n) become one, too.
    """
    joined: list[tuple[str, str]] = []
    for word, tag in words:
        if word in PLACE_ENDS and joined and joined[-1][1] == "ns":
            joined[-1] = (joined[-1][0] + word, "ns")
            continue
        joined.append((word, tag))
        if tag[0] != "n" or not word.endswith(ORGANISATION_ENDS):
            continue
        first, name = len(joined) - 1, len(joined)
        while first and len(joined) - first < 5 and joined[first - 1][1] in RUN_TAGS:
            first -= 1
            if joined[first][1] in HEAD_TAGS:
                name = first
        if name < len(joined) - 1:
            joined[name:] = [("".join(part for part, _ in joined[name:]), "nt")]
    return joined


def find_patterns(text: str) -> list[Span]:
    """Typed patterns in text, the earlier kinds first, none overlapping."""
    found: list[Span] = []
    for kind, pattern in PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if kind == "ORG" and SENTENCE_WORDS.search(match.group()):
                continue
            _add(found, (start, end, kind))
    return sorted(found)


def _add(found: list[Span], span: Span) -> None:
    if span[0] < span[1] and all(span[1] <= start or span[0] >= end for start, end, _ in found):
        found.append(span)


def _tagged_places(text: str) -> Iterator[Span]:
    import jieba.posseg

    at = 0
    for word, tag in jieba.posseg.cut(text):
        start, at = at, at + len(word)
        if len(word) > 1 and tag in {"ns", "nt"}:
            yield start, at, "LOC" if tag == "ns" else "ORG"
        elif (
            2 <= len(word) <= 3
            and tag == "nr"
            and word[0] in gazetteer.SURNAMES
            and word not in NO_PEOPLE
        ):
            yield start, at, "PER"


def label_event(record: dict[str, Any]) -> tuple[str, list[Span]]:
    """A sentence of the event set with its annotated values, then patterns, then the tagger."""
    text = record["text"][:120]
    found: list[Span] = []
    for name, places in record["spans"].items():
        for value, spans in places.items():
            kind = EVENT_KINDS.get(name)
            if kind and re.search(IMPLAUSIBLE[kind], value) is None:
                for start, end in spans:
                    if end <= len(text):
                        _add(found, (start, end, kind))
    return _complete(text, found)


def label_contract(record: dict[str, Any], rng: Random) -> tuple[str, list[Span]]:
    """A stretch of an announcement; the parties' names are marked wherever they stand."""
    text = record["text"]
    at = rng.randrange(max(len(text) - 120, 1))
    stretch = text[at : at + 120].replace("\n", " ")
    found: list[Span] = []
    for name in ("甲方", "乙方"):
        for value in record["fields"].get(name, ()):
            for match in re.finditer(re.escape(value), stretch):
                _add(found, (*match.span(), "ORG"))
    return _complete(stretch, found)


def _complete(text: str, found: list[Span]) -> tuple[str, list[Span]]:
    for span in [*find_patterns(text), *_tagged_places(text)]:
        _add(found, span)
    return text, sorted(found)
