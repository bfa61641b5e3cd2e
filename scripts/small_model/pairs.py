# ruff: noqa: E501 - one line for each list of weights
"""Pairs of texts that should have near vectors, made without labels.

Kinds: a clause and the abstract it comes from; the name of a law and one of its articles;
neighbouring sentences; overlapping crops; a sentence and its noisy or reworded copy; bags of
dictionary words that share half; everyday questions in two wordings. Some carry a third text that
should be far: the same sentence with a word turned to its contrary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from small_model import gazetteer, thesaurus

if TYPE_CHECKING:
    from random import Random

    from small_model.corpus import Corpus

Pair = tuple[str, str, str | None]
SENTENCE = re.compile(r"[^。！？；\n]{4,}[。！？；]?")


def _word_groups() -> dict[str, list[list[str]]]:
    groups: dict[str, list[list[str]]] = {}
    for group in thesaurus.SAME:
        for word in group:
            groups.setdefault(word, []).append(group)
    return groups


class Pairing:
    """Draws pairs; `rng` alone decides which."""

    def __init__(self, corpus: Corpus) -> None:
        self.texts = corpus.texts
        self.titled = corpus.titled
        self.same = _word_groups()
        self.contrary = {a: b for pair in thesaurus.CONTRARY for a, b in (pair, pair[::-1])}
        self.names = [name for name in ("abstracts", "laws", "articles", "announcements", "own")
                      if name in corpus.texts]  # fmt: skip

    def draw_step(self, rng: Random, n: int) -> list[Pair]:
        """The pairs of one step, three in four from one source.

        All are each other's negatives: beside texts of the same source a model must tell what they
        say; beside others it would learn to tell laws from notices, and nothing finer.
        """
        name = rng.choice(self.names[:1] * 4 + self.names)
        return [
            self._draw_of(name, rng) if place < n * 3 // 4 else self._draw_common(rng)
            for place in range(n)
        ]

    def _draw_of(self, name: str, rng: Random) -> Pair:
        kind = rng.random()
        if kind < 0.62:
            return self._clause_and_whole(name, rng)
        if kind < 0.7 and name == "articles":
            title, text = rng.choice(self.titled)
            return title.partition("第")[0] + " " + self._crop(text, rng, 20), text[:110], None
        if kind < 0.78:
            return self._neighbours(name, rng)
        if kind < 0.84:
            text = rng.choice(self.texts[name])
            at = rng.randrange(max(len(text) - 100, 1))
            return text[at : at + 60], text[at + rng.randrange(10, 40) :][:70], None
        sentence = self._sentences(name, rng, 1)[0][:60]
        return self._reword(sentence, rng), self._noise(sentence, rng), self._turn(sentence, rng)

    def _draw_common(self, rng: Random) -> Pair:
        return self._bags(rng) if rng.random() < 0.4 else self._everyday(rng)

    def _crop(self, text: str, rng: Random, n_chars: int) -> str:
        at = rng.randrange(max(len(text) - n_chars, 1))
        return text[at : at + n_chars]

    def _sentences(self, name: str, rng: Random, n: int) -> list[str]:
        """So many sentences that follow one another."""
        text = rng.choice(self.texts[name])
        at = rng.randrange(max(len(text) - 400, 1))
        found = SENTENCE.findall(text[at : at + 600])
        first = 1 if len(found) > n + 1 else 0
        found = found[first : first + n]
        return found if len(found) == n else (found + [text[:60]] * n)[:n]

    def _clause_and_whole(self, name: str, rng: Random) -> Pair:
        text = rng.choice(self.texts[name])
        # The whole is as long as what is encoded of it: a clause cut off would not be in it.
        n_chars = 230 if rng.random() < 0.15 else 100
        at = rng.randrange(max(len(text) - n_chars, 1))
        text = text[at : at + n_chars]
        clauses = [c for c in re.split(r"[，。；：！？,;\n]", text) if len(c) >= 5]
        if not clauses:
            return text[:40], text, None
        clause = "".join(rng.sample(clauses, min(len(clauses), rng.choice((1, 1, 2)))))[:40]
        if rng.random() < 0.6:
            words = _words(clause)
            clause = "".join(rng.sample(words, max(1, int(len(words) * rng.uniform(0.5, 1)))))
        whole = text.replace(clause, "", 1) if rng.random() < 0.25 else text
        return clause, whole, None

    def _neighbours(self, name: str, rng: Random) -> Pair:
        first, second = self._sentences(name, rng, 2)
        return first[:70], second[:90], None

    def _reword(self, sentence: str, rng: Random) -> str:
        out = []
        for word in _words(sentence):
            groups = self.same.get(word)
            out.append(rng.choice(rng.choice(groups)) if groups and rng.random() < 0.7 else word)
        return "".join(out)

    def _noise(self, sentence: str, rng: Random) -> str:
        words = [word for word in _words(sentence) if rng.random() > 0.2] or [sentence]
        if rng.random() < 0.3:
            cut = rng.randrange(len(words))
            words = words[cut:] + words[:cut]
        return "".join(words)

    def _turn(self, sentence: str, rng: Random) -> str | None:
        """The sentence with one word turned, or None where nothing can be turned."""
        words = _words(sentence)
        places = [place for place, word in enumerate(words) if word in self.contrary]
        if not places:
            return None
        place = rng.choice(places)
        words[place] = self.contrary[words[place]]
        return "".join(words)

    def _bags(self, rng: Random) -> Pair:
        tags = rng.choices(
            ("n", "v", "a", "vn", "nz", "i", "l", "d"),
            (8, 5, 2, 1, 2, 1, 1, 1),
            k=rng.randrange(3, 8),
        )
        words = [gazetteer.draw_word(rng, tag) for tag in tags]
        other = rng.sample(words, max(2, int(len(words) * 0.7)))
        other.append(gazetteer.draw_word(rng, rng.choice(("n", "v"))))
        return "".join(words), self._reword("".join(other), rng), None

    def _everyday(self, rng: Random) -> Pair:
        if rng.random() < 0.55:
            frames = rng.choice(thesaurus.ASK_FRAMES)
            first, second = rng.sample(frames, 2)
            noun, verb = rng.choice(thesaurus.ASKED), rng.choice(thesaurus.ASKED_VERBS)
            context = rng.choice(("", "", "我的", gazetteer.draw_word(rng, "n")))
            other = rng.choice(thesaurus.ASKED) if rng.random() < 0.5 else noun
            far = rng.choice(rng.choice(thesaurus.ASK_FRAMES)) if other == noun else first
            return (first.format(n=context + noun, v=verb), self._reword(second.format(n=context + noun, v=verb), rng),
                    far.format(n=context + other, v=rng.choice(thesaurus.ASKED_VERBS)))  # fmt: skip
        who, what, where = (
            rng.choice(pool) for pool in (thesaurus.SUBJECTS, thesaurus.ACTIONS, thesaurus.SCENES)
        )
        clothes = rng.choice(thesaurus.CLOTHES) if who[0] in "一两几" and rng.random() < 0.5 else ""
        dressed = who[:2] + clothes + who[2:] if clothes else who
        first = dressed + where + what.removeprefix("正").removeprefix("在")
        second = rng.choice(
            (who + what, where[1:] + "有" + who + what, who + where + what.removeprefix("正"))
        )
        turned = rng.choice((who + rng.choice(thesaurus.ACTIONS), rng.choice(thesaurus.SUBJECTS) + what,
                             who + "没有" + what.removeprefix("正")))  # fmt: skip
        return first, self._reword(second, rng), turned if turned != second else None


def _words(text: str) -> list[str]:
    import jieba

    return jieba.lcut(text, HMM=False)  # type: ignore[no-any-return] # jieba is untyped
