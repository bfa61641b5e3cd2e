"""What a value follows, how many samples write it alike, and the link to its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from featpipe import Cache
from featpipe.extraction.results import ExtractedValue
from featpipe.html_report.cues import Cue, CueFinder, Reason, explain
from featpipe.html_report.links import link_to


@pytest.mark.parametrize(
    ("document", "text", "cue"),
    [
        ("docs/a.txt", "三万元", Cue("合同金额", "behind")),
        ("docs/a.txt", "买卖合同", Cue("")),
        ("docs/a.txt", "乙方", Cue("甲方与", "behind")),
        ("docs/table.html", "五万元", Cue("金额", "column")),  # two labels head two columns
        ("docs/table.html", "中标公告", Cue("")),
    ],
)
def test_a_cue_is_what_a_reader_sees_before_a_value(
    shown_cache: Path, document: str, text: str, cue: Cue
) -> None:
    with Cache.open(shown_cache) as cache:
        found = cache.document(document)
        start = found.text.index(text)
        value = ExtractedValue(text, text, "", "", start, start + len(text), None, 0.9)
        assert CueFinder(found).cue(value) == cue


def behind(words: str) -> Cue:
    return Cue(words, "behind")


@pytest.mark.parametrize(
    ("own", "samples", "reason"),
    [
        (behind("合同总价"), [], Reason(behind("合同总价"))),
        (behind("合同总价"), [behind("合同总价")] * 3, Reason(behind("合同总价"), 3)),
        (
            behind("本合同总价"), [behind("合同总价"), behind("该合同总价"), behind("押金")],
            Reason(behind("合同总价"), 2),
        ),
        (behind("租金"), [behind("押金")], Reason(behind("租金"), 0)),
        (behind("金额"), [Cue("金额", "column")], Reason(behind("金额"), 0)),
        (Cue("金额", "column"), [Cue("金额", "column")], Reason(Cue("金额", "column"), 1)),
        (Cue(""), [behind("金额")], Reason(Cue(""))),
    ],
)  # fmt: skip
def test_samples_that_write_alike_are_counted(own: Cue, samples: list[Cue], reason: Reason) -> None:
    assert explain(own, samples) == reason


def test_a_link_is_relative_and_cannot_be_another_scheme(tmp_path: Path) -> None:
    page = tmp_path / "out" / "page.html"
    odd = tmp_path / "out" / "javascript:alert(1) #?.pdf"
    odd.parent.mkdir()
    odd.touch()
    assert link_to(str(odd), page) == "javascript%3Aalert%281%29%20%23%3F.pdf"
    (tmp_path / "a.zip").touch()
    assert link_to(f"{tmp_path}/a.zip!3", page) == "../a.zip"
    (tmp_path / "a.jsonl").touch()
    assert link_to(f"{tmp_path}/a.jsonl@id@x", page) == ""
    assert link_to(f"{tmp_path}/a.jsonl@id", page) == "../a.jsonl"
    assert link_to(str(tmp_path / "gone.txt"), page) == ""
