r"""Tokens: a document cut into characters, words and numbers, each with the label it belongs to.

One Chinese character, one Latin word, one run of digits, one mark, one line break: one token; in a
pattern, ``[a-z]+(?:'[a-z]+)?|\d+|[\n\t]|\S`` over the folded text. Tokens are compared by hashes,
which are the same in every process and version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from featpipe.extraction.names.bare_labels import is_role
from featpipe.extraction.names.name_patterns import HAN
from featpipe.extraction.names.synonyms import is_party, without_ordinal
from featpipe.extraction.scoring.party_blocks import party_blocks
from featpipe.extraction.scoring.token_labels import find_labels
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.tables.table_headers import as_label
from featpipe.extraction.values.text import (
    BLANK,
    BREAK,
    DECIMAL,
    DIGIT,
    LETTER,
    PLAIN,
    TRAITS,
    UPPER,
    CharacterTable,
    points_of,
)
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.scoring.token_labels import Label

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Points = NDArray[np.uint32]
    Traits = NDArray[np.uint8]

#: Characters of a party's name and of the brackets behind it.
_LONGEST_NAME = 100
_short_name = re.compile(
    r"\((?:以下)?(?:简称|统称|称|下称)为?:?\s*\"?(?P<words>[^()\"\n]{1,12})\"?\)"
)
#: A line of nothing but a party's two names, above its details: 甲方(用人单位).
_head = re.compile(
    rf"^[^\S\n]*(?P<own>{HAN}[\u4e00-\u9fff ]{{1,8}})\((?P<other>{HAN}{{2,8}})\)\s*$",
    re.MULTILINE,
)
#: What somebody says, or a court finds, behind a colon, has names of its own.
SAYING = re.compile(
    r"(?:查明|认定|指控|认为|诉称|辩称|陈述|供述|证实|指出|事实|理由|(?:发放|放款|借款|贷款)情况|约定|载明|写明|借款|如下)\Z"
)
_blanks = re.compile(r"\s+")
_APOSTROPHE, _NEWLINE = map(ord, "'\n")


@lru_cache(maxsize=1 << 17)
def hash_of(text: str) -> int:
    """CRC-32 of a string, made odd: never 0."""
    return crc32(text.encode("utf-8", "surrogatepass")) | 1


def hashes_of(words: Iterable[str]) -> Ints:
    """Hashes of the distinct words, ascending."""
    return np.unique([hash_of(word) for word in words])


def mix(first: Ints, second: Ints | int) -> Ints:
    """One number below 2**31 for two; their order counts."""
    mixed = _unsigned(first) * np.uint64(0x9E3779B97F4A7C15) ^ (
        _unsigned(second) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    return np.asarray((mixed >> np.uint64(20) & np.uint64(0x7FFFFFFF)).view(np.int64))


def _unsigned(numbers: Ints | int) -> NDArray[np.uint64]:
    return np.asarray(numbers, np.int64).view(np.uint64)


def pair_codes(code: Ints) -> Ints:
    """Hash (n,) of each token with the next one; the last is paired with 0."""
    return mix(code, np.concatenate((code[1:], [0])))


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Arrays of length n_tokens; ``start``/``end`` are characters, the rest numbers or hashes."""

    start: Ints
    end: Ints
    code: Ints
    """Hash of the folded token; digits by their count, so that any year looks like a year."""
    is_mark: Bools
    """Neither letter nor digit: a place where names begin and end."""
    is_latin: Bools
    is_capital: Bools
    is_word_start: Bools
    label: Ints
    """Hash of the words before the last colon of the line, or of the table header; 0 if none."""
    label_number: Ints
    """How many beginnings and colons of labels are at or before each."""
    label_text: Mapping[int, str]
    """The words of each such hash."""
    qualifier: Ints
    """Hash of the words in brackets behind the label, as 贷款人 in 甲方（贷款人）; 0 if none."""
    party: Ints
    """Hash of the label of the party in whose block each stands; 0 if none."""
    also_called: Ints
    """(n_pairs, 2) hashes of two names of one party, as 出借人 and 甲方 in 甲方（出借人）."""
    role: Ints
    """Behind the label of a role, as 审判员 is, a hash of it and the block's party; 0 elsewhere."""
    line: Ints
    sentence: Ints
    heading: Ints
    """Hash of the last short line above that ends without a stop."""

    def __len__(self) -> int:
        return len(self.start)

    def with_other_names(self, parties: Ints) -> Ints:
        """Hashes of parties, and of what the document calls them besides."""
        if not len(self.also_called):
            return parties
        known = is_in(self.also_called, parties)
        return np.union1d(parties, self.also_called[known[:, ::-1]])

    def spans(self, characters: Sequence[tuple[int, int]] | Ints) -> tuple[Ints, Ints]:
        """Character spans (n, 2) as first and last token (half-open), (m,) each.

        Blanks at the edges are left out, and spans of blanks alone; a cut token counts whole.
        """
        if not len(characters):
            none = np.empty(0, np.int64)
            return none, none
        whole = np.asarray(characters, np.int64).reshape(-1, 2)
        first = np.searchsorted(self.end, whole[:, 0], side="right")
        last = np.searchsorted(self.start, whole[:, 1], side="left")
        keep = last > first
        return first[keep], last[keep]


