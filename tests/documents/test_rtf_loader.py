r"""Rich Text: Chinese in every way that writers put it, tables, and what is no text."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from featpipe.documents import Document, load_document
from featpipe.errors import DocumentError, DocumentTooLarge, EmptyDocument, UnreadableDocument


def escaped(text: str, encoding: str = "gbk") -> str:
    return "".join(rf"\'{byte:02x}" for byte in text.encode(encoding))


def unicode_escaped(text: str, substitute: str = "?") -> str:
    raw = text.encode("utf-16-le")
    units = [int.from_bytes(raw[at : at + 2], "little") for at in range(0, len(raw), 2)]
    return "".join(rf"\u{unit - 65536 if unit > 32767 else unit}{substitute}" for unit in units)


def read(rtf: str) -> Document:
    return load_document(rtf.encode("latin-1"), source="合同.rtf")


FONTS = (
    r"{\fonttbl{\f0\froman\fcharset0 Times;}{\f1\fnil\fcharset134 "
    + escaped("宋体")
    + r";}{\f2\fnil\fcharset204 Arial;}}"
)

SIGNS = (
    r"{\rtf1\ansi{\fonttbl{\f0 Arial;}{\f1\fcharset2{\*\panose 05}Wingdings;}"
    r"\f2\fcharset2 Wingdings 2;}"
)


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (r"{\rtf1\ansi\ansicpg936 " + escaped("甲方：北京天地") + "}", "甲方：北京天地"),
        (r"{\rtf1\ansi\ansicpg936 " + escaped("甲")[:4] + "\r\n" + escaped("甲")[4:] + "}", "甲"),
        (r"{\rtf1\ansi\ansicpg936 \'81@\'81\\}", "丂乗"),
        (r"{\rtf1\ansi\ansicpg1252\deff0" + FONTS + r"\f1 " + escaped("甲") + r"\f0 caf\'e9}",
         "甲café"),
        (r"{\rtf1\ansi\ansicpg1252\deff1" + FONTS + escaped("甲") + r"{\f2 \'c4\'e0}}", "甲Да"),
        (r"{\rtf1\ansi\ansicpg936\deff0" + FONTS + escaped("甲方") + r" caf\'e9}", "甲方 café"),
        (r"{\rtf1\ansi\ansicpg950 " + escaped("臺灣", "big5") + "}", "臺灣"),
        (r"{\rtf1\ansi\uc1 " + unicode_escaped("公司𠮷") + "}", "公司𠮷"),
        (r"{\rtf1\ansi\uc2 " + unicode_escaped("公", r"\'b9\'ab") + r"{\uc0 \u20057}x}", "公乙x"),
        (r"{\rtf1\ansi\uc1\u8226\bullet A\u21496\par B}", "•A司\nB"),
        (r"{\rtf1\ansi\u8212\'97 A\emdash B\lquote c\rquote\~d\_e\-f}", "— A—B‘c’ d-ef"),
        (r"{\rtf1\ansi \{a\}\\b\line c\tab d}", "{a}\\b\nc d"),
        (r"{\rtf1\ansi\ansicpg936 " + escaped("甲方") + r"\line " + escaped("乙方") + "}",
         "甲方\n乙方"),
        (r"{\rtf1\ansi\ansicpg936\deff0" + FONTS + escaped("朱镕基，王珺") + r" r\'e9sum\'e9}",
         "朱镕基，王珺 résumé"),
        (r"{\rtf1\ansi\ansicpg0\deff1" + FONTS + escaped("甲") + "}", "甲"),
        (r"{\rtf1\mac\ansicpg10008 " + escaped("甲方") + "}", "甲方"),
        (r"{\rtf1\ansi" + escaped("本合同由甲方与乙方签订") + "}", "本合同由甲方与乙方签订"),
        (r"{\rtf1\ansi d\'e9j\'e0 caf\'e9, r\'e9sum\'e9}", "déjà café, résumé"),
        (SIGNS + r"\f1\'fe\f0 A{\f1\u-3842\'fe}B{\f2 R}\f0\'fe{\f1\'20}}", "☑A☑B☑þ"),
    ],
)  # fmt: skip
def test_characters_come_out_right_however_they_are_written(rtf: str, text: str) -> None:
    assert read(rtf).text == text


def test_what_cannot_be_decoded_is_counted() -> None:
    document = read(r"{\rtf1\ansi\ansicpg936 " + escaped("甲") + r"\'ff\par b}")
    assert document.text == "甲\ufffd\nb"
    assert "1 bytes could not be decoded" in document.notes[0]


def test_paragraphs_headings_and_the_title_are_kept() -> None:
    document = read(
        r"{\rtf1\ansi{\info{\title Loan}{\author Somebody}}"
        r"{\stylesheet{\s0 Normal;}{\s1 heading 1;}{\s2\outlinelevel1 mine;}}"
        r"\pard\s1 One\par\pard\s2 Two\par{\pard\outlinelevel2 Three\par}\pard\s0 text\par"
        r"{\listtext\tab 1.\tab}numbered\par}"
    )
    assert document.text == "One\nTwo\nThree\ntext\n1. numbered"
    assert [(document.text[h.start : h.end], h.level) for h in document.headings] == [
        ("One", 1), ("Two", 2), ("Three", 3),
    ]  # fmt: skip
    assert document.title == "Loan"


def cells(document: Document) -> list[tuple[int, int, int, str]]:
    return [
        (c.row, c.column, c.column_span, document.text[c.start : c.end])
        for table in document.tables
        for c in table.cells
    ]


def test_cells_stand_in_the_columns_of_their_edges() -> None:
    document = read(
        r"{\rtf1 before\par\trowd\cellx3000\pard\intbl Title\cell\row"
        r"\trowd\cellx1000\cellx2000\cellx3010\intbl A\cell B\cell C\par D\cell\row"
        r"\trowd\cellx1000\cellx3000\intbl E\cell\cell\row\pard after\par}"
    )
    assert document.text == "before\nTitle\nA\tB\tC D\nE\nafter"
    assert cells(document) == [
        (0, 0, 3, "Title"), (1, 0, 1, "A"), (1, 1, 1, "B"), (1, 2, 1, "C D"), (2, 0, 1, "E"),
        (2, 1, 2, ""),
    ]  # fmt: skip


def test_a_row_without_an_end_loses_nothing() -> None:
    assert read(r"{\rtf1 \trowd\cellx9\cellx99\intbl A\cell B").text == "A\tB"
    assert read(r"{\rtf1 \trowd\cellx9\intbl A\cell\row B\par C}").text == "A\nB\nC"
    assert "cut off" in read(r"{\rtf1 \trowd\cellx9\cellx99\intbl A\cell B").notes[0]


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (r"{\v secret}seen\v hid\v0 en", "seenen"),
        (r"5\deleted 0\deleted0 1{\revised 2}", "512"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}", "link"),
        (r"{\*\unknown gone}{\pict\wmetafile8 0102}x", "x"),
        (r"{\pict\bin6 }{\'}x}y", "y"),
        (r"{\*\annotation comment}x{\*\bkmkstart b}y", "xy"),
        (r"a{\header Page \chpgn  of 3}{\footer \u31532 ?1\u-26507 ?}{\footerf H 1}", "a\nH 1"),
        (r"a{\footnote note}b\par c{\header H}{\footer H}", "ab\nc\nnote\nH"),
        (r"a{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt box\par}}{\shprslt box}}b\par c",
         "ab\nbox\nc"),
        (r"{\header\trowd\intbl A\cell B\cell\row\pard C\par}a\par{\footnote D\cell E}",
         "a\nD\nE\nA\nB\nC"),
        (r"{\*\nesttableprops x}{\nonesttables\par}y", "y"),
        (r"\trowd\cellx9\cellx99 A\cell{\u21333 ?\nestcell\u20301 ?x\nestcell}\intbl\cell\row",
         "A\t单 位x"),
    ],
)  # fmt: skip
def test_only_what_a_reader_sees_is_text(inner: str, text: str) -> None:
    assert read(rf"{{\rtf1\ansi {inner}\par}}").text == text


def form(more: str, result: str = "") -> str:
    inner = rf"{{\*\fldinst{{ FORMX{{\*\formfield{{{more}{{\*\ffname Text1}}}}}}}}}}"
    return rf"{{\field{inner}{{\fldrslt{{{result}}}}}}}"


def test_boxes_and_lists_of_old_forms_are_read_as_they_stand() -> None:
    choices = r"{\*\ffl USD}{\*\ffl CNY}"
    for more, result, text in (
        (r"\fftype1\ffres25\ffdefres0", "", "☐"),
        (r"\fftype1\ffres25\ffdefres1", "", "☒"),
        (r"\fftype1\ffres0\ffdefres1", "", "☐"),
        (r"\fftype1\ffres1", "", "☒"),
        (r"\fftype2\ffres25\ffdefres1" + choices, "", "CNY"),
        (r"\fftype2\ffres0\ffdefres1" + choices, "", "USD"),
        (r"\fftype2\ffres7" + choices, "", ""),
        (r"\fftype2\ffres0" + choices, "EUR", "EUR"),
        (r"\fftype0\ffres0{\*\ffdeftext x}", "100", "100"),
    ):
        assert read(rf"{{\rtf1 a={form(more, result)}=b\par}}").text == f"a={text}=b"
    box = form(r"\fftype1\ffres1")
    row = rf"\trowd\cellx9\cellx99\intbl {box}A\cell B\cell\row"
    assert read(rf"{{\rtf1 {row}\pard {{\v {box}}}c\par}}").text == "☒A\tB\nc"


def test_hostile_files_end_with_a_reason() -> None:
    with pytest.raises(DocumentTooLarge, match="nested"):
        read(r"{\rtf1" + "{" * 20_000)
    with pytest.raises(EmptyDocument):
        read(r"{\rtf1\ansi}")
    with pytest.raises(UnreadableDocument, match="in the middle of a group"):
        read(r"{\rtf1\ansi{\fonttbl{\f0 x")


def test_a_damaged_file_is_text_or_a_reason_and_never_another_error() -> None:
    whole = (
        r"{\rtf1\ansi\ansicpg936\deff0" + FONTS + r"\f1 " + escaped("甲方：北京")
        + r"\par\trowd\cellx100\cellx200\intbl A\cell B\cell\row{\footnote n}\u20844?\bin3 abc}"
    ).encode("latin-1")  # fmt: skip
    chance = random.Random(7)  # noqa: S311 - a fixed sequence of damages
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(6, len(data))] = chance.randrange(256)
        with suppress(DocumentError):
            load_document(bytes(data[: chance.randrange(10, len(data))]), source="a.rtf")
