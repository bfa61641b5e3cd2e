"""Words are jieba's, whatever engine cuts them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featpipe.errors import UsageError
from featpipe.lexical.words import ENGINES, Words

TEXTS = [
    "",
    " ",
    "\r\n",
    "a\r\r\n\nb",
    "甲方应向乙方支付违约金人民币1,234.56元（大写：壹仟贰佰叁拾肆元伍角陆分）。",
    "本公司于2019年12月31日与中国石油天然气股份有限公司签订了《设备采购合同》，合同金额1.5亿元。",
    "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
    "他来到了网易杭研大厦",
    "股票代码：600519，电话 153-2688-4078，邮箱 info@163.com，版本 5.9.1，占比12.5%%",
    "Hello, World! C++ and C# & T恤 A股 U盘 e-mail 100%",
    "工信处女干事每月经过下属科室都要亲口交代24口交换机等技术性器件的安装工作",
    "ＡＢＣ　１２３　ｘｙｚ",
    "𠀀𠮷野家\ud800孤\udc00立\x00零",
    "。。。！！，，",
    "龘龘龘靐齉齾爩鱻麤",
    "1.2.3.4.5%6a.7b.8",
    "国" * 300,
    "abc" * 500,
]


@pytest.fixture(autouse=True)
def jieba_is_left_alone() -> Iterator[None]:
    """Nothing here may fill, change or delete from what the user's own jieba holds."""
    before = set(jieba.finalseg.Force_Split_Words)
    yield
    assert not jieba.dt.initialized
    assert before == jieba.finalseg.Force_Split_Words


@pytest.fixture(scope="module", autouse=True)
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tables compiled here are kept for this file's tests only."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("FEATPIPE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def truth() -> jieba.Tokenizer:
    """A tokenizer of jieba's own making."""
    jieba.setLogLevel(60)
    tokenizer = jieba.Tokenizer()
    with Path(jieba.__file__).with_name("dict.txt").open("rb") as words:
        tokenizer.FREQ, tokenizer.total = jieba.Tokenizer.gen_pfdict(words)
    tokenizer.initialized = True
    return tokenizer


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def words(engine: str) -> Words:
    return Words(engine=engine)


@pytest.fixture(scope="module")
def plain_words(engine: str) -> Words:
    return Words(hmm=False, engine=engine)


def test_words_are_jiebas(words: Words, plain_words: Words, truth: jieba.Tokenizer) -> None:
    assert words.cut_many(TEXTS) == [truth.lcut(text) for text in TEXTS]
    assert plain_words.cut_many(TEXTS) == [truth.lcut(text, HMM=False) for text in TEXTS]


def test_search_words_are_jiebas(words: Words, truth: jieba.Tokenizer) -> None:
    spans, lengths = words.search_spans_many(TEXTS)
    ends = np.cumsum(lengths)
    for text, start, end in zip(TEXTS, ends - lengths, ends, strict=True):
        found = [text[first:last] for first, last in spans[start:end].tolist()]
        assert found == truth.lcut_for_search(text)


def test_spans_tile_the_text(words: Words) -> None:
    spans, lengths = words.spans_many(TEXTS)
    assert spans.dtype == np.uint32
    assert lengths.sum() == len(spans)
    ends = np.cumsum(lengths)
    for text, start, end in zip(TEXTS, ends - lengths, ends, strict=True):
        own = spans[start:end].tolist()
        assert "".join(text[first:last] for first, last in own) == text
        assert own == words.spans(text).tolist()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_any_text_is_cut_as_jieba_cuts_it(
    words: Words, plain_words: Words, truth: jieba.Tokenizer, texts: list[str]
) -> None:
    assert words.cut_many(texts) == [truth.lcut(text) for text in texts]
    assert plain_words.cut_many(texts) == [truth.lcut(text, HMM=False) for text in texts]


def test_words_travel_as_paths_and_hashes(words: Words) -> None:
    words.spans("先用一次")
    travelled = pickle.dumps(words)
    assert len(travelled) < 1500
    arrived = pickle.loads(travelled)  # noqa: S301  # our own bytes
    assert arrived.fingerprint == words.fingerprint
    assert arrived.cut_many(TEXTS) == words.cut_many(TEXTS)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown word engine"):
        Words(engine="fast")  # type: ignore[arg-type]  # what the test is about
