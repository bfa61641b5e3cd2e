"""Sentences of English agreements that say the value of a field known by its name alone."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.names.kinds_of_names import kind_of_names
from featpipe.extraction.names.synonyms import heads_of, names_same
from featpipe.extraction.scoring.field_fitting import fit_field
from featpipe.extraction.scoring.pretrained import kind_of_values, shipped_fields
from featpipe.extraction.statements.english_named import find_named
from featpipe.extraction.statements.english_statements import _TOLD, find_english
from featpipe.extraction.values.text import fold_width
from featpipe.extraction.values.values import find_values

SERVICES = """SERVICES AGREEMENT

This Agreement is entered into between Alder Labs, Inc. ("Client") and Pine Works LLC ("Provider").

1. Fees. Client shall pay a monthly fee of $3,200, payable within thirty (30) days after receipt \
of an invoice. Overdue sums bear interest at a rate of 1.25% per month.
2. Term. The term of this Agreement is two years, and it renews for successive periods of one year.
3. Termination. Either party may terminate it upon ninety (90) days' prior written notice.
4. Confidential Information shall be kept secret for a period of five (5) years.
5. The liability of Provider under this Agreement shall not exceed $80,000.
6. This Agreement is governed by and construed in accordance with the laws of the State of Nevada, \
without regard to conflicts of law. The courts of Clark County shall have exclusive jurisdiction.
"""
LEASE = """LEASE

The Landlord lets to the Tenant the premises located at 9 Birch Road, Unit 4, Salem (the "Unit").
The term of this Lease shall be twelve (12) months, commencing on May 1, 2023 and ending on \
April 30, 2024. Rent is $1,400.00 per month. The late fee is $60. Tenant shall pay the sum of \
$2,100 as a security deposit by April 15, 2023 (the "Payment Date").
"""
LOAN = """LOAN AGREEMENT

The Bank lends the principal sum of Ninety Thousand Dollars ($90,000.00) at interest at a fixed \
rate of 5.75% per annum, repayable in monthly installments of $1,730.15. The laws of Ohio govern it.
"""
EMPLOYMENT = """EMPLOYMENT CONTRACT

You are employed as a Site Manager and your employment will begin on 3 June 2024. Your salary is
£41,000 per annum for 35 hours per week. You are entitled to 28 days' paid holiday. The first three
months of your employment are a probation period. This contract is governed by English law.
"""
CONSULTING = """CONSULTING AGREEMENT

