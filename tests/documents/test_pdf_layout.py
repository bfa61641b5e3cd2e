"""Lines to paragraphs: each rule of the layout on its own, without a PDF."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from featpipe.documents.formats.pdf_layout import (
    Block,
    PageLines,
    find_running,
    join_words,
    to_blocks,
    upright,
)
from featpipe.documents.formats.pdf_lines import cut_lines
from featpipe.documents.formats.pdf_margins import Line
from featpipe.documents.formats.pdf_rules import Rules, rules_of

SIZE = 10.0
WIDE = "本公司及董事会全体成员保证公告内容的真实准确完整不存在虚假记载误导性陈述或者"


def page(*lines: tuple[str, float, float], number: int = 1) -> PageLines:
    """Lines as (text, left, bottom), every character a font size wide."""
    made = [Line(text, x, x + SIZE * len(text), y, SIZE) for text, x, y in lines]
    return PageLines(number, 800.0, made)


def texts(*pages: PageLines) -> list[str]:
    return [block.text for block in to_blocks(pages, set())]


def test_a_full_line_goes_on_and_a_short_one_ends() -> None:
    assert texts(page((WIDE, 50, 700), ("重大遗漏。", 50, 685), ("特此公告。", 50, 670))) == [
        WIDE + "\n重大遗漏。",
        "特此公告。",
    ]


def grid(xs: list[float], ys: list[float]) -> Rules | None:
    """A table with thin rules at these places, drawn cell by cell."""
    boxes = [(x, low, x + 0.5, high, False) for x in xs for low, high in pairwise(ys)]
    boxes += [(left, y, right, y + 0.5, False) for y in ys for left, right in pairwise(xs)]
    return rules_of(boxes)


def test_lines_in_a_cell_go_on_up_to_its_edge_and_end_with_it() -> None:
    def shown(*lines: tuple[str, float, float]) -> list[str]:
        made = page((WIDE, 50, 760), *lines)
        made.rules = grid([50, 180, 300], [600, 650, 700, 740])
        return texts(made)[1:]

    wrapped = "北京市海淀区中关村一"  # 100 points in a cell of 130
    assert shown((wrapped + "号", 55, 720), ("二层", 55, 705)) == [wrapped + "号\n二层"]
    assert shown(("张三", 55, 720), ("李四", 55, 705)) == ["张三", "李四"]
    assert shown((wrapped + "号", 55, 705), ("二层", 55, 690)) == [wrapped + "号", "二层"]
    assert shown((wrapped + "号", 55, 720), ("二层", 190, 705)) == [wrapped + "号", "二层"]
    assert shown(("甲 " + wrapped, 172, 720), ("二层", 185, 705)) == ["甲 " + wrapped + "\n二层"]


def test_a_line_before_a_table_ends_there() -> None:
    head = Line("增值税发票", 52, 102, 755, 13.0)
    made = PageLines(1, 800.0, [head, *page(("购买方", 55, 728)).lines])
    made.rules = grid([50, 180, 300], [600, 650, 700, 745])
    assert texts(made) == ["增值税发票", "购买方"]
    made.rules = None
    assert len(texts(made)) == 1


def test_cells_go_on_over_the_page_in_their_column_only() -> None:
    def shown(column: float, text: str) -> list[str]:
        pages = [page(("北京市海淀区中关村一号", 55, 110)), page((text, column, 728), number=2)]
        for one in pages:
            one.lines.append(Line("末", 570, 580, 90, SIZE))
            one.rules = grid([50, 180, 300], [60, 100, 125, 745])
        pages[0].lines.pop()
        return [block.text for block in to_blocks(pages, set())]

    assert shown(55, "二层")[0] == "北京市海淀区中关村一号\n二层"
    assert shown(185, "二层")[0] == "北京市海淀区中关村一号"
    assert shown(305, "二层")[0] == "北京市海淀区中关村一号"


def test_a_mark_that_never_begins_a_line_wraps_with_the_word_before_it() -> None:
    short = WIDE[:-2]
    assert len(texts(page((WIDE, 50, 700), (short, 50, 685), ("者，任何人", 50, 670)))) == 1
    assert len(texts(page((WIDE, 50, 700), (short, 50, 685), ("任何人", 50, 670)))) == 2


def test_a_line_that_begins_with_a_flat_character_is_as_high_as_its_other_end() -> None:
    flat = np.array([[[50, 706, 60, 704]], [[450, 710, 460, 700]]], np.float64)
    (line,) = upright(["一般纳税人"], flat, 595, 842).lines
    assert (line.bottom, line.size) == (700, 10)
    (line,) = upright(["1般纳税人"], flat, 595, 842).lines
    assert (line.bottom, line.size) == (704, 2)


def test_the_line_under_a_word_and_the_frame_of_a_page_are_no_cells() -> None:
    lines = ((WIDE, 50, 700), ("重大遗漏。", 50, 685))
    frame = (40.0, 100.0, 560.0, 800.0, True)
    for boxes in (
        [frame],
        [frame, (50.0, 698.0, 90.0, 698.5, False)],
        [(50.0, 698.0, 90.0, 698.5, False)],
    ):
        made = page(*lines)
        made.rules = rules_of(boxes)
        assert texts(made) == [WIDE + "\n重大遗漏。"]


def test_a_clause_number_begins_a_paragraph_even_after_a_full_line() -> None:
    for head in ("第三条 付款", "（一）付款", "2.3.2 付款", "● 付款"):
        assert len(texts(page((WIDE, 50, 700), (head, 50, 685)))) == 2


def test_a_number_that_only_looks_like_a_clause_goes_on() -> None:
    assert len(texts(page((WIDE, 50, 700), ("12.5万元", 50, 685)))) == 1


def test_an_indented_line_after_a_full_stop_begins_a_paragraph() -> None:
    assert len(texts(page((WIDE + "。", 50, 700), ("上述合同生效后执行", 70, 685)))) == 2
    assert len(texts(page((WIDE + "。", 70, 700), ("上述合同生效后执行", 50, 685)))) == 1


def test_a_gap_or_another_size_ends_a_paragraph() -> None:
    assert len(texts(page((WIDE, 50, 700), ("重大遗漏。", 50, 640)))) == 2
    head = Line("重大合同公告", 50, 400, 720, 20.0)
    lines = page((WIDE, 50, 700)).lines
    assert len(to_blocks([PageLines(1, 800.0, [head, *lines])], set())) == 2


def test_pieces_at_one_height_are_one_row() -> None:
    assert texts(page(("甲方：", 50, 700), ("某公司", 120, 700.5))) == ["甲方： 某公司"]


def test_a_list_of_short_lines_is_not_prose() -> None:
    assert len(texts(page(("Acme Inc.", 50, 700), ("Beta Corp.", 50, 685)))) == 2


def test_a_headline_over_two_columns_is_no_margin_of_the_left_one() -> None:
    column = "本公司及董事会全体成员保证公告内容"
    lines = [("关于" + WIDE, 50, 775)]
    for left in (50, 240):
        lines += [(column, left, 740 - 15 * row) for row in range(8)]
        lines.append(("特此公告。", left, 620))
    headline, *columns = texts(page(*lines))
    assert headline == "关于" + WIDE
    assert columns == ["\n".join([column] * 8 + ["特此公告。"])] * 2


def test_a_table_below_a_headline_is_none_of_two_columns() -> None:
    names = ["张三", "欧阳锋", "北京某某科技公司", "李四", "王五", "赵六", "孙七"]
    lines = [("关于" + WIDE, 50, 775)]
    lines += [(name, 50, 740 - 15 * row) for row, name in enumerate(names)]
    lines += [(name, 240, 740 - 15 * row) for row, name in enumerate(names)]
    assert texts(page(*lines))[:8] == ["关于" + WIDE, *names]


def test_two_columns_have_two_margins() -> None:
    left, right = WIDE[:20], WIDE[20:]
    lines = ((left, 50, 700), ("左栏完。", 50, 685), (right, 300, 700), ("右栏完。", 300, 685))
    assert texts(page(*lines)) == [left + "\n左栏完。", right + "\n右栏完。"]


def test_a_paragraph_runs_over_the_page_and_knows_where() -> None:
    (block,) = to_blocks([page((WIDE, 50, 100)), page(("重大遗漏。", 50, 700), number=2)], set())
    assert block.page == 1
    assert block.text == WIDE + "\n重大遗漏。"
    assert block.breaks == [(len(WIDE) + 1, 2)]


def running_pages(n: int) -> list[PageLines]:
    return [
        page(
            ("某公司合同", 50, 780),
            (f"正文{i}，内容各不相同。", 50, 400),
            (f"- {i} -", 300, 20),
            number=i,
        )
        for i in range(1, n + 1)
    ]


def test_running_heads_stay_once_and_page_numbers_go() -> None:
    pages = running_pages(5)
    left_out, heads = find_running(pages)
    assert heads == ["某公司合同"]
    shown = [block.text for block in to_blocks(pages, left_out)]
    assert shown.count("某公司合同") == 1
    assert not any("-" in text for text in shown)
    assert sum("正文" in text for text in shown) == 5


@pytest.mark.parametrize("foot", ["第 3 页 共 9 页", "Page 3 of 9", "3/9", "— 3 —", "iii", "第3页"])
def test_page_numbers_are_known_in_their_many_forms(foot: str) -> None:
    feet = [foot, foot.replace("3", "4"), foot.replace("3", "5")]
    if foot == "iii":
        feet = ["iii", "iv", "v"]
    pages = [
        page(("正文", 50, 400), (text, 300, 20), number=i) for i, text in enumerate(feet, start=1)
    ]
    assert find_running(pages)[0] == {(0, 1), (1, 1), (2, 1)}


def test_what_comes_back_in_the_middle_of_pages_stays() -> None:
    pages = [page(("签字：", 50, 400), ("2017", 50, 380), number=i) for i in range(1, 6)]
    assert find_running(pages) == (set(), [])


def test_numbers_that_do_not_run_with_the_pages_stay() -> None:
    pages = [
        page((f"Invoice No. {n}", 50, 780), ("正文", 50, 400), ("2017", 50, 20), number=i)
        for i, n in enumerate((4711, 815, 1234), start=1)
    ]
    left_out, heads = find_running(pages)
    assert left_out == {(1, 2), (2, 2)}
    assert heads == ["2017"]


def test_amounts_at_the_foot_of_two_pages_are_no_page_numbers() -> None:
    pages = [page(("合计 1,000 元", 50, 20)), page(("合计 2,000 元", 50, 20))]
    assert find_running(pages)[0] == set()


def test_a_parted_word_is_joined_unless_the_document_writes_it_with_a_hyphen() -> None:
    blocks = [Block(1, "the agree-\nment and long-\nterm state"), Block(1, "a long-term plan")]
    join_words(blocks)
    assert blocks[0].text.replace("\u200b", "") == "the agreement and long-term state"
    assert len(blocks[0].text) == len("the agree-\nment and long-\nterm state")


def test_turned_text_is_read_upright_whatever_the_page_says() -> None:
    def upright_lines(*places: tuple[tuple[float, float], tuple[float, float]]) -> list[Line]:
        boxes = [[(x, y + 10, x + 10, y) for x, y in ends] for ends in zip(*places, strict=True)]
        texts = ["一行字"] * len(places)
        return upright(texts, np.array(boxes, np.float64), 595, 842).lines

    lines = upright_lines(((100, 200), (100, 400)), ((120, 200), (120, 400)))
    assert [(line.left, line.right) for line in lines] == [(200, 410)] * 2
    assert lines[0].bottom > lines[1].bottom
    lines = upright_lines(((400, 600), (400, 300)), ((380, 600), (380, 300)))
    assert lines[0].bottom > lines[1].bottom
    assert lines[0].left < lines[0].right
    no_say = np.full((2, 3, 4), 200)
    boxes = np.concatenate(([[(100, 210, 110, 200)], [(100, 410, 110, 400)]], no_say), axis=1)
    assert upright(["字"] * 4, boxes, 595, 842, n_typed=3).lines[0][1:3] == (200, 410)
    arabic = upright_lines(((500, 700), (100, 700)))
    assert arabic[0][1:4] == (100, 510, 700)


def test_lines_know_the_places_of_their_first_and_last_characters() -> None:
    text = " ab \r\n\r\nlong\ufffeterm\r\n  \r\nz"
    assert cut_lines(text, is_plain=True) == (
        ["ab", "long\ufffe", "term", "z"],
        [1, 8, 13, 23],
        [2, 12, 16, 23],
    )
    # Characters beyond the first plane take two units of UTF-16.
    assert cut_lines("𠮷a\r\nb𠮷", is_plain=False) == (["𠮷a", "b𠮷"], [0, 5], [2, 7])
