"""What stands inside values, as evidence: the marks of amounts, and the words."""

from __future__ import annotations

from datetime import date

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.amount_marks import AMOUNT_MARKS
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.marks import N_MARKS, log_odds_of_marks
from featpipe.extraction.scoring.similarity import words_of


def _amounts(text: str) -> dict[str, tuple[int, ...]]:
    """The marks of each amount by its text."""
    return _marks(text, slice(len(AMOUNT_MARKS)))


def _marks(text: str, part: slice) -> dict[str, tuple[int, ...]]:
    features = features_of(text)
    tokens, found = features.tokens, features.marks
    spans = zip(tokens.start[found.first], tokens.end[found.last - 1], strict=True)
    marks = map(tuple, found.marks[part].T.tolist())
    return {text[a:b]: own for (a, b), own in zip(spans, marks, strict=True) if any(own)}


def test_marks_of_a_receipt() -> None:
    marks = _amounts("milk 4.50\nbread 4.02\ntotal 8.52\n8.50\ncash 10.00\nchange 1.50\n8.50")
    # 4.50 + 4.02 = 8.52 stands behind both; 10.00 = 8.50 + 1.50 stands before the change.
    assert {text: own[:5] for text, own in marks.items()} == {
        "10.00": (1, 1 + 2, 1, 3, 1),
        "8.52": (2, 1 + 1, 1, 3, 3),
        "8.50": (3, 1, 1 + 1, 2, 2),
        "4.50": (4, 1, 1 + 1, 4, 1),
        "4.02": (5, 1, 1, 4, 1),
        "1.50": (5, 1, 1, 4, 1),
    }


def test_how_large_an_amount_is_counts_for_those_of_about_its_size() -> None:
    written = [("1.20", "31,440,000.00"), ("0.50", "20,960,000.00")]
    texts = [f"每股{price}元，共{total}元" for price, total in written]
    shares = []
    for text in texts:
        features = features_of(text)
        shares.append(features.marks.shares(features.marks.first[:1], features.marks.last[:1]))
    odds = log_odds_of_marks(shares)[sum(AMOUNT_MARKS[:-1]) : sum(AMOUNT_MARKS)]

    def size(text: str) -> float:
        [(_, *_, number)] = _amounts(text).values()
        return float(odds[number])

    assert size("0.80元") > size("8.00元") > size("800.00元")
    assert size("24,000,000.00元") < size("240.00元")
    assert size("0.00元") == size("9,000,000,000,000.00元") == 0.0


@given(st.lists(st.integers(1, 60), max_size=12))
def test_marks_say_what_comparing_all_amounts_says(hundredths: list[int]) -> None:
    written = [n / 100 for n in hundredths]
    marks = _amounts("\n".join(f"{amount:.2f}" for amount in written))
    values = sorted(set(hundredths))
    place = {value: hundredths.index(value) for value in values}
    triples = [(a + b, a, b) for a in values for b in values if a > b and a + b in values]
    repeated = [value for value in values if hundredths.count(value) > 1]
    for value in values:
        as_sum = {
            1 if place[s] > max(place[a], place[b]) else 2 for s, a, b in triples if s == value
        }
        as_larger = {1 if place[s] > place[a] else 2 for s, a, _ in triples if a == value}
        beside = 1 if not repeated else 2 if value == repeated[-1] else 3 + (value < repeated[-1])
        assert marks[f"{value / 100:.2f}"][1:4] == (1 + sum(as_sum), 1 + sum(as_larger), beside)


def test_what_is_no_amount() -> None:
    text = "2017.05.03 10/3 35.5% 1,2345 12 第3条 T-5.00 " + "9" * 40 + ".5"
    assert _amounts(text) == {}
    assert set(_amounts("3,000万元，共 5亿 rm 50")) == {"3,000万元", "5亿", "50"}


@given(text=st.text(st.sampled_from("0123456789.,%-: 万元\n"), max_size=40))
def test_an_amount_is_found_whatever_is_around_it(text: str) -> None:
    features = features_of(text)
    amounts = features.marks
    n = len(amounts.value)
    assert amounts.marks.shape == (len(N_MARKS), n)
    assert np.array_equal(amounts.numbers(amounts.first, amounts.last), np.arange(n))
    true, other = amounts.shares(amounts.first[:1], amounts.last[:1])
    assert true.sum() in (0.0, float(len(AMOUNT_MARKS)), float(len(N_MARKS) - len(AMOUNT_MARKS)))
    assert np.isfinite(log_odds_of_marks([(true, other)])).all()