1. The Consultant shall carry out the programme known as the Harbour Light Survey (the "Project").
2. This Agreement takes effect on 3 May 2024 and shall continue for a period of nine (9) months.
3. Any sum not paid within 30 days shall bear interest at 4% per annum above the base rate of the
Northern Bank. The Client shall settle each account 45 days after delivery.
4. The Consultant shall assign Dr Ada Brook and Mr Tom Field to lead the services.
"""


def likeliest(text: str, name: str) -> str:
    """The likeliest value of a field of which the name alone is known."""
    features = features_of(text)
    kind = kind_of_values([], (name,), shipped_fields())
    model = fit_field([], kind, (name,), pretrained=shipped_fields().find((name,), kind))
    scored = model.score(features)
    chosen = model.choose(scored)
    return text[slice(*scored.groups[chosen[0]].spans[0])] if chosen else ""


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (SERVICES, "monthly fee", "$3,200"),
        (SERVICES, "term", "two years"),
        (SERVICES, "governing law", "State of Nevada"),
        (SERVICES, "notice period", "ninety (90) days"),
        (SERVICES, "confidentiality period", "five (5) years"),
        (SERVICES, "liability cap", "$80,000"),
        (SERVICES, "interest rate", "1.25%"),
        (SERVICES, "payment terms", "within thirty (30) days after receipt of an invoice"),
        (SERVICES, "jurisdiction", "courts of Clark County"),
        (LEASE, "premises", "9 Birch Road, Unit 4, Salem"),
        (LEASE, "term", "twelve (12) months"),
        (LEASE, "start date", "May 1, 2023"),
        (LEASE, "end date", "April 30, 2024"),
        (LEASE, "rent", "$1,400.00"),
        (LEASE, "security deposit", "$2,100"),
        (LEASE, "payment date", "April 15, 2023"),
        (LOAN, "principal amount", "$90,000.00"),
        (LOAN, "interest rate", "5.75%"),
        (LOAN, "monthly payment", "$1,730.15"),
        (LOAN, "governing law", "Ohio"),
        (CONSULTING, "project name", "Harbour Light Survey"),
        (CONSULTING, "term", "nine (9) months"),
        (
            CONSULTING,
            "late payment interest",
            "4% per annum above the base rate of the\nNorthern Bank",
        ),
        (CONSULTING, "payment terms", "45 days after delivery"),
        (EMPLOYMENT, "position", "Site Manager"),
        (EMPLOYMENT, "start date", "3 June 2024"),
        (EMPLOYMENT, "salary", "£41,000"),
        (EMPLOYMENT, "working hours", "35 hours per week"),
        (EMPLOYMENT, "holiday entitlement", "28 days"),
        (EMPLOYMENT, "probation period", "three\nmonths"),
        (EMPLOYMENT, "governing law", "English law"),
    ],
)
def test_sentences_say_what_a_field_is(text: str, name: str, value: str) -> None:
    assert likeliest(text, name) == value


def test_everybody_who_is_assigned_is_of_the_staff() -> None:
    folded = fold_width(CONSULTING.lower())
    staff = [folded[a:b] for a, b, label in find_english(folded) if label == "keypersonnel"]
    assert staff == ["dr ada brook", "mr tom field"]


def test_instalments_are_spelled_in_two_ways() -> None:
    for text in ("monthly instalments of £1,800", "monthly installment of $900.00"):
        assert [text[a:b] for a, b, _ in find_english(text)] == [text.split(" of ")[1]]


PIECES = (
    "the laws of ohio", "this agreement is governed by", "california law applies", "notice", "may",
    "terminate upon ninety days' prior written", "late", "interest", "at a rate of 5%", "is due on",
    "june 3, 2024", "the loan", "for a term of two years", "from", "the agreement", "runs for",
    "begins on", "two years", "net 30 days", "no. 12  dated 3 june 2024", "known as", "the works",
    "remain in effect for", "within 30 days of receipt", "paid", "order no. ab-12", ".", ",", "\n",
    "you shall serve as", "clerk", "the place of jurisdiction", "vienna is the exclusive",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_statements_are_found_by_their_words_alone(pieces: list[str]) -> None:
    folded = " ".join(pieces)
    wanted = {
        (*found.span(group), label)
        for told in _TOLD
        for found in told.pattern.finditer(folded)
        for group, label in told.labels.items()
        if found[group] is not None
    }
    assert {*find_english(folded)} == wanted


def test_a_day_behind_a_number_is_that_of_the_document() -> None:
    folded = "proforma no. sb/117     dated 30-aug-2024\norder no. 8 dated 12-aug-2024"
    days = [folded[a:b] for a, b, label in find_english(folded) if label == "issuedate"]
    assert days == ["30-aug-2024"]


def test_a_word_before_the_name_makes_it_another_thing() -> None:
    folded = fold_width("A late fee of $60 applies, and a termination fee of $90.")
    assert not [*find_named(folded, "fee")]
    [span] = find_named(folded, "late fee")
    assert folded[slice(*span)] == "$60"


def test_a_value_ends_before_the_comma_behind_it() -> None:
    folded = fold_width("a price of $4,500, payable at once")
    assert [folded[slice(*span)] for span in find_named(folded, "price")] == ["$4,500"]


@pytest.mark.parametrize(
    "piece",
    ["confidential ", "fee as a fee ", "premises located at ", "jurisdiction of the courts of "],
)
def test_long_lines_are_read_once(piece: str) -> None:
    def seconds(n: int) -> float:
        begin = time.perf_counter()
        for found in (find_english(piece * n), find_named(piece * n, "fee")):
            assert len([*found]) < n
        return time.perf_counter() - begin

    assert seconds(40_000) < 30 * max(seconds(4_000), 0.01)


INVOICE = """Corner Press

INVOICE

Invoice No. 20817            Invoice date: 4 June 2024
Due Date: 4 July 2024
Bill To: Old Mill School, Inc.
Ship To: Old Mill School, Hall 2, 5 Weir Street, Ely

