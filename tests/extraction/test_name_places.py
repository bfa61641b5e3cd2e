"""The names of fields in documents, however they are spaced, and looked for in the quick way."""

from __future__ import annotations

import pytest

from featpipe.extraction.names.name_places import places_of_name, values_behind

_ENGLISH = "The landlord's n a m e is Ann. (Tenant) name: Bob. current rents, Monthly  Rent: $5"


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        (_ENGLISH.lower(), "monthly rent", ["monthly  rent"]),
        (_ENGLISH.lower(), "tenant name", ["tenant) name"]),
        (_ENGLISH.lower(), "name", ["name"]),
        (_ENGLISH.lower(), "guarantor", []),
        ("月租金 rent: 5", "rent", ["rent"]),
        ("中标(成交)金额、涉案的金额", "中标金额", ["中标(成交)金额"]),
        ("甲　　方: 张三", "甲方", ["甲　　方"]),
    ],
)
def test_names_are_found_however_they_are_spaced(text: str, name: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in places_of_name(text, name)] == found


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("no. particulars\n2   limit sanctioned   rs. 7.80 crore\n", "limit sanctioned", "rs. 7"),
        ("tenant name: bob ltd\n", "tenant name", "bob l"),
        ("company: yes ltd\n", "company name", None),
        ("the lease period: two years\n", "period", None),
    ],
)  # fmt: skip
def test_values_stand_behind_names(text: str, name: str, value: str | None) -> None:
    found = [text[at : at + 5] for at, _ in values_behind(text, name)]
    assert found == ([] if value is None else [value])
