"""Collections of other shapes than any that was measured: resumes, invoices, agreements, reports.

Nothing is told but names of fields and a few samples. Every collection is made by chance from a
seed, so the same documents are met in every run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.field_model import FieldModel

    Made = tuple[str, dict[str, str]]

FIRST = ("Alice", "Robert", "Maria", "Tomas", "Helen", "Peter", "Nadia", "Oscar", "Ingrid", "Louis")
LAST = ("Brandt", "Okafor", "Silva", "Novak", "Keller", "Marsh", "Ito", "Larsen", "Duval", "Pohl")
FIRMS = ("Northwind Logistics", "Blue Harbor Foods", "Vector Optics", "Granite Mills",
         "Elm Street Labs", "Solway Marine", "Tallis Paper", "Kestrel Data")  # fmt: skip
CITIES = ("Leeds", "Porto", "Gdansk", "Malmo", "Turin", "Ghent", "Basel", "Cork")
SKILLS = ("welding", "bookkeeping", "network design", "nursing", "logistics planning", "carpentry")
MONTHS = ("January", "March", "April", "June", "August", "October", "December")
WARDS = ("心内科", "骨科", "呼吸科", "神经外科", "普外科", "儿科")
ILLS = ("急性阑尾炎", "肺部感染", "腰椎间盘突出", "高血压病2级", "胆囊结石", "股骨颈骨折")
SURNAMES, GIVEN = "王李张刘陈杨黄赵吴周", ("建国", "秀英", "晓明", "丽", "志强", "婷婷", "磊")


def resume(chance: random.Random) -> Made:
    """Labels and free lines, in changing order."""
    first = chance.choice(FIRST)
    name = f"{first} {chance.choice(LAST)}"
    mail = f"{first.lower()}{chance.randint(1, 99)}@post.example"
    employer, other = chance.sample(FIRMS, 2)
    years = f"{chance.randint(2012, 2019)}"
    work = f"{years} - present  {chance.choice(('Clerk', 'Engineer'))}, {employer}"
    parts = [
        f"Email: {mail}\nPhone: +44 20 7946 0{chance.randint(100, 999)}",
        f"Experience\n{work}\n{int(years) - 4} - {years}  Assistant, {other}",
        f"Skills\n{', '.join(chance.sample(SKILLS, 3))}",
    ]
    chance.shuffle(parts)
    text = f"{name}\n{chance.choice(CITIES)}\n\n" + "\n\n".join(parts) + "\n"
    return text, {"candidate": name, "email": mail, "current employer": employer}


def invoice(chance: random.Random) -> Made:
    """Rows of numbers, of which one counts."""
    seller, buyer = chance.sample(FIRMS, 2)
    prices = [chance.randint(20, 900) + 0.5 for _ in range(chance.randint(2, 5))]
    net = sum(prices)
    number = f"INV-{chance.randint(2018, 2024)}-{chance.randint(1000, 9999)}"
    rows = "\n".join(f"{chance.choice(SKILLS)}\t1\t{price:,.2f}" for price in prices)
    text = (
        f"{seller} Ltd\nINVOICE\nInvoice no. {number}\nBill to: {buyer} Inc\n"
        f"Date: {chance.randint(1, 28)} {chance.choice(MONTHS)} 2023\n\nItem\tQty\tPrice\n{rows}\n"
        f"Subtotal\t{net:,.2f}\nVAT 20%\t{net * 0.2:,.2f}\nAmount due\t{net * 1.2:,.2f}\n"
    )
    return text, {
        "invoice number": number,
        "seller": f"{seller} Ltd",
        "buyer": f"{buyer} Inc",
        "total": f"{net * 1.2:,.2f}",
    }


def agreement(chance: random.Random) -> Made:
    """Numbered clauses, two of which are wanted whole."""
    first, second = (f"{firm} Inc." for firm in chance.sample(FIRMS, 2))
    day = f"{chance.choice(MONTHS)} {chance.randint(1, 28)}, 2021"
    state = chance.choice(("Delaware", "Ohio", "Nevada", "Texas"))
    governed = f"This Agreement shall be governed by the laws of the State of {state}"
    govern = f"The laws of the State of {state} govern this Agreement and every dispute"
    law = chance.choice(
        (
            f"{governed}, without regard to its rules on conflicts of law.",
            f"{govern} that arises out of it or in connection with it.",
        )
    )
    months = chance.choice(("twelve", "six", "three"))
    limit = (
        f"The liability of either party under this Agreement is limited to the fees paid in the"
        f" {months} months before the claim; this does not hold for wilful acts."
    )
    others = [
        "Payment. Invoices are due thirty days after receipt and bear interest after that.",
        "Notices. Notices are given in writing to the addresses stated on the first page.",
        "Confidentiality. Each party keeps secret what it learns of the business of the other.",
        f"Governing Law. {law}",
        f"Limitation of Liability. {limit}",
    ]
    chance.shuffle(others)
    clauses = "\n\n".join(f"{n}. {clause}" for n, clause in enumerate(others, 2))
    text = (
        f"SERVICES AGREEMENT\n\nThis Services Agreement is entered into as of {day} by and between"
        f" {first} and {second}\n\n1. Services. The supplier renders the services of Annex A.\n\n"
        f"{clauses}\n\nSigned on behalf of the parties.\n"
    )
    return text, {"Agreement Date": day, "Governing Law": law, "Cap On Liability": limit}


def report(chance: random.Random) -> Made:
    """A discharge note: Chinese labels, several dates, numbers with units."""
    patient = chance.choice(SURNAMES) + chance.choice(GIVEN)
    doctor = chance.choice(SURNAMES) + chance.choice(GIVEN)
    ill, ward = chance.choice(ILLS), chance.choice(WARDS)
    month, first = chance.randint(1, 12), chance.randint(1, 14)
    days = chance.randint(3, 12)
    number = f"{chance.randint(100000, 999999)}"
    out = f"2022年{month}月{first + days}日"
    text = (
        f"出院小结\n科室：{ward}  住院号：{number}\n姓名：{patient}，性别{chance.choice('男女')}，"
        f"{chance.randint(20, 80)}岁。\n患者于2022年{month}月{first}日入院，{out}出院，"
        f"共住院{days}天。\n入院查体：体温{chance.randint(36, 39)}.{chance.randint(0, 9)}℃，"
        f"脉搏{chance.randint(60, 110)}次/分。\n出院诊断：{ill}。\n"
        f"出院医嘱：注意休息，{chance.randint(1, 4)}周后复查。\n主治医师：{doctor}\n"
    )
    return text, {"住院号": number, "患者姓名": patient, "出院诊断": ill, "出院日期": out}


@dataclass(frozen=True)
class Collection:
    """How its documents are made, and the least share of values found with 1, 5 and 20 samples."""

    make: Callable[[random.Random], Made]
    least: tuple[float, float, float]


COLLECTIONS = {
    "resume": Collection(resume, (0.6, 0.8, 0.85)),
    "invoice": Collection(invoice, (0.6, 0.8, 0.85)),
    "agreement": Collection(agreement, (0.6, 0.8, 0.85)),
    "report": Collection(report, (0.6, 0.8, 0.85)),
}
COUNTS = (1, 5, 20)
N_TEST = 15


@cache
def made(name: str, seed: int) -> tuple[PageFeatures, dict[str, str]]:
    text, values = COLLECTIONS[name].make(random.Random(f"{name} {seed}"))  # noqa: S311  # texts
    return features_of(text, name=f"{name} {seed}"), values


def learn(name: str, field: str, n_samples: int) -> FieldModel:
    samples = [made(name, seed) for seed in range(n_samples)]
    kind = infer_type([(features, values[field]) for features, values in samples])
    return fit_field(
        [sample_of(features, [values[field]], kind) for features, values in samples], kind, (field,)
    )


def micro_f1(name: str, n_samples: int) -> float:
    """Over all fields of documents that are no samples."""
    n_right = n_given = n_wanted = 0
    for field in made(name, 0)[1]:
        model = learn(name, field, n_samples)
        for seed in range(1000, 1000 + N_TEST):
            features, values = made(name, seed)
            scored = model.score(features)
            found = [scored.groups[number].value for number in model.choose(scored)]
            wanted = read_value(values[field], model.kind)
            n_right += any(wanted.means(one) for one in found)
            n_given += len(found)
            n_wanted += 1
    return 2 * n_right / (n_given + n_wanted)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_other_collections_are_learned_and_more_samples_make_nothing_worse(name: str) -> None:
    scores = [micro_f1(name, n) for n in COUNTS]
    assert all(
        score >= least for score, least in zip(scores, COLLECTIONS[name].least, strict=True)
    ), scores
    assert scores == sorted(scores) or min(scores[1:]) >= scores[0] - 0.02, scores
    assert scores[-1] >= max(scores) - 0.02, scores


def test_a_clause_of_several_sentences_is_a_candidate_without_its_number_and_name() -> None:
    wanted = "Neither party may assign this Agreement. An assignment without consent is void."
    features = features_of(
        f"1. Term. One year.\n\n2.1 Assignment. {wanted} Notices are in writing.\n"
    )
    samples = [sample_of(features, [wanted], "clause")]
    new = features_of(
        "7. Cost. None.\n\n8.4 Assignment. Nobody may assign this Agreement to others. Any attempt"
        " is void at once. Otherwise it binds successors.\n"
    )
    scored = fit_field(samples, "clause", ("assignment",)).score(new)
    start, end = new.tokens.start[scored.found.first], new.tokens.end[scored.found.last - 1]
    texts = {new.page.text[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)}
    assert "Nobody may assign this Agreement to others. Any attempt is void at once." in texts