def make_tokens(page: Page, folded: str) -> Tokens:
    """The tokens of a page; ``folded`` is its text after :func:`fold_width`."""
    points = points_of(folded)
    traits = TRAITS.look_up(points)
    start, end = _cut(points, traits)
    first = points[start]
    kind = traits[start]
    is_latin = (kind & LETTER) > 0
    is_mark = (kind & PLAIN) == 0
    original = TRAITS.look_up(points_of(page.text)[start])
    labels = find_labels(folded, first, start, end)
    label, qualifier, label_text = _labels(page, folded, labels, start)
    sentence = np.searchsorted(page.sentences[:, 0], start, side="right") - 1
    breaks = first == _NEWLINE
    line = np.cumsum(breaks)
    party = _parties(page, party_blocks(labels, folded, start, end, line), start)
    return Tokens(
        start=start,
        end=end,
        code=_codes(points, kind, start, end),
        is_mark=is_mark,
        is_latin=is_latin,
        is_capital=(original & UPPER) > 0,
        is_word_start=_word_starts(page, start, is_mark | is_latin),
        label=label,
        label_number=_label_numbers(labels, len(start)),
        label_text=label_text,
        qualifier=qualifier,
        party=party,
        also_called=_other_names(labels, folded, start),
        role=_roles(labels, party),
        line=line,
        sentence=np.maximum(sentence, 0),
        heading=_headings(folded, breaks, start, end),
    )


def _cut(points: Points, traits: Traits) -> tuple[Ints, Ints]:
    """First and last character (half-open) of each token."""
    letter, decimal = (traits & LETTER) > 0, (traits & DECIMAL) > 0
    blank = ((traits & BLANK) > 0) & ((traits & BREAK) == 0)
    # Whether a character continues the token of the one before it.
    continues = np.zeros(len(points) + 1, bool)
    continues[1:-1] = (letter[1:] & letter[:-1]) | (decimal[1:] & decimal[:-1])
    joined = _joined_apostrophes(points, letter, continues)
    continues[joined] = continues[joined + 1] = True
    is_start = ~blank & ~continues[:-1]
    is_end = ~blank & ~continues[1:]
    return np.flatnonzero(is_start), np.flatnonzero(is_end) + 1


def _joined_apostrophes(points: Points, letter: Bools, continues: Bools) -> Ints:
    """Places of the apostrophes inside words: at most one a word, the first from the left."""
    at = np.flatnonzero(points[1:-1] == _APOSTROPHE) + 1
    joined: list[int] = []
    for place in at[letter[at - 1] & letter[at + 1]].tolist():
        # Letters only since the last joined apostrophe: still the same word.
        is_same = bool(joined) and bool(continues[joined[-1] + 2 : place].all())
        if not is_same:
            joined.append(place)
    return np.array(joined, np.int64)


def _codes(points: Points, kind: Traits, start: Ints, end: Ints) -> Ints:
    codes = _CODES.look_up(points[start])
    is_digit = (kind & DIGIT) > 0
    codes[is_digit] = _DIGIT_CODES[np.minimum((end - start)[is_digit], 9)]
    words = np.flatnonzero((end - start > 1) & ~is_digit)
    codes[words] = _hashes_of_words(points, start[words], end[words])
    return codes


def _hashes_of_words(points: Points, start: Ints, end: Ints) -> Ints:
    """:func:`hash_of` of words of small letters and apostrophes, character by character."""
    checksums = np.full(len(start), 0xFFFFFFFF, np.uint32)
    longest_first = np.argsort(start - end, kind="stable")
    start, lengths = start[longest_first], (end - start)[longest_first]
    n_with = np.cumsum(np.bincount(lengths)[::-1])[::-1]
    for at, n in enumerate(n_with[1:].tolist()):
        own = checksums[:n]
        own[:] = _CRC_TABLE[(own ^ points[start[:n] + at]) & 0xFF] ^ (own >> 8)
    hashes = np.empty(len(start), np.int64)
    hashes[longest_first] = ~checksums | np.uint32(1)
    return hashes


