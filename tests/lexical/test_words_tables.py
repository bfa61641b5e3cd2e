"""Compiled tables: the user's own dictionaries, where tables are kept, what when they cannot be."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jieba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import HANG_S

from featpipe.errors import UsageError
from featpipe.lexical import cut as cutter
from featpipe.lexical import words as segmenter
from featpipe.lexical.compile import CodedTexts
from featpipe.lexical.cut import CompiledCutter
from featpipe.lexical.jieba_dictionary import find_jieba, hash_of
from featpipe.lexical.words import Words
from featpipe.user_cache import root

if TYPE_CHECKING:
    from featpipe.lexical.compile import Tables
    from featpipe.lexical.jieba_dictionary import Jieba
    from featpipe.lexical.words import Engine

COMPILED: list[Engine] = ["numpy", "numba"]

TEXTS = [
    "他来到了网易杭研大厦，李小福是创新办主任也是云计算方面的专家",
    "八一双鹿更名为八一南昌篮球队！韩玉鉴赏，凱特琳 nz",
    "台中的大厦与杭研之间，杭研二字不在字典里",
    "违约金甲方违约金支付乙方v2.0平台C++11编译器A股B股",
    "我不喜欢日本和服。今天天气不错；张晓梅去人民医院做了个B超然后买了件T恤",
]

USER_WORDS = """\ufeff云计算 5
李小福 2 nr
创新办 3 i
easy_install 3 eng
好用 300
韩玉赏鉴 3 nz
八一双鹿 3 nz
台中
凱特琳 nz
Edu Trust认证 2000
违约金支付
v2.0
C++11 3
杭研 0
大厦 0
天气不错 99999999999999999999
A股B股
玉鉴
"""


@pytest.fixture(scope="module", autouse=True)
def small_jieba(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """jieba with a twentieth of its dictionary, all our texts' words included: quick to compile."""
    folder = tmp_path_factory.mktemp("jieba")
    joined = "".join(TEXTS) + "支付违约金中华人民共和国共和国家王小明"
    whole = Path(jieba.__file__).with_name("dict.txt").read_text("utf-8").splitlines()
    kept = [line for n, line in enumerate(whole) if n % 20 == 0 or line.split(" ")[0] in joined]
    (folder / "dict.txt").write_text("\n".join(kept) + "\n", "utf-8")
    installed = find_jieba()._replace(folder=folder, dictionary=hash_of(b"a twentieth"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segmenter, "find_jieba", lambda: installed)
        patch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield folder / "dict.txt"


@pytest.fixture(autouse=True)
def force_split_stays_as_it_was() -> Iterator[None]:
    before = set(jieba.finalseg.Force_Split_Words)
    yield
    assert before == jieba.finalseg.Force_Split_Words


def load_truth(dictionary: Path, user_file: Path | None = None) -> jieba.Tokenizer:
    """A tokenizer of jieba's own; deleted words go to the module-wide set, as jieba has it."""
    tokenizer = jieba.Tokenizer()
    with dictionary.open("rb") as words:
        tokenizer.FREQ, tokenizer.total = jieba.Tokenizer.gen_pfdict(words)
    tokenizer.initialized = True
    if user_file:
        with user_file.open("rb") as words:
            tokenizer.load_userdict(words)
    return tokenizer


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "user.txt"
    path.write_text(USER_WORDS, "utf-8")
    return path


@pytest.mark.parametrize("engine", [*COMPILED, "jieba"])
@pytest.mark.parametrize("hmm", [True, False])
def test_user_words_change_cuts_as_they_change_jiebas(
    engine: Engine, hmm: bool, user_file: Path, small_jieba: Path
) -> None:
    with pytest.warns(UserWarning, match=r"1 words .* can never match.*Edu Trust认证"):
        words = Words(user_file, hmm=hmm, engine=engine)
    cut = words.cut_many(TEXTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.finalseg, "Force_Split_Words", set())
        truth = load_truth(small_jieba, user_file)
        assert cut == [truth.lcut(text, HMM=hmm) for text in TEXTS]
    assert cut != Words(hmm=hmm, engine=engine).cut_many(TEXTS)


def test_a_deleted_word_stays_deleted_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "deleted.txt"
    path.write_text("杭研 0\n", "utf-8")
    text = "他来到了网易杭研大厦"
    assert "杭研" in Words(engine="jieba").cut(text)
    for engine in ("jieba", "numpy", "numba"):
        assert "杭研" not in Words(path, engine=engine).cut(text)
        assert "杭研" in Words(engine=engine).cut(text)


def test_a_word_somebody_else_deleted_stays_ours() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.finalseg, "Force_Split_Words", {"杭研"})
        for engine in ("jieba", "numpy", "numba"):
            assert "杭研" in Words(engine=engine).cut("他来到了网易杭研大厦")


