"""Evidence: what speaks for a candidate, as hashed columns and a few measured ones.

Hashed columns are words around and inside the span (sparse, learned per field); measured ones mean
the same in every field, so that a prior can be stated for them. All arrays, one row per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.templates.candidates import ORIGINS, Candidates
from featpipe.templates.edges import CLOSING, OPENING
from featpipe.templates.hashing import hash_of, is_in, mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.templates.tokens import Tokens
    from featpipe.templates.view import View

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: Columns of the hashed space.
N_HASHED = 1 << 18
_PAD = 12
_OPEN = [hash_of(mark) for mark in "([<《"]
_CLOSE = [hash_of(mark) for mark in ")]>》"]
_QUOTE = hash_of('"')
_COLON = hash_of(":")
_STOPS = np.sort([hash_of(mark) for mark in "。;,\n\t:!?、"])
_OPENERS = np.sort([hash_of(mark) for mark in '([<《":\n\t'])
_FUNCTION_WORDS = np.unique(
    [
        hash_of(word)
        for word in (
            *"的了在是将被把与和及或为对向从由以已不也都就而并但其该此等于因若如则",
            "of", "the", "and", "to", "in", "is", "are", "was", "for", "by", "with", "shall",
            "that", "which",
        )
    ]
)  # fmt: skip
_SURNAMES = np.unique(
    [
        hash_of(char)
        for char in "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾"
        "肖田董潘袁蔡蒋余于杜叶"
        "程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾"
        "龚邵万覃武钱戴严莫孔向常汤康易乔赖文施洪季辛管祝左童翁柯欧舒纪项瞿诸葛司马欧阳上官"
    ]
)
_ALIAS_REACH = 20
_ALIAS_FADE = np.linspace(1.0, 0.1, _ALIAS_REACH)
_DIGITS = np.sort([hash_of(f"digits {n}") for n in range(10)])

#: Names of the measured columns, in order.
_SHARED = (
    "unbalanced", "behind colon", "behind opener", "before stop", "line start", "line end",
    "whole line", "marks inside", "log length", "cuts a word", "position", "early",
    "function words", "organisation", "person", "n words", "all digits", "clean start",
    "clean end",
)  # fmt: skip
MEASURED = (
    *_SHARED, "repeats", "vector", "words of sentence", "behind alias", "alias near",
    *(f"from {name}" for name in ORIGINS),
)  # fmt: skip

#: Prior weights of the measured columns: what holds for fields of any template.
_PRIOR_BY_NAME = {
    "unbalanced": -2.5,
    "behind colon": 0.6,
    "behind opener": 0.3,
    "before stop": 0.5,
    "cuts a word": -1.0,
    "early": 0.3,
    "vector": 0.5,
    "words of sentence": 0.8,
    "function words": -1.0,
    "clean start": 0.5,
    "clean end": 0.5,
    "repeats": 0.5,
    "from entity": 0.4,
    "from cell": 0.5,
    "behind alias": 2.0,
    "alias near": 0.7,
}
PRIOR = np.array([_PRIOR_BY_NAME.get(name, 0.0) for name in MEASURED])


def hashed_columns(view: View, found: Candidates) -> NDArray[np.int32]:
    """Shape (n_candidates, n_columns): places in the hashed space."""
    tokens = view.tokens
    code = np.concatenate((np.full(_PAD, 7, np.int64), tokens.code, np.full(_PAD, 11, np.int64)))
    a, b = found.first + _PAD, found.last + _PAD
    length = found.last - found.first
    columns: list[Ints] = []

    def add(values: Ints) -> None:
        columns.append(mix(values, len(columns) + 1))

    left1, left2, left3 = code[a - 1], code[a - 2], code[a - 3]
    right1, right2, right3 = code[b], code[b + 1], code[b + 2]
    pair_left, pair_right = mix(left2, left1), mix(right1, right2)
    for value in (left1, pair_left, mix(left3, pair_left), mix(code[a - 4], mix(left3, pair_left))):
        add(value)
    for value in (right1, pair_right, mix(pair_right, right3)):
        add(value)
    start2, end2 = mix(code[a], code[a + 1]), mix(code[b - 2], code[b - 1])
    for value in (code[a], start2, code[b - 1], end2, mix(code[b - 3], end2)):
        add(value)
    add(mix(left1, right1))
    add(mix(left1, code[b - 1]))
    add(mix(end2, right1))
    add(mix(pair_left, end2))
    add(tokens.label[found.first])
    add(mix(tokens.label[found.first], left1))
    add(tokens.heading[found.first])
    add(np.minimum(np.log2(length) * 3, 24).astype(np.int64))
    add(np.minimum(tokens.sentence[found.first], 6))
    add(mix(np.minimum(tokens.line[found.first], 4), code[b - 1]))
    add(_inside(np.where(_is_digit(code), _DIGITS[0], code), a, b))
    add(_entity_labels(view, found))
    columns.extend(_window(code, a, b))
    return np.asarray(np.stack(columns, axis=1) & (N_HASHED - 1), np.int32)


def _inside(code: Ints, a: Ints, b: Ints) -> Ints:
    """One number for the whole value, from running sums: equal for equal token sequences."""
    weights = mix(code, 3)
    sums = np.concatenate(([0], np.cumsum(weights)))
    return mix(sums[b] - sums[a], b - a)


def _entity_labels(view: View, found: Candidates) -> Ints:
    """Hash of the label of the entity that has exactly this span, 0 for none."""
    if not view.entities:
        return np.zeros(len(found), np.int64)
    tokens = view.tokens
    labels = {(mark.start, mark.end): hash_of(mark.label) for mark in view.entities}
    start, end = tokens.start[found.first].tolist(), tokens.end[found.last - 1].tolist()
    return np.array([labels.get(span, 0) for span in zip(start, end, strict=True)], np.int64)


def _window(code: Ints, a: Ints, b: Ints) -> list[Ints]:
    """Pairs of tokens a little farther away, whatever their order: the cue words of the field."""
    pairs = mix(code[:-1], code[1:])
    near = [mix(pairs[a - step], 101) for step in range(3, 11)]
    return near + [mix(pairs[b + step], 103) for step in range(1, 6)]


@dataclass(frozen=True, slots=True, eq=False)
class SpanRows:
    """What holds of spans whatever the field. One row per span, ascending by ``code``.

    Shapes: ``codes`` (n,), ``hashed`` (n, n_columns), ``shared`` (n, n_shared), ``inside`` (n,).
    """

    codes: Ints
    hashed: NDArray[np.int32]
    shared: Floats
    inside: Ints

    def places(self, found: Candidates) -> Ints:
        """Rows of candidates that are among the spans."""
        return np.asarray(np.searchsorted(self.codes, found.codes))


def span_rows(view: View, many: Sequence[Candidates]) -> SpanRows:
    """Rows for the distinct spans of the candidates of many fields."""
    codes = np.unique(np.concatenate([found.codes for found in many]))
    first, last = codes >> 32, codes & 0xFFFFFFFF
    found = Candidates(first, last, np.zeros(len(codes), np.int64))
    if not len(codes):
        none = np.empty((0, 1), np.int32)
        return SpanRows(codes, none, np.empty((0, len(_SHARED))), codes)
    inside = _inside(view.tokens.code, first, last)
    return SpanRows(codes, hashed_columns(view, found), _shared_columns(view, found), inside)


def measured_columns(
    view: View,
    found: Candidates,
    rows: SpanRows,
    nearness: Sequence[Floats],
    aliases: Sequence[str] = (),
) -> Floats:
    """Shape (n_candidates, len(MEASURED)), each roughly in [-1, 1].

    Args:
        view: the document.
        found: candidates of one field.
        rows: what holds of their spans whatever the field.
        nearness: likeness of each sentence to the samples' sentences, (n_sentences,) each: by
            vectors and by words.
        aliases: what the field is called, folded; the field's own name is one.

    """
    sentence = view.tokens.sentence[found.first]
    places = rows.places(found)
    n_shared = len(_SHARED)
    columns = np.empty((len(found), len(MEASURED)))
    columns[:, :n_shared] = rows.shared[places]
    columns[:, n_shared] = _repeats(rows.inside[places])
    columns[:, n_shared + 1] = nearness[0][sentence]
    columns[:, n_shared + 2] = nearness[1][sentence]
    columns[:, n_shared + 3], columns[:, n_shared + 4] = _alias_columns(view, found, aliases)
    bits = np.arange(len(ORIGINS))
    columns[:, n_shared + 5 :] = (found.origin[:, None] >> bits) & 1
    return columns


def _shared_columns(view: View, found: Candidates) -> Floats:
    tokens = view.tokens
    n = max(len(tokens), 1)
    code = np.concatenate(([_stop_code], tokens.code, [_stop_code]))
    before, behind = code[found.first], code[found.last + 1]
    is_first = is_in(before, _line_codes)
    is_last = is_in(behind, _line_codes)
    marks = np.concatenate(([0], np.cumsum(tokens.is_mark)))
    inner_start = np.concatenate((tokens.is_word_start, [True]))
    columns = [
        _is_unbalanced(tokens.code, found),
        before == _COLON,
        is_in(before, _OPENERS),
        is_in(behind, _STOPS),
        is_first,
        is_last,
        is_first & is_last,
        np.minimum(marks[found.last] - marks[found.first], 4) / 4,
        np.log(found.last - found.first) / 3,
        ~(inner_start[found.first] & inner_start[found.last]),
        found.first / n,
        tokens.line[found.first] <= 1,
        np.minimum(_count(is_in(tokens.code, _FUNCTION_WORDS), found), 3) / 2,
        view.edges.is_organisation_end[found.last - 1],
        _is_person(view, found),
        np.minimum(_count(tokens.is_word_start, found), 12) / 6,
        _count(_is_digit(tokens.code), found) == found.last - found.first,
        is_in(before, OPENING) | _is_mark(tokens, found.first - 1),
        is_in(behind, CLOSING) | _is_mark(tokens, found.last),
    ]
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def _is_mark(tokens: Tokens, at: Ints) -> NDArray[np.bool_]:
    """Whether these tokens are marks; beyond either end of the document is one."""
    marks = np.concatenate(([True], tokens.is_mark, [True]))
    return np.asarray(marks[at + 1])


def _repeats(inside: Ints) -> Floats:
    """How often the same words are a candidate here: names are, pieces of them are not."""
    if not len(inside):
        return np.empty(0)
    _, inverse, counts = np.unique(inside, return_inverse=True, return_counts=True)
    return np.asarray(np.log2(counts[inverse]) / 2)


def _alias_columns(
    view: View, found: Candidates, aliases: Sequence[str]
) -> tuple[NDArray[np.bool_], Floats]:
    """Stands behind a label with the field's name; how near before it the name is written."""
    tokens = view.tokens
    named = [
        number
        for number, text in tokens.label_text.items()
        if any(alias in text for alias in aliases)
    ]
    behind = is_in(tokens.label[found.first], np.array(sorted(named), np.int64))
    near = np.zeros(len(tokens) + 1)
    for alias in aliases:
        at = view.folded.find(alias)
        while at >= 0:
            token = int(np.searchsorted(tokens.start, at + len(alias)))
            reach = near[token : token + _ALIAS_REACH]
            np.maximum(reach, _ALIAS_FADE[: len(reach)], out=reach)
            at = view.folded.find(alias, at + 1)
    return behind, near[found.first]


