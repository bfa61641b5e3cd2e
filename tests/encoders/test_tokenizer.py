"""The tokenizer gives the ids of transformers and the offsets of the tokenizer it was made from."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_checkpoints import save_encoder, vocabulary
from tokenizers import Tokenizer as RawTokenizer

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.tokenizer import Tokenizer, load_raw
from featpipe.encoders.tokens import Tokens, encode_slowly
from featpipe.errors import CheckpointError

DATA = Path(__file__).parents[3] / "shared" / "data"

SEEDS = [
    "",
    " ",
    "\n",
    "a",
    "合同编号：ABC-2024/001，金额1,234.56元（含税）。",
    "The contract's price is $1.5m; état, naïve, Straße, İstanbul, ΣΟΦΟΣ.",
    "abc\x00def\x07ghi\ufffdjkl",
    "e\u0301 中\u0301 !\u0301 \u0301",
    "😀👨‍👩‍👧 🇨🇳",
    "שלום עולם مرحبا بالعالم",
    "a" * 99 + " " + "b" * 100 + " " + "c" * 101 + " " + "d" * 5000,
    "[SEP]",
    "前[SEP]后 [CLS][MASK]",
    "[sep] [Sep] [ SEP ]",
    "한국어 ガギグ が",
    "≠ ; · ` 　全角 ＡＢＣ１２３",
    "\u200b\u200d\ufeff\u00ad\u2028\u2029\x85",
    "𠀀𪚥 𝒜 \U0010ffff \ue000",
    "no-break\u00a0space\u3000ideographic",
]


def character(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.3:
        return chr(chance.randrange(0x20, 0x7F))
    if kind < 0.5:
        return chr(chance.randrange(0x4E00, 0x5200))
    if kind < 0.8:
        return chr(chance.randrange(0x3000))
    if kind < 0.9:
        return chance.choice("\n\t\x00\u0301\u200b\ufffdİßΣ≠\u3000\ufeff\u00ad")
    # A page of every region beyond; scripts/fuzz_tokenizer.py takes all of Unicode.
    page = chance.choice((0x3000, 0x3100, 0xAC00, 0xF900, 0xFB00, 0xFE00, 0xFF00, 0x1F600, 0x20000))
    return chr(page + chance.randrange(0x100))


def random_texts(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets
    return ["".join(character(chance) for _ in range(chance.randrange(24))) for _ in range(count)]


def assert_same(found: Tokens, expected: Tokens) -> None:
    for name in ("ends", "ids", "start", "stop"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


VARIANTS: dict[str, dict[str, object]] = {
    "cased": {"do_lower_case": False},
    "lower-casing": {"do_lower_case": True},
    "keeping accents": {"do_lower_case": True, "strip_accents": False},
    "stripping accents": {"do_lower_case": False, "strip_accents": True},
    "not splitting Chinese": {"do_lower_case": True, "tokenize_chinese_chars": False},
}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_encoder(tmp_path_factory.mktemp("variant"))
    options = {
        "model_max_length": 64,
        "tokenizer_class": "BertTokenizer",
        **VARIANTS[request.param],
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
    return folder


@pytest.fixture(scope="module")
def tokenizer(encoder_folder: Path) -> Tokenizer:
    return Tokenizer.load(describe_checkpoint(encoder_folder))


@pytest.fixture(scope="module")
def raw(encoder_folder: Path) -> RawTokenizer:
    return load_raw(describe_checkpoint(encoder_folder))


def transformers_ids(folder: Path, texts: list[str]) -> list[list[int]]:
    from transformers import AutoTokenizer

    found: list[list[int]] = AutoTokenizer.from_pretrained(folder)(texts, truncation=False)[
        "input_ids"
    ]
    return found


def framed(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    tokens = tokenizer.encode(texts)
    bodies = np.split(tokens.ids, tokens.ends[:-1])
    return [[*tokenizer.prefix, *body.tolist(), *tokenizer.suffix] for body in bodies]


def test_ids_are_those_of_transformers(variant: Path) -> None:
    texts = SEEDS + random_texts(1, 2000)
    tokenizer = Tokenizer.load(describe_checkpoint(variant))
    assert framed(tokenizer, texts) == transformers_ids(variant, texts)


def test_ids_and_offsets_are_those_of_the_tokenizer_it_was_made_from(variant: Path) -> None:
    texts = SEEDS + random_texts(2, 3000)
    checkpoint = describe_checkpoint(variant)
    tokenizer = Tokenizer.load(checkpoint)
    assert tokenizer.is_fast
    expected = encode_slowly(load_raw(checkpoint), texts, with_offsets=True)
    assert_same(tokenizer.encode(texts, with_offsets=True), expected)
    assert_same(tokenizer.encode(texts, with_offsets=True), expected)  # now from memory


@given(st.lists(st.text(), max_size=8))
@settings(max_examples=150, deadline=None)
def test_any_text_is_tokenised_alike(
    tokenizer: Tokenizer, raw: RawTokenizer, texts: list[str]
) -> None:
    expected = encode_slowly(raw, texts, with_offsets=True)
    assert_same(tokenizer.encode(texts, with_offsets=True), expected)


def test_texts_do_not_leak_into_their_neighbours(encoder_folder: Path) -> None:
    texts = SEEDS + random_texts(3, 300)
    tokenizer = Tokenizer.load(describe_checkpoint(encoder_folder))
    together = tokenizer.encode(texts)
    alone = [tokenizer.encode([text]).ids.tolist() for text in texts]
    assert [part.tolist() for part in np.split(together.ids, together.ends[:-1])] == alone


def test_a_batch_larger_than_one_pass_is_seamless(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = SEEDS[:11] + random_texts(4, 500)
    tokenizer = Tokenizer.load(describe_checkpoint(encoder_folder))
    expected = tokenizer.encode(texts, with_offsets=True)
    monkeypatch.setattr("featpipe.encoders.wordpiece._PASS_CHARACTERS", 50)
    monkeypatch.setattr("featpipe.encoders.wordpiece._MOST_RUNS", 20)
    assert_same(tokenizer.encode(texts, with_offsets=True), expected)


def test_no_texts_are_no_tokens(encoder_folder: Path) -> None:
    tokens = Tokenizer.load(describe_checkpoint(encoder_folder)).encode([], with_offsets=True)
    assert [len(array) for array in (tokens.ids, tokens.ends)] == [0, 0]


@pytest.mark.parametrize("is_fast", [True, False])
def test_a_lone_surrogate_is_read_as_the_replacement_character(
    encoder_folder: Path, is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_fast:
        monkeypatch.setattr("featpipe.encoders.wordpiece.FastWordPiece.of", lambda _: None)
    tokenizer = Tokenizer.load(describe_checkpoint(encoder_folder))
    assert tokenizer.is_fast == is_fast
    texts = ["合\ud800同", "ab\udfff", "\udc00", "好"]
    expected = [
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts
    ]
    assert_same(
        tokenizer.encode(texts, with_offsets=True), tokenizer.encode(expected, with_offsets=True)
    )


def test_state_in_the_tokenizer_file_truncates_and_pads_nothing(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    raw = load_raw(describe_checkpoint(folder))
    raw.enable_truncation(8)
    raw.enable_padding(length=8)
    raw.save(str(folder / "tokenizer.json"))
    tokens = Tokenizer.load(describe_checkpoint(folder)).encode(["合" * 30, "同"])
    assert tokens.lengths.tolist() == [30, 1]


def test_a_tokenizer_of_another_design_goes_the_slow_way(tmp_path: Path) -> None:
    from tokenizers import models, pre_tokenizers, processors

    folder = save_encoder(tmp_path)
    vocab = {word: number for number, word in enumerate(vocabulary())}
    raw = RawTokenizer(models.WordPiece(vocab, unk_token="[UNK]"))  # noqa: S106 - a token of text
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    raw.save(str(folder / "tokenizer.json"))
    write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})(folder)
    tokenizer = Tokenizer.load(describe_checkpoint(folder))
    texts = [*SEEDS, *random_texts(5, 300)]
    assert not tokenizer.is_fast
    assert_same(
        tokenizer.encode(texts, with_offsets=True), encode_slowly(raw, texts, with_offsets=True)
    )


def test_offsets_count_the_text_as_given_where_lower_case_is_longer(encoder_folder: Path) -> None:
    """Of the sentence-transformers option, which lowers a text before its tokenizer sees it."""
    tokenizer = Tokenizer(load_raw(describe_checkpoint(encoder_folder)), lowercase=True)
    texts = ["合同İ甲方İİ金额", "合同", "甲İ"]
    tokens = tokenizer.encode(texts, with_offsets=True)
    assert tokens.start is not None
    assert tokens.stop is not None
    plain = Tokenizer(load_raw(describe_checkpoint(encoder_folder)), lowercase=False)
    for number, text in enumerate(texts):
        at = np.arange(tokens.ends[number] - tokens.lengths[number], tokens.ends[number])
        pieces = [text[a:b] for a, b in zip(tokens.start[at], tokens.stop[at], strict=True)]
        assert [piece for piece in pieces if set(piece) != {"İ"}] == [c for c in text if c != "İ"]
        assert tokens.ids[at].tolist() == plain.encode([text.lower()]).ids.tolist()


def test_files_decide_over_tokenizer_json_as_in_transformers(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    load_raw(describe_checkpoint(folder)).save(str(folder / "tokenizer.json"))
    texts = ["ABC abc Äé 合同", *random_texts(6, 300)]
    for lower in (True, False):
        options = {"do_lower_case": lower, "tokenizer_class": "BertTokenizer"}
        (folder / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
        tokenizer = Tokenizer.load(describe_checkpoint(folder))
        assert framed(tokenizer, texts) == transformers_ids(folder, texts)


def write(name: str, content: dict[str, object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / name
        old = json.loads(file.read_text("utf-8")) if file.exists() else {}
        file.write_text(json.dumps(old | content), "utf-8")

    return change


def forget_options(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()


NEW_WORD = {"content": "新词", "lstrip": False, "rstrip": False, "normalized": False}

#: What may stand beside the words, and changes ids in transformers.
BESIDE: dict[str, Callable[[Path], None]] = {
    "added_tokens.json": write("added_tokens.json", {"[X1]": 611, "新词": 612}),
    "nothing added": write("added_tokens.json", {}),
    "special_tokens_map.json": write(
        "special_tokens_map.json", {"cls_token": "的", "sep_token": "一"}
    ),
    "a list of special tokens": write(
        "tokenizer_config.json", {"additional_special_tokens": ["是"]}
    ),
    "another first token": write("tokenizer_config.json", {"cls_token": "的"}),
    "numbered tokens": write(
        "tokenizer_config.json",
        {"added_tokens_decoder": {"611": NEW_WORD | {"single_word": False, "special": False}}},
    ),
    "another class": write(
        "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True},
    ),
    "no options": forget_options,
}


@pytest.mark.parametrize("as_json", [True, False], ids=["tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize("change", BESIDE.values(), ids=BESIDE)
def test_what_stands_beside_the_words_is_heeded_as_in_transformers(
    tmp_path: Path, change: Callable[[Path], None], as_json: bool
) -> None:
    folder = save_encoder(tmp_path)
    if as_json:
        load_raw(describe_checkpoint(folder)).save(str(folder / "tokenizer.json"))
    elif change is BESIDE["another class"]:
        pytest.skip("that class reads tokenizer.json only")
    change(folder)
    texts = ["合新词同 [X1] the The É 的一是", *SEEDS[:7]]
    tokenizer = Tokenizer.load(describe_checkpoint(folder))
    assert framed(tokenizer, texts) == transformers_ids(folder, texts)


#: Rules in tokenizer.json that BERT's class in transformers makes itself.
RULES: dict[str, Callable[[dict[str, Any]], None]] = {
    "no added tokens": lambda told: told.update(added_tokens=[]),
    "no normalizer": lambda told: told.update(normalizer=None),
    "no special tokens around a text": lambda told: told.update(post_processor=None),
    "other pieces": lambda told: told["model"].update(continuing_subword_prefix=""),
    "longer words": lambda told: told["model"].update(max_input_chars_per_word=200),
}


@pytest.mark.parametrize("tokenizer_class", ["BertTokenizer", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("change", RULES.values(), ids=RULES)
def test_of_berts_class_the_words_of_tokenizer_json_are_read_as_in_transformers(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], tokenizer_class: str
) -> None:
    folder = save_encoder(tmp_path)
    file = folder / "tokenizer.json"
    load_raw(describe_checkpoint(folder)).save(str(file))
    told = json.loads(file.read_text("utf-8"))
    change(told)
    file.write_text(json.dumps(told), "utf-8")
    write("tokenizer_config.json", {"tokenizer_class": tokenizer_class})(folder)
    texts = ["合[SEP]同 [MASK]", "É the contracting", "😀a😀", "a" * 150, *SEEDS[:7]]
    tokenizer = Tokenizer.load(describe_checkpoint(folder))
    assert framed(tokenizer, texts) == transformers_ids(folder, texts)


def test_blanks_behind_a_word_of_the_vocabulary_are_no_part_of_it(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    lines = [f"{word} \t" for word in vocabulary()]
    (folder / "vocab.txt").write_text("\n".join(lines), "utf-8")
    tokenizer = Tokenizer.load(describe_checkpoint(folder))
    assert framed(tokenizer, SEEDS[:7]) == transformers_ids(folder, SEEDS[:7])


def garble(folder: Path) -> None:
    (folder / "vocab.txt").write_bytes(b"\xff\xfe[UNK]\n")


def damage_json(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{", "utf-8")


def forget_special(folder: Path) -> None:
    (folder / "vocab.txt").write_text("a\nb\n", "utf-8")


def remove_all(folder: Path) -> None:
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()


@pytest.mark.parametrize("damage", [damage_json, forget_special, remove_all, garble])
def test_an_unusable_tokenizer_is_a_checkpoint_error(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = save_encoder(tmp_path)
    damage(folder)
    with pytest.raises(CheckpointError):
        Tokenizer.load(describe_checkpoint(folder))


@pytest.mark.skipif(not DATA.exists(), reason="the shared corpora are not here")
@pytest.mark.parametrize("name", ["laws_national", "poems_tang"])
def test_real_text_is_tokenised_alike(encoder_folder: Path, name: str) -> None:
    with lzma.open(DATA / "corpus" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(400), lines, strict=False)]
    checkpoint = describe_checkpoint(encoder_folder)
    expected = encode_slowly(load_raw(checkpoint), texts, with_offsets=True)
    assert_same(Tokenizer.load(checkpoint).encode(texts, with_offsets=True), expected)