def test_dictionaries_are_loaded_in_the_order_given(tmp_path: Path) -> None:
    deletes, restores = tmp_path / "deletes.txt", tmp_path / "restores.txt"
    deletes.write_text("违约金 0\n", "utf-8")
    restores.write_text("违约金 100000\n", "utf-8")
    kept = Words([deletes, restores], engine="numpy")
    lost = Words([restores, deletes], engine="numpy")
    assert kept.cut("支付违约金") == ["支付", "违约金"]
    assert lost.cut("支付违约金") != ["支付", "违约金"]
    assert kept.fingerprint != lost.fingerprint


characters = st.sampled_from("国家王小明的中华人民共和一二ab1.%-+龘")
some_words = st.lists(
    st.tuples(
        st.text(characters, min_size=1, max_size=5), st.sampled_from(["", " 0", " 7", " 90000"])
    ),
    max_size=8,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(entries=some_words, texts=st.lists(st.text(characters, max_size=25), min_size=1, max_size=8))
def test_any_user_dictionary_cuts_as_jieba_with_it(
    tmp_path: Path, small_jieba: Path, entries: list[tuple[str, str]], texts: list[str]
) -> None:
    path = tmp_path / "any.txt"
    path.write_text("".join(f"{word}{rest}\n" for word, rest in entries), "utf-8")
    texts += ["".join(word for word, _ in entries)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.finalseg, "Force_Split_Words", set())
        truth = load_truth(small_jieba, path)
        expected = [[truth.lcut(text, HMM=hmm) for text in texts] for hmm in (True, False)]
    for engine in COMPILED:
        found = [Words(path, hmm=hmm, engine=engine).cut_many(texts) for hmm in (True, False)]
        assert found == expected


def test_a_dictionary_that_changed_on_the_way_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "changing.txt"
    path.write_text("云计算平台 5\n", "utf-8")
    travelling = pickle.dumps(Words(path, engine="numpy"))
    path.write_text("云计算 5\n", "utf-8")
    arrived = pickle.loads(travelling)  # noqa: S301  # our own bytes
    with pytest.raises(UsageError, match="has changed"):
        arrived.cut("云计算平台")


def test_an_unreadable_dictionary_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.txt"):
        Words(tmp_path / "nowhere.txt")
    path = tmp_path / "latin.txt"
    path.write_bytes(b"\xff\xfe\xff 3\n")
    with pytest.raises(UsageError, match=r"latin\.txt is not UTF-8"):
        Words(path)


@pytest.mark.parametrize("damage", ["cut short", "gone", "not json"])
def test_damaged_tables_are_compiled_anew(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path))
    expected = Words(engine="numpy").cut_many(TEXTS)
    (folder,) = tmp_path.iterdir()
    if damage == "cut short":
        data = (folder / "tables.bin").read_bytes()
        (folder / "tables.bin").write_bytes(data[: len(data) // 2])
    elif damage == "gone":
        (folder / "tables.bin").unlink()
    else:
        (folder / "tables.json").write_text("{")
    assert Words(engine="numpy").cut_many(TEXTS) == expected
    assert [each.name for each in tmp_path.iterdir()] == [folder.name]
    assert (folder / "tables.bin").stat().st_size > 100_000


def test_without_a_place_to_write_words_are_cut_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Words(engine="numpy").cut_many(TEXTS)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "file"))
    assert Words(engine="numpy").cut_many(TEXTS) == expected