def _count(marked: NDArray[np.bool_], found: Candidates) -> Ints:
    """How many marked tokens each candidate holds."""
    sums = np.concatenate(([0], np.cumsum(marked)))
    return np.asarray(sums[found.last] - sums[found.first])


def _is_digit(code: Ints) -> NDArray[np.bool_]:
    return is_in(code, _DIGITS)


def _is_person(view: View, found: Candidates) -> NDArray[np.bool_]:
    """Two to four Chinese characters with a surname first, or two to four capitalised words."""
    tokens = view.tokens
    length = found.last - found.first
    plain = _count(tokens.is_mark, found) == 0
    latin = _count(tokens.is_latin & tokens.is_capital, found) == length
    is_short = (length >= 2) & (length <= 4)
    surname = is_in(tokens.code[found.first], _SURNAMES) & (_count(tokens.is_latin, found) == 0)
    return np.asarray(plain & is_short & ((surname & (length <= 3)) | latin))


_stop_code = hash_of("\n")
_line_codes = np.sort([hash_of("\n"), hash_of("\t")])


def _is_unbalanced(code: Ints, found: Candidates) -> NDArray[np.bool_]:
    """A bracket or quote opens inside and closes outside, or the other way round."""
    unbalanced = np.zeros(len(found), bool)
    for opening, closing in zip(_OPEN, _CLOSE, strict=True):
        depth = np.concatenate(([0], np.cumsum((code == opening) * 1 - (code == closing) * 1)))
        unbalanced |= depth[found.last] != depth[found.first]
    quotes = np.concatenate(([0], np.cumsum(code == _QUOTE)))
    return np.asarray(unbalanced | ((quotes[found.last] - quotes[found.first]) % 2 == 1))
