"""Cut a text into paragraphs and sentences.

Guarantees: spans are ordered, do not overlap, hold no outer blanks and are never empty; sentences
nest in paragraphs and together cover every character that is not blank; no sentence is longer than
``MAX_SENTENCE`` characters; the time is linear. The cut depends on the text alone.

Judgement (each has its golden case):
- a paragraph is a line; tabs between the cells of a table row do not end a sentence;
- 。！？； and their ASCII forms end one, with the closing quotes and brackets that follow;
- nothing inside a short quotation or bracket ends one; a quotation that ends in a full stop does,
  unless a comma or 的 goes on;
- a full stop ends one only before a blank, a closing mark or Chinese, and not after an
  abbreviation, an initial, or a clause number (``1.``, ``3.2.``) at the head of a line;
- text without any of these is cut at the last weaker mark before the limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def words_in(text: str) -> frozenset[str]:
    """A set of words, written as text."""
    return frozenset(text.split())


#: A full stop after these ends no sentence.
NEVER_LAST = words_in(
    """
    mr mrs ms dr rs nrs nr prof rev hon messrs no nos art arts sec secs fig figs vol vols ch pp p
    para paras cf vs v e.g i.e viz approx est ref ext tel st ste mt ft dept univ gen col capt lt
    sgt gov sen rep pres jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat
    sun al
    """
)

#: A full stop after these ends a sentence only when a word follows that begins one.
SELDOM_LAST = words_in(
    """
    inc co corp ltd llc plc l.l.c l.p n.v s.a b.v bros jr sr esq etc ave blvd rd bldg u.s u.k
    u.s.a u.n e.u d.c a.m p.m ph.d m.d b.a m.a ed eds rev'd assn int'l nat'l
    """
)

#: Words that, with a capital, begin a sentence rather than continue a name.
STARTERS = words_in(
    """
    The This That These Those It Its He She We They I You If In On At As An A And But Or For To
    From By With When Where Which While Such Each Any All No Not Nothing Neither Both However Upon
    Under After Before During Except Subject Unless Until Notwithstanding Company Licensee Our
    """
)

SEGMENTER_VERSION = "1"
MAX_SENTENCE = 480

_PARAGRAPH = re.compile("[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_CLOSERS = "”’」』）】》〉〕］｝)\\]}\"'"
_INNER = 100

_POINT = re.compile(
    rf"""
      (?P<quoted>
        “[^“”\n]{{1,{_INNER}}}+” | 「[^「」\n]{{1,{_INNER}}}+」 | 『[^『』\n]{{1,{_INNER}}}+』
      | （[^（）\n]{{1,{_INNER}}}+） | \([^()\n]{{1,{_INNER}}}+\) | 《[^《》\n]{{1,{_INNER}}}+》
      | 【[^【】\n]{{1,{_INNER}}}+】 | (?<![^\s(（{_CJK}])"(?=\S)[^"\n]{{1,{_INNER}}}+(?<=\S)"
      )
    | (?P<strong>[。！？]+[。！？!?.…]* | …{{2,}} | ⋯{{2,}} | ；
      | [!?]+(?=[\s{_CLOSERS}{_CJK}]|\Z) | (?<=[{_CJK}])[!?]+)
    | (?P<dot>(?<!\.)\.(?=[\s{_CLOSERS}{_CJK}]|\Z) | \.{{3,}})
    | (?P<weak>;(?=[{_CJK}]) | (?<=[{_CJK}]);)
    """,
    re.VERBOSE,
)
_AFTER = re.compile(rf"[{_CLOSERS}]*")
_ENDS_INSIDE = "。！？!?…."
_GOES_ON = "，、：,:的とのをにがは。；;！？!?.…)）】》」』”"

_CLAUSE_NUMBER = re.compile(
    r"\s*(?:(?:Section|Article|Clause|Chapter|Part|Item|Exhibit|Schedule|Annex|Appendix)\s+)?"
    r"[(（\[]?(?:\d{1,3}(?:\.\d{1,3}){0,5}|[A-Za-z]|[ivxIVX]{1,6}|[一二三四五六七八九十]{1,3})"
    r"[)）\]]?\.\Z",
    re.IGNORECASE,
)
#: What follows the number of a clause, after the number itself.
_NUMBERED = re.compile(r"\.\s")
_LAST_WORD = re.compile(r"[\w.&'-]+\.\Z")
_NEXT_WORD = re.compile(rf"[\s{_CLOSERS}\"“‘(\[]*([^\s,.;:]*)")
_SOFT_CUTS = (re.compile(r"[；;]"), re.compile(r"[，,、：:\t]"), re.compile(r"\s"))


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Spans into one text. Shapes: paragraphs (p, 2) uint32, sentences (s, 2) uint32."""

    paragraphs: NDArray[np.uint32]
    sentences: NDArray[np.uint32]

    def sentence_counts(self) -> NDArray[np.int64]:
        """How many sentences each paragraph holds: (p,)."""
        ends = np.searchsorted(self.sentences[:, 0], self.paragraphs[:, 1])
        return np.diff(ends, prepend=0).astype(np.int64)


