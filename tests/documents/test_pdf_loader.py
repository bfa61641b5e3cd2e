"""PDF files, written by the tests themselves, through the real library."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from pdf_writing import field, write_pdf

from featpipe.documents import Document, LoadLimits, load_document
from featpipe.errors import DocumentTooLarge, EmptyDocument, UnreadableDocument, UnsupportedDocument

pytest.importorskip("pypdfium2")
WIDE = (
    "本公司及董事会全体成员保证公告内容的真实准确完整不存在虚假记载误导性陈述或者重大遗漏并承担责"
)


def loaded(data: bytes, **limits: int) -> Document:
    return load_document(data, source="a.pdf", limits=LoadLimits(**limits))


def test_chinese_lines_are_joined_and_pages_are_known() -> None:
    document = loaded(
        write_pdf(
            [
                [("重大合同公告", 200, 780), (WIDE, 50, 700), ("任。", 50, 685)],
                [("Signed by Acme Inc. on 2017-05-03.", 50, 700)],
            ],
            title="公告",
        )
    )
    assert document.text == f"重大合同公告\n{WIDE}任。\nSigned by Acme Inc. on 2017-05-03."
    assert document.title == "公告"
    assert [(p.number, document.text[p.start : p.end].strip()) for p in document.pages] == [
        (1, f"重大合同公告\n{WIDE}任。"),
        (2, "Signed by Acme Inc. on 2017-05-03."),
    ]
    assert document.page_of(document.text.index("Acme")) == 2
    assert document.page_of(0) == 1


def test_a_paragraph_over_two_pages_has_characters_on_both() -> None:
    pages = [[(WIDE, 50, 100)], [("任。", 50, 780)], [("第二条 其他。", 50, 780)]]
    document = loaded(write_pdf(pages))
    assert document.text == f"{WIDE}任。\n第二条 其他。"
    assert [document.page_of(document.text.index(c)) for c in ("本", "任。", "二条")] == [1, 2, 3]


def read_lines(*lines: str) -> list[str]:
    """The paragraphs of lines that stand below one another."""
    data = write_pdf([[(text, 50, 700 - 15 * i) for i, text in enumerate(lines)]])
    return loaded(data).text.split("\n")


def test_fields_of_one_length_below_one_another_are_paragraphs() -> None:
    lines = ["甲方：北京某某公司", "乙方：上海某某公司", "签署地：广州天河"]
    assert read_lines(*lines) == lines
    both = ["地址、电话：海淀区一号", "开户行及账号：某银行一"]
    assert read_lines(*both) == both
    assert len(read_lines("如果：名词能够表现该事件，", "则：只取该名词")) == 1
    assert len(read_lines("会议于下午开始的时间为", "10:30在本公司")) == 1


def rectangle(left: float, bottom: float, right: float, top: float) -> bytes:
    return b"%g %g %g %g re " % (left, bottom, right - left, top - bottom)


def line(x: float, y: float, to_x: float, to_y: float) -> bytes:
    return b"%g %g m %g %g l " % (x, y, to_x, to_y)


XS, YS = (50, 180, 400), (600, 660, 740)
ROWS = [line(XS[0], y, XS[-1], y) for y in YS]
COLUMNS = [line(x, YS[0], x, YS[-1]) for x in XS]
CELLS = [(left, bottom, right, top) for left, right in pairwise(XS) for bottom, top in pairwise(YS)]


@pytest.mark.parametrize(
    "drawing",
    [
        b"".join(one + b"S " for one in (*ROWS, *COLUMNS)),
        b"".join((*ROWS, *COLUMNS)) + b"S ",
        b"".join(rectangle(*cell) + b"S " for cell in CELLS),
        b"".join(rectangle(*cell) for cell in CELLS) + b"S ",
        b"".join(
            rectangle(a, c, b, c + 0.5) + rectangle(a, c, a + 0.5, d) + rectangle(b, c, b + 0.5, d)
            + b"f " for a, c, b, d in CELLS
        ),
        b"q 2 0 0 2 0 0 cm "
        + b"".join(rectangle(*(x / 2 for x in cell)) for cell in CELLS) + b"S Q ",
    ],
    ids=["strokes", "one path", "frames", "frames in one path", "thin rectangles", "scaled"],
)  # fmt: skip
def test_lines_in_the_cells_of_a_table_are_put_together(drawing: bytes) -> None:
    cells = [
        ("地址：北京市海淀区中关", 55, 720), ("村一号", 55, 705), ("电话：", 190, 720),
        ("开户行：某某银行北京分", 55, 645), ("行营业部", 55, 630), ("张三", 190, 645),
        ("李四", 190, 630), (WIDE, 50, 500), ("任。", 50, 485),
    ]  # fmt: skip
    assert loaded(write_pdf([cells], drawing=drawing)).text.split("\n") == [
        "地址：北京市海淀区中关村一号", "电话：", "开户行：某某银行北京分行营业部", "张三", "李四",
        WIDE + "任。",
    ]  # fmt: skip
    plain = loaded(write_pdf([cells])).text
    assert "中关\n村一号" in plain


def test_a_drawing_of_many_lines_costs_no_more_than_its_text() -> None:
    drawing = b"".join(line(n % 500, n % 700, n % 300, n % 800) for n in range(30_000)) + b"S "
    assert loaded(write_pdf([[("甲方", 50, 700)]], drawing=drawing)).text == "甲方"


def test_text_beyond_the_edges_of_its_page_is_left_out() -> None:
    lines = [("Agreement", 72, 700), ("below", 72, -50), ("cut off", 72, 800), ("begins", -20, 500)]
    cropped = b"/MediaBox [-100 -100 595 842] /CropBox [0 0 595 780]"
    data = write_pdf([lines]).replace(b"/MediaBox [0 0 595 842]", cropped)
    document = load_document(data, source="a.pdf")
    assert document.text == "Agreement\nbegins"
    assert document.notes == ("text beyond the edges of its page is left out",)
    assert not load_document(write_pdf([lines[:1]]), source="a.pdf").notes


def test_pages_tile_the_text() -> None:
    document = loaded(write_pdf([[("one", 50, 700)], [], [("three", 50, 700)]]))
    edges = [(page.start, page.end) for page in document.pages]
    assert edges[0][0] == 0
    assert edges[-1][1] == len(document.text)
    assert all(a[1] == b[0] for a, b in pairwise(edges))
    assert document.notes == ("1 of 3 pages without a text layer: 2",)


def test_a_scan_without_a_text_layer_says_so() -> None:
    with pytest.raises(EmptyDocument, match="2 of 2 pages without a text layer: 1, 2"):
        loaded(write_pdf([[], []]))


PICTURE = b"q 595 0 0 842 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q\n"


def test_a_scan_with_a_stamp_in_its_text_layer_is_said_to_be_one() -> None:
    pages = [[("Signed on a platform, page 1", 50, 20), ("COPY", 250, 400)], [(WIDE, 50, 400)]]
    (note,) = loaded(write_pdf(pages, drawing=PICTURE)).notes
    assert note.startswith("1 of 2 pages with a picture and hardly any text beside it: 1; pip")
    assert loaded(write_pdf(pages)).notes == ()


def test_letters_of_a_font_that_does_not_say_what_they_mean_are_noted() -> None:
    data = write_pdf([[("合同金额", 50, 700)], [(WIDE, 50, 700)]])
    assert loaded(data).notes == ()
    unmapped = data.replace(b"(GB1)", b"(Odd)").replace(b"/UniGB-UCS2-H", b"/Identity-H  ")
    (note,) = loaded(unmapped).notes
    assert note.startswith("2 of 2 pages in fonts that do not say what their letters mean")
    assert "--ocr" in note


def test_what_was_typed_into_a_form_stands_beside_its_labels() -> None:
    typed = [
        field("Tx", "北京某某公司", 100, 698),
        field("Tx", "1,000,000", 100, 678),
        field("Tx", "第一行\r第二行", 100, 630),
        field("Ch", "b", 300, 678, more=b" /Ff 131072 /Opt [[(a) (USD)] [(b) (CNY)]]"),
        field("Btn", "/On", 50, 598),
        field("Btn", "/Off", 300, 598),
        field("Tx", "secret", 100, 500, more=b" /Ff 8192"),
        field("Tx", "hidden", 100, 480, more=b" /F 2"),
        b"/Subtype /FreeText /Contents (Typed by hand) /Rect [50 400 150 414]",
        b"/Subtype /Text /Contents (A comment) /Rect [50 380 60 390]",
        b"/Subtype /Link /Rect [50 300 60 310]",
    ]
    labels = [("甲方：", 50, 700), ("金额：", 50, 680), ("备注：", 50, 645), ("YES", 155, 600)]
    document = loaded(write_pdf([[*labels, ("NO", 405, 600), ("End.", 50, 100)]], typed=typed))
    assert document.text == (
        "甲方： 北京某某公司\n金额： 1,000,000 CNY\n备注： 第一行\n第二行\n☒ YES ☐ NO\n"
        "Typed by hand\nEnd."
    )
    assert document.notes == ("comments are left out",)


def test_characters_that_are_lost_for_want_of_a_font_are_noted() -> None:
    document = loaded(
        write_pdf([[("性别：", 50, 700), ("男", 90, 700), ("A", 50, 600), (" ", 9, 9)]])
    )
    if "男" not in document.text:  # no Chinese font on this machine
        (note,) = document.notes
        assert "left out, up to 1; install one for its language" in note
    assert loaded(write_pdf([[("Sex:", 50, 700), (" ", 90, 700), ("  ", 90, 600)]])).notes == ()


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.6])
def test_a_torn_file_is_read_or_named_and_never_a_crash(keep: float) -> None:
    data = write_pdf([[("one", 50, 700)]] * 5)
    try:
        assert "one" in loaded(data[: int(len(data) * keep)]).text
    except (UnreadableDocument, EmptyDocument) as error:
        assert str(error).startswith("a.pdf: ")  # noqa: PT017 - either outcome is right


def test_too_many_pages_are_refused_before_they_are_read() -> None:
    with pytest.raises(DocumentTooLarge, match="5 pages are more than 4"):
        loaded(write_pdf([[("one", 50, 700)]] * 5), max_pages=4)


def test_too_much_text_is_refused() -> None:
    with pytest.raises(DocumentTooLarge):
        loaded(write_pdf([[("one two three", 50, 700)]] * 5), max_characters=20)


def test_a_login_page_named_pdf_is_no_document() -> None:
    with pytest.raises(UnreadableDocument, match=r"named \.pdf, and its bytes are text/html"):
        loaded(b"<html><body>Please log in</body></html>")


def test_threads_may_load_at_the_same_time() -> None:
    data = write_pdf([[(f"page {i}", 50, 700)] for i in range(20)])
    expected = loaded(data)
    found: list[Document] = []
    threads = [threading.Thread(target=lambda: found.append(loaded(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_without_the_extra_the_reason_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pypdfium2", None)
    with pytest.raises(UnsupportedDocument, match="needs the extra 'docs'"):
        loaded(write_pdf([[("one", 50, 700)]]))


def test_a_page_longer_than_the_memory_kept_for_pages_is_read_whole() -> None:
    lines = [(f"line {i:03} " + "x" * 60 + ".", 50.0, 820 - 2.0 * i) for i in range(400)]
    document = loaded(write_pdf([[("short", 50, 700)], lines, [("last", 50, 700)]], size=1))
    words = document.text.split()
    assert [word for word in words if word.isdecimal()] == [f"{i:03}" for i in range(400)]
    assert document.page_of(document.text.index("399")) == 2
    assert document.page_of(document.text.index("last")) == 3
