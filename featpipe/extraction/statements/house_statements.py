"""Statements of sales of houses: where they are, by which deed, at what price, and from when on.

``由 *闽(2016)某市不动产权第9013846号* 证明``, ``单价为每平方米 *19,850元*``,
``支付定金 *¥20,000元*``, ``于 *2025年8月15日* 前交付``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, HAN
from featpipe.extraction.statements.statement_words import DATE, MONEY, NUMERAL, Statement

_SUM = rf"(?:人民币)?{GAP}¥?\d[\d,.]*{GAP}万?元|{MONEY}"

HOUSES = (
    Statement(
        "产权",
        re.compile(
            rf"(?P<deed>{HAN}\((?:19|20)\d\d\){HAN}{{2,12}}不动产权第{GAP}\d{{5,12}}{GAP}号"
            rf"|{HAN}{{1,4}}房权证{HAN}{{0,6}}[a-z]?字?第{GAP}[\da-z-]{{5,14}}{GAP}号)"
        ),
        {"deed": "产权证号"},
    ),
    Statement(
        "房地",
        re.compile(r"(?P<deed>\d{2,4}房地证\d{4}字第\d{3,10}号)"),
        {"deed": "产权证号"},
    ),
    Statement(
        "平方米",
        re.compile(rf"(?:单价|折合|均价)(?:[为约:]|{GAP}){{0,3}}每平方米{GAP}(?P<price>{_SUM})"),
        {"price": "单价"},
    ),
    Statement(
        "定金",
        re.compile(
            rf"(?:支付|交付|缴纳|收取)(?:购房|买房)?定金{GAP}(?:共计|合计|为|计)?{GAP}(?P<amount>{_SUM})"
        ),
        {"amount": "定金"},
    ),
    Statement(
        "交",
        re.compile(
            rf"于{GAP}(?P<day>{DATE}){GAP}(?:之?前)?[^。;\n\d]{{0,40}}?(?:交付(?!定金|房款|价款|购)|交房|交接)"
        ),
        {"day": "交房日期"},
    ),
    Statement(
        "面积",
        re.compile(
            rf"(?<!套内)(?<!分摊)(?:建筑|产证)面积{GAP}(?:[为约共]|合计|共计){{0,2}}{GAP}"
            rf"(?P<area>(?:\d[\d,.]*|{NUMERAL}[百十{NUMERAL[1:-1]}]{{0,6}}点?{NUMERAL}{{0,3}}){GAP}(?:平方米|平米|㎡|m²))"
        ),
        {"area": "建筑面积"},
    ),
)
