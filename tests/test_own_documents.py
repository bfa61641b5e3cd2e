"""The documents under data/ hold the values that `expected.jsonl` lists for them."""

from __future__ import annotations

import json
import re
import zipfile
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ROOT / "data" / "documents"
EXPECTED = ROOT / "data" / "templates" / "expected.jsonl"
ENTRIES = [json.loads(line) for line in EXPECTED.read_text(encoding="utf-8").splitlines()]
DIGITS = {digit: value for value, digit in enumerate("零壹贰叁肆伍陆柒捌玖")}
UNITS = {"拾": 10, "佰": 100, "仟": 1000}


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def read_text(name: str) -> str:
    """What any loader should find in the file, by the standard library alone."""
    data = (DOCUMENTS / name).read_bytes()
    if name.endswith(".docx"):
        with zipfile.ZipFile(DOCUMENTS / name) as archive:
            xml = archive.read("word/document.xml").decode()
        data = re.sub("</w:p>", "\n", xml).encode()
    if name.endswith((".html", ".docx")):
        parser = _Text()
        parser.feed(data.decode())
        return "".join(parser.parts)
    return data.decode("gb18030" if "gb18030" in name else "utf-8")


def read_capitals(text: str) -> Decimal:
    """Amount in capital numerals -> yuan, digit by digit (independent of how it was written)."""
    whole, _, rest = text.partition("元")
    total = section = digit = 0
    for char in whole:
        if char in DIGITS:
            digit = DIGITS[char]
        elif char in UNITS:
            section, digit = section + digit * UNITS[char], 0
        elif char == "万":
            total, section, digit = total + (section + digit) * 10**4, 0, 0
        else:
            total, section, digit = (total + section + digit) * 10**8, 0, 0
    jiao = re.search(r"(.)角", rest)
    fen = re.search(r"(.)分", rest)
    cents = 10 * (DIGITS[jiao[1]] if jiao else 0) + (DIGITS[fen[1]] if fen else 0)
    return Decimal(total + section + digit) + Decimal(cents) / 100


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e["document"])
def test_every_expected_value_occurs_in_its_document(entry: dict) -> None:
    text = read_text(entry["document"])
    values = [v for values in entry["fields"].values() for v in values]
    assert len(values) >= 3
    assert [v for v in values if v not in text] == []
    for record in entry["records"]:
        assert all(value in entry["fields"][name] for name, value in record.items())


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e["document"].endswith(".txt")], ids=lambda e: e["document"]
)
def test_spans_point_at_the_characters_of_their_value(entry: dict) -> None:
    text = read_text(entry["document"])
    assert set(entry["spans"]) == set(entry["fields"])
    for name, places in entry["spans"].items():
        assert sorted(places) == sorted(entry["fields"][name])
        for value, spans in places.items():
            assert spans
            assert {text[start:end] for start, end in spans} == {value}


def test_there_are_enough_documents_of_every_kind_and_length() -> None:
    names = [entry["document"] for entry in ENTRIES]
    lengths = [len(read_text(name)) for name in names]
    assert len(names) == len(set(names)) >= 40
    assert {Path(name).suffix for name in names} == {".txt", ".html", ".md", ".docx"}
    assert len({entry["template"] for entry in ENTRIES}) >= 10
    assert 100 <= min(lengths) <= 200
    assert 15_000 <= max(lengths) <= 20_000
    assert sum(len(entry["records"]) > 1 for entry in ENTRIES) >= 8


def test_documents_share_sentences_as_real_ones_do() -> None:
    seen: dict[str, set[str]] = {}
    for entry in ENTRIES:
        for sentence in re.split(r"[。；\n]", read_text(entry["document"])):
            if len(sentence.strip()) >= 12:
                seen.setdefault(sentence.strip(), set()).add(entry["document"])
    shared = [sentence for sentence, documents in seen.items() if len(documents) > 1]
    assert len(shared) >= 60
    assert len(shared) < len(seen) / 2


def test_one_document_is_not_utf_8() -> None:
    data = (DOCUMENTS / "contracts" / "purchase_gb18030.txt").read_bytes()
    with pytest.raises(UnicodeDecodeError):
        data.decode("utf-8")
    assert read_text("contracts/purchase_gb18030.txt").count("合同") > 10


def test_capital_amounts_say_the_same_as_the_digits_beside_them() -> None:
    pairs = []
    for entry in ENTRIES:
        text = read_text(entry["document"])
        pairs += re.findall(
            r"([\d,]+\.\d\d)元[（，](?:大写：?)?(?:人民币)?([零壹贰叁肆伍陆柒捌玖拾佰仟万亿元角分]+整?)[），。]",
            text,
        )
    assert len(pairs) >= 8
    for digits, capitals in pairs:
        assert read_capitals(capitals) == Decimal(digits.replace(",", "")), capitals


@pytest.mark.parametrize("name", [n["document"] for n in ENTRIES if n["document"].endswith("docx")])
def test_word_files_open_with_the_usual_library(name: str) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document(str(DOCUMENTS / name))
    entry = next(e for e in ENTRIES if e["document"] == name)
    text = "\n".join(p.text for p in document.paragraphs)
    for table in document.tables:
        text += "\n".join(cell.text for row in table.rows for cell in row.cells)
    assert [v for values in entry["fields"].values() for v in values if v not in text] == []
    assert document.paragraphs[0].style.name == "Title"