#: Checksum of each byte alone, as CRC-32 is computed from (zlib inverts before and after).
_CRC_TABLE = np.array([crc32(bytes([n ^ 0xFF]), 0) ^ 0xFF000000 for n in range(256)], np.uint32)
_CODES = CharacterTable(hash_of, np.int64)
_DIGIT_CODES = np.array([hash_of(f"digits {n}") for n in range(10)], np.int64)


def _word_starts(page: Page, start: Ints, is_own_word: Bools) -> Bools:
    """Tokens that begin a word: marks, Latin words, the token after one, and segmented words."""
    begins = np.zeros(len(page.text) + 1, bool)
    begins[page.words[:, 0]] = True
    after_own = np.concatenate(([True], is_own_word[:-1]))
    return np.asarray(begins[start] | is_own_word | after_own)


def _labels(
    page: Page, folded: str, found: Sequence[Label], start: Ints
) -> tuple[Ints, Ints, dict[int, str]]:
    """Hash of the label of each token, that of its qualifier, and the words by hash."""
    labels, qualifiers = np.zeros((2, len(start)), np.int64)
    texts: dict[int, str] = {}
    for label in found:
        for codes, words in ((labels, label.words), (qualifiers, label.qualifier)):
            if words:
                codes[label.colon : label.until] = hash_of(words)
                texts[hash_of(words)] = words
    begins = {label.value for label in found if not SAYING.search(label.words)}
    for phrase in find_phrases(folded):
        low, high = np.searchsorted(start, (phrase.start, phrase.end)).tolist()
        if low not in begins:
            labels[low:high] = hash_of(phrase.words)
            texts[hash_of(phrase.words)] = phrase.words
    for header in page.headers:
        low, high = np.searchsorted(start, (header.start, header.end))
        words = as_label(header.label)
        own = labels[low:high]
        own[own == 0] = hash_of(words)
        texts[hash_of(words)] = words
    return labels, qualifiers, texts


def _label_numbers(labels: Sequence[Label], n: int) -> Ints:
    """(n,) how many first tokens and colons of labels are at or before each token."""
    edges = np.zeros(n + 1, np.int64)
    for label in labels:
        if label.words:
            edges[[label.first, label.colon]] = 1
    return np.cumsum(edges[:n])


def _parties(page: Page, blocks: Iterable[tuple[int, int, str]], start: Ints) -> Ints:
    """Hash of the label of the party in whose block, or column, each token stands."""
    parties = np.zeros(len(start), np.int64)
    for first, last, name in blocks:
        parties[first:last] = hash_of(name)
    for header in page.headers:
        if header.party:
            low, high = np.searchsorted(start, (header.start, header.end))
            own = parties[low:high]
            own[own == 0] = hash_of(header.party)
    return parties


def _other_names(labels: Sequence[Label], folded: str, start: Ints) -> Ints:
    """Pairs of names (n, 2) of parties, by brackets behind their labels and by their values."""
    pairs = set()
    called = {phrase.start: phrase.words for phrase in find_phrases(folded)}
    for head in _head.finditer(folded):
        own, other = (_blanks.sub("", head[part]) for part in ("own", "other"))
        if is_party(own) and is_party(other) and own != other:
            pairs.add((hash_of(own), hash_of(other)))
    for label in labels:
        if not is_party(label.words) or label.value >= len(start):
            continue
        begin = int(start[label.value])
        short = _short_name.search(folded[begin : begin + _LONGEST_NAME].partition("\n")[0])
        others = (label.qualifier, short["words"] if short else "", called.get(begin, ""))
        for other in others:
            if other != label.words and is_party(other):
                pairs.add((hash_of(label.words), hash_of(other)))
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _roles(labels: Sequence[Label], party: Ints) -> Ints:
    """Hash of a role, and of the party it is of, at the token behind each label of one."""
    held = [label for label in labels if label.value < len(party) and is_role(label.words)]
    roles = np.zeros(len(party), np.int64)
    at = np.array([label.value for label in held], np.int64)
    own = np.array([hash_of(label.words) for label in held], np.int64)
    named = np.array([hash_of(without_ordinal(label.words)) for label in held], np.int64)
    # A party's label is of its own block.
    roles[at] = mix(np.where(party[at] == own, 0, party[at]), named) | 1
    return roles


def _headings(folded: str, breaks: Bools, start: Ints, end: Ints) -> Ints:
    headings = np.zeros(len(start), np.int64)
    current, first = 0, 0
    for at in [*np.flatnonzero(breaks).tolist(), len(start)]:
        if current:
            headings[first:at] = current
        # A line begins with the break before it, which is its first token.
        if 2 <= at - first <= 16 and folded[end[at - 1] - 1] not in "。;,:":
            words = [
                folded[a:b]
                for a, b in zip(start[first:at].tolist(), end[first:at].tolist(), strict=True)
            ]
            current = hash_of("".join([word for word in words if word.isalpha()][-6:]))
        first = at
    return headings
