"""Encodings of text files: read rightly, or the doubt is said."""

from __future__ import annotations

import codecs

import pytest

from featpipe.documents import load_document
from featpipe.documents.decode import decode
from featpipe.errors import UnreadableDocument

SIMPLIFIED = "本公司及董事会保证公告内容的真实、准确、完整，不存在虚假记载。\n甲方：国家电网公司\n"
TRADITIONAL = "本公司及董事會保證公告內容的真實、準確、完整，不存在虛假記載。\n甲方：臺灣電力公司\n"
LATIN = (
    "Die schöne Frau sagte: „Das war köstlich!“ L'été était très chaud. El niño comió. 15,50 €\n"
)
JAPANESE = "本契約は、甲乙双方が署名した日から効力を生じるものとする。\n"
KOREAN = "본 계약은 양 당사자가 서명한 날로부터 효력이 발생한다.\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SIMPLIFIED, "utf-8"),
        (SIMPLIFIED, "utf-8-sig"),
        (SIMPLIFIED, "gb18030"),
        (SIMPLIFIED, "gbk"),
        (TRADITIONAL, "big5"),
        (TRADITIONAL, "gb18030"),
        (LATIN, "cp1252"),
        (JAPANESE, "cp932"),
        (KOREAN, "cp949"),
        (SIMPLIFIED, "utf-16"),
        (SIMPLIFIED, "utf-32"),
        (SIMPLIFIED + "Party A (the Buyer) 2024-01-02", "utf-16-le"),
        (SIMPLIFIED + "Party A (the Buyer) 2024-01-02", "utf-16-be"),
        ("Plain English.\nSecond line.", "utf-16-le"),
        ("Plain English.\nSecond line.", "utf-16-be"),
        (SIMPLIFIED, "utf-32-le"),
        (SIMPLIFIED, "utf-32-be"),
        ("Plain English.", "ascii"),
    ],
)
def test_text_survives_its_encoding(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize("text", ["甲方：某某公司", "联通", "合同", "臺灣"])
@pytest.mark.parametrize("encoding", ["gb18030", "big5hkscs"])
def test_a_short_text_is_right_or_said_to_be_doubtful(text: str, encoding: str) -> None:
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        pytest.skip("not in this encoding")
    decoded = decode(data)
    assert decoded.text == text or any("doubt" in note for note in decoded.notes)


def test_a_declaration_decides_where_bytes_do_not() -> None:
    data = "甲乙".encode("big5")
    assert decode(data, "big5").text == "甲乙"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SIMPLIFIED, "hz-gb-2312"),
        (JAPANESE, "iso-2022-jp"),
        (KOREAN, "iso-2022-kr"),
        (SIMPLIFIED, "utf-7"),
    ],
)
def test_a_declared_encoding_of_seven_bits_is_followed(text: str, encoding: str) -> None:
    codec = encoding.removesuffix("-gb-2312")
    assert decode(text.encode(codec), encoding).text == text
    assert decode(b"Plain ~ English.", encoding).encoding == "utf-8"


def test_a_false_declaration_does_not_win_over_utf8() -> None:
    assert decode(SIMPLIFIED.encode(), "gb2312").text == SIMPLIFIED


def test_a_byte_or_two_of_damage_is_replaced_and_counted() -> None:
    data = bytearray((SIMPLIFIED * 5).encode("gb18030"))
    data[20:21] = b"\xff"
    decoded = decode(bytes(data))
    assert decoded.encoding == "gb18030"
    assert any("no gb18030" in note for note in decoded.notes)


@pytest.mark.parametrize("text", [SIMPLIFIED * 20, LATIN * 20, KOREAN * 2])
@pytest.mark.parametrize("declared", [None, "utf-8", "gb2312"])
def test_utf8_with_a_damaged_byte_is_read_as_utf8(text: str, declared: str | None) -> None:
    data = text.encode()
    for at in range(1, 90):
        for damaged in (data[:at] + data[at + 1 :], data[:at] + b"\xff" + data[at:]):
            decoded = decode(damaged, declared)
            assert decoded.encoding == "utf-8"
            assert decoded.text.endswith(text[90:])
            assert (decoded.notes != ()) == ("\ufffd" in decoded.text)


def test_a_file_cut_inside_a_character_is_read_up_to_there() -> None:
    decoded = decode(SIMPLIFIED.encode() + "公".encode()[:2])
    assert decoded.encoding == "utf-8"
    assert decoded.text == SIMPLIFIED + "\ufffd"
    assert "cut off inside its last character" in decoded.notes


@pytest.mark.parametrize("data", [bytes(range(256)) * 20, b"\x00\x01\x02\x03" * 400])
def test_binary_data_is_not_read_as_text(data: bytes) -> None:
    with pytest.raises(UnreadableDocument):
        decode(data)


def test_a_utf16_mark_without_text_is_empty_and_not_a_fault() -> None:
    assert decode(codecs.BOM_UTF16_LE).text == ""


def test_the_encoding_is_part_of_the_document() -> None:
    document = load_document(SIMPLIFIED.encode("gbk"), source="a.txt")
    assert document.encoding == "gb18030"
    assert document.text.startswith("本公司及董事会")


@pytest.mark.parametrize("line", ["2026-01-01 INFO ok\n", "a,b,1234567\n"])
@pytest.mark.parametrize("encoding", ["gb18030", "big5hkscs"])
@pytest.mark.parametrize("end", ["", "x"])
def test_an_encoding_is_told_by_bytes_behind_a_long_head_of_ascii(
    line: str, encoding: str, end: str
) -> None:
    chinese = TRADITIONAL if encoding.startswith("big5") else SIMPLIFIED
    for n_lines in (2_000, 4_000, 7_000):  # across the sample's length
        text = line * n_lines + chinese + end
        assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize("shares", [(1, 1), (1, 20), (20, 1)])
def test_lines_of_two_encodings_are_read_each_as_what_it_is(shares: tuple[int, int]) -> None:
    lines = [SIMPLIFIED.replace("\n", "")] * shares[0]
    others = ["甲方：北京某某科技有限公司，乙方：李四。"] * shares[1]
    data = b"\n".join([*(x.encode() for x in lines), b"ASCII", *(x.encode("gbk") for x in others)])
    decoded = decode(data)
    assert decoded.text.split("\n") == [*lines, "ASCII", *others]
    assert decoded.notes == ("lines in utf-8 and lines in gb18030: each is read as what it is",)