def test_tables_that_do_not_prove_equal_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path))
    expected = Words(engine="numpy").cut_many(TEXTS)
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "other"))
    honest = cutter.compile_tables

    def dishonest(jieba_itself: Jieba) -> Tables:
        tables = honest(jieba_itself)
        tables.starts[:] = 0.0
        return tables

    monkeypatch.setattr(cutter, "compile_tables", dishonest)
    with pytest.warns(UserWarning, match="cut by jieba itself"):
        assert Words(engine="numpy").cut_many(TEXTS) == expected
    monkeypatch.setattr(cutter, "compile_tables", honest)
    with pytest.warns(UserWarning, match="cut by jieba itself"):
        assert Words(engine="numpy").engine == "jieba"  # the verdict is kept


def test_a_compiled_kernel_that_does_not_prove_equal_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its code may come from a stale cache, or from a compiler that is wrong on this machine."""
    from featpipe.lexical import cut_numba as numba_kernel

    expected = Words(engine="numpy").cut_many(TEXTS)
    honest = numba_kernel.cut

    def stale(tables: Tables, coded: CodedTexts, *, hmm: bool) -> np.ndarray:
        return honest(tables, coded, hmm=not hmm)

    monkeypatch.setattr(numba_kernel, "cut", stale)
    words = Words(engine="numba")
    with pytest.warns(UserWarning, match="going on without numba"):
        assert words.cut_many(TEXTS) == expected
    assert words.engine == "numpy"
    assert words.cut_many(TEXTS) == expected


@pytest.mark.parametrize("engine", COMPILED)
def test_long_texts_are_cut_in_parts_that_fit_together(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = ["\r\n".join(TEXTS) * 3, "国" * 700, "", "\r\n" * 400, "中华人民共和国，" * 50]
    whole = Words(engine=engine).cut_many(long)
    for size in (7, 64, 333):
        monkeypatch.setattr(cutter, "_SLICE", size)
        assert Words(engine=engine).cut_many(long) == whole


def test_the_change_from_numpy_to_numba_changes_no_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutter, "_WARM_UP", 50)
    words = Words()
    assert words.engine == "numpy"
    first = [words.cut(text) for text in TEXTS]
    assert words.engine == "numba"
    assert words.cut_many(TEXTS) == first


def test_many_threads_cut_alike() -> None:
    words = Words(engine="numpy")
    expected = Words(engine="jieba").cut_many(TEXTS)
    wrong: list[object] = []

    def cut() -> None:
        wrong.extend(
            found for found in (words.cut_many(TEXTS) for _ in range(5)) if found != expected
        )

    threads = [threading.Thread(target=cut) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_worker_with_numpy_loads_neither_jieba_nor_numba() -> None:
    words = Words(engine="numpy")
    words.cut("先编译")
    program = (
        "import pickle, sys\n"
        "words = pickle.loads(sys.stdin.buffer.read())\n"
        "assert words.cut('支付违约金') == ['支付', '违约金']\n"
        "loaded = {'numba', 'jieba', 'torch', 'h5py', 'transformers'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=pickle.dumps(words),
        check=True,
        timeout=HANG_S,
    )


def test_importing_jieba_shows_no_warning(tmp_path: Path) -> None:
    """Not even when Python compiles it, which is when its escapes are found to be invalid."""
    program = "from featpipe.lexical.words import Words; Words(engine='jieba').cut('违约金')"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        check=False,
        timeout=HANG_S,
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_coded_texts_count_characters_as_python_does() -> None:
    coded = CodedTexts.from_texts(["a𠮷", "", "\ud83d", "\ude00"])
    assert coded.bounds.tolist() == [0, 2, 2, 3, 4]
    assert coded.codes.tolist() == [97, 0x20BB7, 0xD83D, 0xDE00]


def test_the_cache_folder_follows_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEATPIPE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert root() == tmp_path / "featpipe"


def test_slices_end_where_no_word_reaches_over(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Words(engine="numpy")
    words.cut("打开")
    opened = words._cutter
    assert isinstance(opened, CompiledCutter)
    monkeypatch.setattr(cutter, "_SLICE", 5)
    coded = CodedTexts.from_texts(["中华人民，共和\r\n国", "", "中国，" * 4])
    parts = list(opened._slices(coded))
    assert len(parts) > 2
    assert np.array_equal(np.concatenate([part.codes for _, part in parts]), coded.codes)
    for base, _ in parts[1:]:
        assert base in coded.bounds or chr(coded.codes[base - 1]) in "，\n"