Item          Qty    Price     Total
1 Posters     20     £2.00     £40.00
2 Flyers      10     £1.00     £10.00

VAT @ 20%      £10.00
Grand Total    £60.00
"""
PARTIES = """NOTE

The undersigned, Ivor Lund ("Borrower"), owes a sum. It was agreed between Hill Bank, N.A. (the
"Lender") and others, and between Mara Quill (hereinafter called the "Landlord") and
Ben Osei and Joy Osei (hereinafter called the "Tenant"), and by Fen Tools Ltd ("Disclosing Party").
"""
SUBLEASE = """SUBLEASE

By this Sublease, dated August 2, 2021, Meridian Group LLC ("Sublessor") leases to Fable Press, Inc.
("Sublessee") a shop. Interest Rate: 3.1%
If a sum is not paid, default interest at 5% is payable. Invoices are due within thirty days of the
invoice date. The contract will run for three years. The laws of Scotland apply to it.
Period: August 15, 2021 through July 31, 2024
"""
ORDER = """PURCHASE ORDER

Supplier: Northwick Bolts Co.
Supplier Address: 9 Dock Way, Hull, HU1 2AB
Payment Terms: Net 30
Project: New hall
Buyer: Calder Homes, Inc.
Contact Name: Ana Ruiz
"""


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (INVOICE, "invoice number", "20817"),
        (INVOICE, "date", "4 June 2024"),
        (INVOICE, "customer", "Old Mill School, Inc."),
        (INVOICE, "ship to", "Old Mill School, Hall 2, 5 Weir Street, Ely"),
        (INVOICE, "VAT", "£10.00"),
        (INVOICE, "total", "£60.00"),
        (PARTIES, "borrower", "Ivor Lund"),
        (PARTIES, "lender", "Hill Bank, N.A."),
        (PARTIES, "landlord", "Mara Quill"),
        (PARTIES, "tenant", "Ben Osei and Joy Osei"),
        (PARTIES, "disclosing party", "Fen Tools Ltd"),
        (ORDER, "supplier", "Northwick Bolts Co."),  # whose first letters are no "No."
        (ORDER, "supplier address", "9 Dock Way, Hull, HU1 2AB"),
        (ORDER, "buyer", "Calder Homes, Inc."),
        (ORDER, "term", ""),
        (SUBLEASE, "sublessor", "Meridian Group LLC"),
        (SUBLEASE, "sublessee", "Fable Press, Inc."),
        (SUBLEASE, "interest rate", "3.1%"),
        (SUBLEASE, "payment terms", "within thirty days of the\ninvoice date"),
        (SUBLEASE, "period", "August 15, 2021 through July 31, 2024"),
        (SUBLEASE, "term", "three years"),
        (SUBLEASE, "governing law", "Scotland"),
        (ORDER, "product name", ""),
    ],
)
def test_labels_and_parties(text: str, name: str, value: str) -> None:
    assert likeliest(text, name) == value


def test_an_english_label_ends_with_what_it_means() -> None:
    assert names_same("totalamount", "amount")
    assert names_same("invoiceno.", "invoice")
    assert not names_same("supplieraddress", "supplier")
    assert not names_same("subtotal", "total")
    assert not names_same("goodstotal", "total")
    assert not names_same("paymentterms", "term")
    assert not names_same("duedate", "date")
    assert names_same("invoicedate", "date")
    assert heads_of(["project name"], ["name"]) == []


def test_an_amount_ends_before_the_number_of_the_next_clause() -> None:
    for text in ("exceed $100,000.\n7. Law", "is $75. 5. Next"):
        [found] = find_values(text, "money")
        assert text[found.start : found.end] in {"$100,000", "$75"}
    [found] = find_values("$1 . 5", "money")
    assert found.end == len("$1 . 5")


def test_a_name_of_an_amount_or_a_share_tells_its_type() -> None:
    assert kind_of_names(["monthly fee"]) == "money"
    assert kind_of_names(["contract value"]) == "money"
    assert kind_of_names(["interest rate"]) == "percent"
    # A synonym of a pretrained field of clauses is no clause.
    assert kind_of_values([], ("end date",), shipped_fields()) == "date"
