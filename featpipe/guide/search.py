"""Finds sections of the guide by words, in the terminal and in the site, with the same order.

BM25 over sections, in which words of headings count several times. What a term is worth in a
section is computed here once; the site's script adds those worths up, and repeats only
:func:`terms_of`. :mod:`featpipe.lexical` is not used: it needs numpy, and a browser has none.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from featpipe.guide.pages import GENERATED, Page, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Words that tell nothing about a question's subject.
STOP_WORDS = frozenset(re.findall(r"\w+", """
    a an and are as at be by can do does for from has have how i if in is it its
    me my of on or our so that the their them there this to was we what when where
    which who why will with you your
"""))  # fmt: skip

#: How often words of a section's heading, of the headings above it, and of its page's title count.
_OWN, _ABOVE, _TITLE = 6, 2, 2
_K1, _B = 1.2, 0.5
#: Of pages that are made of the code: an explanation is worth more than a signature.
_GENERATED_WEIGHT = 0.6

#: Share of letters that a misspelled word has in common with the right one.
_ALIKE = 0.7

_WORDS = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class GuideHit:
    """A section that was found; ``score`` is above 0."""

    page: Page
    section: Section
    score: float

    @property
    def address(self) -> str:
        """What ``featpipe guide`` takes: ``models``, ``models#prompts``."""
        is_page = self.section is self.page.sections[0]
        return self.page.topic if is_page else f"{self.page.topic}#{self.section.anchor}"


def terms_of(text: str) -> Iterator[str]:
    """Terms of a text: Latin words without endings, and pairs of Chinese characters.

    ``assets/search.js`` does the same, step by step.
    """
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text).lower()):
        if word[0] > "z":
            pairs = len(word) - 1
            yield from (word[n : n + 2] for n in range(pairs)) if pairs else (word,)
        elif word not in STOP_WORDS:
            yield _stem(word)


def _stem(word: str) -> str:
    """Without the endings of plurals and verbs: ``vectors``, ``encoding``, ``changed``."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bgmnpt":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


class GuideIndex:
    """An index of the sections of pages, in one language."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self.entries: list[tuple[Page, Section]] = []
        self.worths: dict[str, list[tuple[int, float]]] = defaultdict(list)
        counts = []
        for page in pages:
            above: list[Section] = []
            for section in page.sections:
                above = [one for one in above if one.level < section.level]
                self.entries.append((page, section))
                counts.append(_count(page, above, section))
                above.append(section)
        self._weigh(counts)

    def _weigh(self, counts: Sequence[Counter[str]]) -> None:
        n_with = Counter(term for count in counts for term in count)
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / max(len(lengths), 1)
        for number, count in enumerate(counts):
            norm = _K1 * (1 - _B + _B * lengths[number] / mean)
            weight = _GENERATED_WEIGHT if self.entries[number][0].topic in GENERATED else 1.0
            for term, n in count.items():
                idf = math.log(1 + (len(counts) - n_with[term] + 0.5) / (n_with[term] + 0.5))
                worth = round(weight * idf * n * (_K1 + 1) / (n + norm), 2)
                self.worths[term].append((number, worth))

    def search(self, words: str, k: int = 10) -> list[GuideHit]:
        """The best ``k`` sections, best first; of equal ones the earlier in the guide."""
        scores: Counter[int] = Counter()
        for term in dict.fromkeys(terms_of(words)):
            for number, worth in self.worths.get(term, ()):
                scores[number] += worth  # type: ignore[assignment]  # a Counter of floats
        best = sorted((-score, number) for number, score in scores.items() if score > 0)[:k]
        return [GuideHit(*self.entries[number], -score) for score, number in best]

    def nearest_words(self, words: str) -> str:
        """The words with those that stand nowhere replaced by what is spelled most alike."""
        found: list[str] = []
        for term in terms_of(words):
            known = term in self.worths
            found += [term] if known else get_close_matches(term, self.worths, 1, _ALIKE)
        return " ".join(found)


def _count(page: Page, above: Sequence[Section], section: Section) -> Counter[str]:
    counts = Counter(terms_of(section.text))
    titles = [(section.title, _OWN), *((one.title, _ABOVE) for one in above)]
    for title, weight in (*titles, (f"{page.title} {page.topic}", _TITLE)):
        for term in terms_of(title):
            counts[term] += weight
    return counts