def test_marks_that_samples_show_count_for_an_amount() -> None:
    features = features_of("1.00 2.00 9.00")
    amounts, tokens = features.marks, features.tokens
    odds = log_odds_of_marks([amounts.shares(*tokens.spans([(10, 14)]))] * 3)
    assert odds.shape == (sum(N_MARKS),)
    likeness = amounts.likeness(amounts.first, amounts.last, odds)
    assert likeness.argmax() == 2
    whole = np.array([0]), np.array([len(tokens)])
    assert amounts.likeness(*whole, odds) == 0.0  # three amounts are no amount


def _days(text: str) -> dict[str, tuple[int, ...]]:
    return _marks(text, slice(len(AMOUNT_MARKS), None))


def test_marks_of_dates() -> None:
    marks = _days(
        "登记日2024-06-20，除息日2024-06-21，大会2024年5月16日，2024年6月14日公告。2023年度，5月"
    )
    gap = {"none": 1, "a day": 2, "a week": 3, "a month": 4, "a year": 5}
    same = 6
    assert marks == {
        "2024年5月16日": (1, 4, gap["none"], gap["a month"], same - 3),
        "2024年6月14日": (2, 3, gap["a month"], gap["a week"], same),
        "2024-06-20": (3, 2, gap["a week"], gap["a day"], same + 2),
        "2024-06-21": (4, 1, gap["a day"], gap["none"], same + 2),
    }


@given(st.lists(st.dates(date(2000, 1, 1), date(2003, 12, 31)), max_size=8))
def test_dates_are_ranked_as_days_are(days: list[date]) -> None:
    marks = _days("\n".join(day.isoformat() for day in days))
    ordered = sorted(set(days))
    assert set(marks) == {day.isoformat() for day in days}
    for rank, day in enumerate(ordered):
        first, last, before, behind, from_last = marks[day.isoformat()]
        assert (first, last) == (min(rank, 4) + 1, min(len(ordered) - 1 - rank, 4) + 1)
        assert (before == 1) == (rank == 0)
        assert (behind == 1) == (day == ordered[-1])
        assert np.sign(from_last - 6) == np.sign((day - days[-1]).days)


def test_marks_that_samples_show_count_for_a_date() -> None:
    """The day of record is the day before that without dividend, whatever the words."""
    text = "公告日2024-06-03，记{}，息{}，付2024-06-28"
    shares = []
    for a, b in (("2024-06-20", "2024-06-21"), ("2024-06-13", "2024-06-14")):
        features = features_of(text.format(a, b))
        at = features.tokens.spans(
            [(features.page.text.index(a), features.page.text.index(a) + 10)]
        )
        shares.append(features.marks.shares(*at))
    found = features_of("2024-05-06；2024-05-16；2024-05-17；2024-05-31").marks
    likeness = found.likeness(found.first, found.last, log_odds_of_marks(shares))
    assert likeness.argmax() == 1
    assert not log_odds_of_marks(shares)[: sum(AMOUNT_MARKS)].any()


def test_no_text_has_no_amounts_and_dates() -> None:
    features = features_of("")
    assert features.marks.marks.shape == (len(N_MARKS), 0)
    assert not len(features.marks.value)


def test_words_inside_and_beside() -> None:
    features = features_of("shop A1 Park Road 7 tel 55")
    inside, beside = words_of(features, [(8, 19)])
    assert set(inside.tolist()) == set(features.words_inside[3:6].tolist())
    assert set(beside.tolist()) == set(features.words_inside[[0, 1, 2, 6, 7]].tolist())
    assert not len(words_of(features, ())[0])


def test_a_value_of_several_lines_ends_where_the_samples_do() -> None:
    """Lines of addresses hold words of addresses; the lines around them hold other ones."""
    receipt = "SHOP {}\n{}\nTEL : 03-{}912{}\nGST ID : {}7730\nCASH 5.00"
    texts = []
    for name, n, road, park, town in (
        ("ONE", 4, "BUKIT", "JAYA", "KLANG"),
        ("TWO", 5, "MERU", "INDAH", "IPOH"),
        ("THREE", 6, "SATU", "DESA", "JOHOR"),
        ("FOUR", 7, "DUA", "SENTOSA", "MELAKA"),
    ):
        address = f"NO. {n}, JALAN {road},\nTAMAN {park},\n{n}0{n}00 {town}."
        texts.append((receipt.format(name, address, n, n, n), address.replace("\n", " ")))
    samples = [sample_of(features_of(text), [value], "text") for text, value in texts]
    model = fit_field(samples, "text", ("address",))
    new = "SHOP FIVE\nNO. 8, JALAN LIMA,\nTAMAN RIA,\n80800 PENANG.\nTEL : 03-89128\nCASH 9.00"
    best = model.score(features_of(new)).groups[0]
    start, end = best.spans[0]
    assert new[start:end] == "NO. 8, JALAN LIMA,\nTAMAN RIA,\n80800 PENANG."
