"""Statements of what holders do with their shares. Oracle: what each sentence says of itself."""

from __future__ import annotations

import pytest

from featpipe.extraction.scoring.statements import find_statements
from featpipe.extraction.values.text import fold_width


def told(text: str) -> set[tuple[str, str]]:
    folded = fold_width(text)
    return {(one.words, folded[one.start : one.end]) for one in find_statements(folded)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "云岭集团所持公司股份300,000股被青州市中级人民法院、白河市东城区人民法院司法冻结，"
                "冻结起始日为2023年5月6日，到期日2026年5月5日。"
            ),
            {
                ("冻结股数", "300,000股"),
                ("冻结机关", "青州市中级人民法院"),
                ("冻结机关", "白河市东城区人民法院"),
                ("冻结起始日", "2023年5月6日"),
                ("冻结到期日", "2026年5月5日"),
            },
        ),
        (
            "青州市中级人民法院于2023-05-06轮候冻结云岭控股有限公司持有的公司无限售流通股 9 万股。",
            {
                ("冻结机关", "青州市中级人民法院"),
                ("冻结起始日", "2023-05-06"),
                ("股东名称", "云岭控股有限公司"),
                ("冻结股数", "9 万股"),
            },
        ),
        (
            "李明于2022年1月8日将其持有的公司股份50万股质押给东岭证券（上海）资产管理有限公司。",
            {
                ("出质人", "李明"),
                ("质押股数", "50万股"),
                ("质权人", "东岭证券(上海)资产管理有限公司"),
                ("质押起始日", "2022年1月8日"),
            },
        ),
        (
            "质权人分别为东岭银行股份有限公司青州分行和李明。",
            {("质权人", "东岭银行股份有限公司青州分行"), ("质权人", "李明")},
        ),
        (
            "上述股份已于2022年3月9日办理解除质押。",
            {("解除日期", "2022年3月9日")},
        ),
        ("公司于2022年3月9日接到股东关于解除质押的告知函。", set()),
        (
            (
                "截至2022年6月30日，公司累计回购公司股份500,000股，最高成交价为12.30元/股，"
                "最低成交价为11.05元/股，支付的总金额为5,900,000元。"
            ),
            {
                ("截止日期", "2022年6月30日"),
                ("回购股数", "500,000股"),
                ("最高成交价", "12.30元/股"),
                ("最低成交价", "11.05元/股"),
                ("回购金额", "5,900,000元"),
            },
        ),
        (
            "自2022-01-04至2022-03-31期间，通过集中竞价减持公司股份80,000股，成交均价为9.87元/股。",
            {
                ("起始日期", "2022-01-04"),
                ("截止日期", "2022-03-31"),
                ("减持股数", "80,000股"),
                ("成交均价", "9.87元/股"),
            },
        ),
        # What was announced before is no news, and what holders have together is nobody's.
        ("公司曾于2020年披露，其1,000股被青州市公安局冻结，该次冻结已于2021年2月3日解除。", set()),
        ("控股股东及其一致行动人合计持有公司股份9,000股，占公司总股本的12.5%。", set()),
    ],
)
def test_what_sentences_say(text: str, expected: set[tuple[str, str]]) -> None:
    assert told(text) == expected
