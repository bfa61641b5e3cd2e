"""Labels side by side in a line, and the values below them."""

from __future__ import annotations

import pytest

from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.tables.labels_above import labels_above


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "CONSIGNEE                FORWARDING AGENT\n"
                "Northmoor Foods Ltd      Baltic Agencies GmbH\n"
                "14 Quay Street, Hull     Hafenstr. 3, Hamburg\n"
            ),
            {"Northmoor Foods Ltd": "CONSIGNEE", "Baltic Agencies GmbH": "FORWARDING AGENT"},
        ),
        (  # by what is seen: a Chinese character is as wide as two letters
            "发货人          收货人\nTarn Ltd        宏达公司\n",
            {"Tarn Ltd": "发货人", "宏达公司": "收货人"},
        ),
        ("CONSIGNEE      Tarn Ltd\nVESSEL         AURORA\n", {}),  # labels below each other
        ("JOHN SMITH     MARY JONES\n4 Mill Lane    9 High Street\n", {}),  # no label is known
        ("CONSIGNEE      AGENT\nNorthmoor Foods Ltd\n", {}),
    ],
)
def test_a_value_below_knows_its_label(text: str, expected: dict[str, str]) -> None:
    found = {text[one.start : one.end]: one.label for one in labels_above(text, ())}
    assert found == expected


def test_the_page_has_them_as_headers() -> None:
    page = page_of_text(
        "SHIPPER            PORT OF LOADING\nTarn Ltd           Hull, UK\n\nText.\n"
    )
    assert {(one.label, page.text[one.start : one.end]) for one in page.headers} == {
        ("SHIPPER", "Tarn Ltd"),
        ("PORT OF LOADING", "Hull, UK"),
    }