def segment(text: str) -> Segments:
    """Cut a text; a blank one gives no spans."""
    paragraphs: list[int] = []
    sentences: list[int] = []
    for match in _PARAGRAPH.finditer(text):
        start, end = _trimmed(text, match.start(), match.end())
        if start < end:
            paragraphs += (start, end)
            _cut_paragraph(text, start, end, sentences)
    return Segments(_spans(paragraphs), _spans(sentences))


def _spans(flat: list[int]) -> NDArray[np.uint32]:
    return np.array(flat, np.uint32).reshape(-1, 2)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut_paragraph(text: str, start: int, end: int, out: list[int]) -> None:
    begin = start
    for match in _POINT.finditer(text, start, end):
        at = match.end()
        if at <= begin or at >= end:
            continue
        cut = _boundary(text, begin, match, end)
        if cut and cut < end:
            _emit(text, begin, cut, out)
            begin = cut
    if begin < end:
        _emit(text, begin, end, out)


def _boundary(text: str, begin: int, match: re.Match[str], end: int) -> int:
    """The end of the sentence that this mark ends; 0 if it ends none."""
    kind, at = match.lastgroup, match.end()
    if kind == "quoted":
        ends_inside = text[at - 2] in _ENDS_INSIDE and text[at - 1] not in "》】"
        return at if ends_inside and text[at] not in _GOES_ON and _may_end(text, at, end) else 0
    closed = _AFTER.match(text, at, end)
    at = closed.end() if closed else at
    if at >= end:
        return 0
    if kind == "dot":
        return at if _dot_ends(text, begin, match, at, end) else 0
    if text[match.end() - 1] in "…⋯" and text[at:end].lstrip()[:1].isdecimal():
        return 0  # the leaders of a table of contents
    return at if at == match.end() or text[at] not in "，、,的" else 0


def _may_end(text: str, at: int, end: int) -> bool:
    """A Latin quotation ends its sentence only before a capital: ``"Stop." he said``."""
    if text[at - 1] not in '")':
        return True
    word = _NEXT_WORD.match(text, at, end)
    return bool(word and word[1] and not word[1][0].islower()) and text[at].isspace()


def _dot_ends(text: str, begin: int, match: re.Match[str], at: int, end: int) -> bool:
    following = _NEXT_WORD.match(text, at, end)
    word = following[1] if following else ""
    if not word or word[0].islower() or (len(match[0]) > 2 and word[0].isdecimal()):
        return False
    dot = match.end()
    if dot - begin < 24 and _CLAUSE_NUMBER.match(text[begin:dot]):
        return False
    last = _LAST_WORD.search(text[max(begin, dot - 40) : dot])
    if len(match[0]) > 1 or not last:
        return True
    is_numbered = bool(following and _NUMBERED.match(text, following.end(), end))
    return _word_may_be_last(last[0][:-1], word, is_numbered=is_numbered)


def _word_may_be_last(last: str, following: str, *, is_numbered: bool) -> bool:
    name = last.lower()
    if name in NEVER_LAST or (len(last) == 1 and last.isalpha() and last.isupper()):
        return False
    if following[0].isdecimal() and len(last) <= 4 and last[0].isupper():
        return is_numbered  # Rs. 5,000 and Nr. 7, but: in May. 3. Delivery
    if name in SELDOM_LAST or re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", last):
        return following in STARTERS
    return True


def _emit(text: str, start: int, end: int, out: list[int]) -> None:
    start, end = _trimmed(text, start, end)
    while end - start > MAX_SENTENCE:
        cut = _soft_cut(text, start)
        first, last = _trimmed(text, start, cut)
        if first < last:
            out += (first, last)
        start, end = _trimmed(text, cut, end)
    if start < end:
        out += (start, end)


def _soft_cut(text: str, start: int) -> int:
    """After the last weak mark in the second half of the limit, or at the limit."""
    low, high = start + MAX_SENTENCE // 2, start + MAX_SENTENCE
    for marks in _SOFT_CUTS:
        ends = [match.end() for match in marks.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high
