"""Sentences drawn from jieba's tagger: its grammar and its words, with the names it does not have.

The tagger (MIT) carries how parts of speech follow one another in newspapers, and its dictionary
how often each word is used as what. A walk over the first, filled from the second, has no meaning
but the neighbourhoods that names have in real sentences, with labels that are exact. This distils
the dictionary into the network: any number of samples, no labelled text.
"""

from __future__ import annotations

from bisect import bisect
from functools import cache
from itertools import accumulate
from math import exp
from typing import TYPE_CHECKING

from small_model import frames, gazetteer, values

if TYPE_CHECKING:
    from random import Random

State = tuple[str, str]
Piece = tuple[str, str | None]
MARKS, MARK_WEIGHTS = "，。、“”：；？！（）《》", (48, 24, 10, 4, 4, 3, 2, 1, 1, 1, 1, 1, 1)
PERSON_TAGS = frozenset({"nr", "nrt", "nrfg"})
MARKED = 0.13  # the tagger's steps hold no punctuation: so many words are followed by a mark
NOUN_TO_NAME = 0.02
SHORTENED = 0.08  # places said in one character
EASED = 0.8  # words are drawn by their count to this power: rare ones are met a little oftener


def draw_sentence(rng: Random, n_words: int) -> list[Piece]:
    """About so many words, names among them marked PER, LOC, ORG, DATE."""
    pieces: list[Piece] = []
    before, tag = "", ""
    state = _draw(rng, _starts())
    for _ in range(n_words):
        before, tag = tag, state[1]
        if not (tag in PERSON_TAGS and before in PERSON_TAGS):
            pieces.extend(_word(rng, state))
            if rng.random() < MARKED:
                pieces.append((rng.choices(MARKS, MARK_WEIGHTS)[0], None))
        state = _draw(rng, _followers()[state])
    return pieces


def _word(rng: Random, state: State) -> list[Piece]:
    shape, tag = state
    if tag in PERSON_TAGS:
        return _person(rng)
    if tag == "ns":
        return _short_places(rng) if shape == "S" or rng.random() < SHORTENED else _place(rng)
    if tag == "nt" or (tag in {"n", "nz"} and shape == "B" and rng.random() < NOUN_TO_NAME):
        return [(_organisation(rng), "ORG")]
    if tag == "t" and rng.random() < 0.4:
        return [(values.draw_date(rng), "DATE")]
    return [(_dictionary_word(rng, (shape, tag)), None)]


def _person(rng: Random) -> list[Piece]:
    """A name; at times with a title before or after it, or with further names."""
    pieces: list[Piece] = [(gazetteer.draw_person(rng), "PER")]
    kind = rng.random()
    if kind < 0.3:
        pieces.insert(0, (rng.choice(frames.TITLES), None))
        if rng.random() < 0.5:
            pieces[:0] = _place(rng) if rng.random() < 0.6 else [(_organisation(rng), "ORG")]
    elif kind < 0.36:
        pieces.append((rng.choice(frames.TITLES), None))
    elif kind < 0.42:
        return [(rng.choice(gazetteer.SURNAMES), "PER"), (rng.choice(frames.SURNAME_TITLES), None)]
    while rng.random() < 0.15:
        pieces += [("、", None), (gazetteer.draw_person(rng), "PER")]
    return pieces


def _place(rng: Random) -> list[Piece]:
    """A place by use or by list; at times the head of an office's name, or one of several."""
    place = _dictionary_word(rng, ("B", "ns")) if rng.random() < 0.5 else gazetteer.draw_place(rng)
    if rng.random() < 0.12:
        return [(place + rng.choice(gazetteer.ORG_TAILS), "ORG")]
    pieces: list[Piece] = [(place, "LOC")]
    while rng.random() < 0.15:
        mark = rng.choice(("、", "、", "、", "和", ""))
        pieces += [(mark, None), (gazetteer.draw_place(rng), "LOC")]
    return pieces


def _short_places(rng: Random) -> list[Piece]:
    """One place of one character with what is said of such, or several in a row (中美)."""
    if rng.random() < 0.4:
        pieces: list[Piece] = [
            (rng.choice(gazetteer.SHORT), "LOC") for _ in range(rng.choice((2, 2, 3)))
        ]
        return [*pieces, (rng.choice(frames.AFTER_SHORT), None)]
    before, after = rng.choice(frames.AROUND_SHORT).split("-")
    return [(before, None), (rng.choice(gazetteer.SHORT), "LOC"), (after, None)]


def _organisation(rng: Random) -> str:
    return (
        _dictionary_word(rng, ("B", "nt"))
        if rng.random() < 0.4
        else gazetteer.draw_organisation(rng)
    )


def _dictionary_word(rng: Random, state: State) -> str:
    words, weights = _words()[state]
    return words[bisect(weights, rng.random() * weights[-1])]


def _draw(rng: Random, choices: tuple[list[State], list[float]]) -> State:
    states, weights = choices
    return states[min(bisect(weights, rng.random() * weights[-1]), len(states) - 1)]


@cache
def _words() -> dict[State, tuple[list[str], list[float]]]:
    """Words by (S for one character, B for more; tag), with running weights."""
    found: dict[State, tuple[list[str], list[float]]] = {}
    for word, count, tag in gazetteer.dictionary():
        if count and not (tag == "ns" and len(word) > 8):
            words, weights = found.setdefault(("S" if len(word) == 1 else "B", tag), ([], []))
            words.append(word)
            weights.append(count**EASED)
    return {state: (words, list(accumulate(weights))) for state, (words, weights) in found.items()}


def _known(state: State) -> bool:
    return state[1] in PERSON_TAGS | {"x", "w", "ns", "nt"} or state in _words()


@cache
def _starts() -> tuple[list[State], list[float]]:
    from jieba.posseg.prob_start import P

    chosen = {state: exp(value) for state, value in P.items() if value > -1e9 and _known(state)}
    return list(chosen), list(accumulate(chosen.values()))


@cache
def _followers() -> dict[State, tuple[list[State], list[float]]]:
    """What begins after a word of (S or B, tag): the tagger's steps out of its last state."""
    from jieba.posseg.prob_trans import P

    found = {}
    for shape, tag in {(s, t) for s, t in P if s in "SE"}:
        steps = {to: exp(value) for to, value in P[shape, tag].items()
                 if to[0] in "SB" and value > -1e9 and _known(to)}  # fmt: skip
        found["S" if shape == "S" else "B", tag] = (
            (list(steps), list(accumulate(steps.values()))) if steps else _starts()
        )
    return found
