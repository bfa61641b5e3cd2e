# ruff: noqa: E501 - one case a line
"""The built-in model loads with plain transformers, is small, and knows near from far."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from featpipe.encoders.checkpoint import read_shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import BertTokenizerFast

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "data" / "models" / "zh-small"

NEAR_AND_FAR = (
    ("甲方应在收到发票后三十日内付款。", "甲方收到发票后应于30日内支付款项。", "本次减持计划的实施不会导致公司控制权发生变更。"),
    ("租赁期限为三年，自2021年1月1日起算。", "租赁期为三年，从2021年1月1日开始计算。", "水资源保护区内禁止新建排污口。"),
    ("怎么修改手机密码", "如何更改手机的密码", "今天天气很好"),
    ("公司中标污水处理厂工程。", "公司收到污水处理厂工程的中标通知书。", "向全体股东每十股派发现金红利二元。"),
    ("本合同自双方签字盖章之日起生效。", "合同经双方盖章签字后生效。", "原告请求判令被告赔偿经济损失。"),
)  # fmt: skip

CRF = {"crf.transitions", "crf.start_transitions", "crf.end_transitions"}

# Hardly a character in common: what people say, and what statutes say.
SAID_OTHERWISE = (
    ("老板拖欠工资", "用人单位未及时足额支付劳动报酬", "有限公司注册资本变更登记"),
    ("老公出轨能离婚吗", "夫妻感情破裂的，准予解除婚姻", "禁止新建排污口"),
    ("开车撞了人", "机动车发生交通事故", "公司减持计划"),
    ("房东", "出租人", "投标人"),
)


@pytest.fixture(scope="module")
def tokenizer() -> BertTokenizerFast:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def encode(tokenizer: BertTokenizerFast) -> Callable[[list[str]], np.ndarray]:
    """Mean-pooled unit vectors, as `1_Pooling` and `2_Normalize` say."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(FOLDER, dtype=torch.float32).eval()

    def encode_texts(texts: list[str]) -> np.ndarray:
        batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            states = model(**batch).last_hidden_state
        kept = batch["attention_mask"].unsqueeze(-1)
        mean = (states * kept).sum(1) / kept.sum(1)
        return torch.nn.functional.normalize(mean, dim=-1).numpy()

    return encode_texts


def test_the_folder_is_at_most_30_mb_and_has_its_card() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 30_000_000
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for word in ("CC BY-SA", "Apache-2.0", "jieba", "not good for"):
        assert word in card


def test_the_configuration_says_what_loaders_ask() -> None:
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "bert"
    assert config["dtype"] == "float16"
    assert config["max_position_embeddings"] == 512
    assert 6_000 <= config["vocab_size"] <= 9_000
    lines = (FOLDER / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == len(set(lines)) == config["vocab_size"]
    pooling = json.loads((FOLDER / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    assert pooling["pooling_mode_mean_tokens"] is True
    assert pooling["word_embedding_dimension"] == config["hidden_size"]


def test_weights_are_finite_float16_and_complete_for_both_uses() -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoModelForTokenClassification

    weights = load_file(FOLDER / "model.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float16}
    assert all(bool(torch.isfinite(value).all()) for value in weights.values())
    tagger, report = AutoModelForTokenClassification.from_pretrained(
        FOLDER, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert set(report["unexpected_keys"]) == CRF
    trunk, report = AutoModel.from_pretrained(
        FOLDER, output_loading_info=True, add_pooling_layer=False
    )
    assert not report["missing_keys"]
    assert set(report["unexpected_keys"]) == CRF | {"classifier.weight", "classifier.bias"}
    for name, value in trunk.state_dict().items():
        assert torch.equal(value, tagger.bert.state_dict()[name]), name


def test_texts_survive_the_tokenizer(tokenizer: BertTokenizerFast) -> None:
    for text in (
        "违约金为合同总价的千分之三",
        "甲方：南通恒岳电缆有限公司",
        "臺灣銀行股份有限公司董事會",
        "（2021）苏0602民初123号",
    ):
        encoded = tokenizer(text, return_offsets_mapping=True)
        assert tokenizer.unk_token_id not in encoded["input_ids"]
        spans = encoded["offset_mapping"][1:-1]
        assert "".join(text[start:end] for start, end in spans) == text.replace(" ", "")
        assert tokenizer.decode(encoded["input_ids"][1:-1]).replace(" ", "") == text.lower()


def test_full_width_is_read_as_half_width_is(tokenizer: BertTokenizerFast) -> None:
    for text in ("２０２１年１２月", "ａｂ３", "Ⅱ类①", "第⑬条"):
        pieces = tokenizer.tokenize(text)
        assert "[UNK]" not in pieces
        assert "".join(piece.removeprefix("##") for piece in pieces) == text.lower()


def test_every_chinese_character_is_one_token(tokenizer: BertTokenizerFast) -> None:
    text = "国家机关工作人员"
    assert tokenizer.tokenize(text) == list(text)
    assert tokenizer("字" * 600, truncation=True)["input_ids"][-1] == tokenizer.sep_token_id
    assert len(tokenizer("字" * 600, truncation=True)["input_ids"]) == 512


@pytest.mark.parametrize(("text", "near", "far"), NEAR_AND_FAR)
def test_a_rewording_is_nearer_than_another_matter(
    encode: Callable[[list[str]], np.ndarray], text: str, near: str, far: str
) -> None:
    one, two, three = encode([text, near, far])
    assert np.isclose(np.linalg.norm(one), 1, atol=1e-5)
    assert one @ two > one @ three + 0.2


@pytest.mark.parametrize(("text", "near", "far"), SAID_OTHERWISE)
def test_the_same_in_other_words_is_nearer_than_another_matter(
    encode: Callable[[list[str]], np.ndarray], text: str, near: str, far: str
) -> None:
    one, two, three = encode([text, near, far])
    assert one @ two > one @ three + 0.15


def test_entities_of_a_plain_sentence_are_found(tokenizer: BertTokenizerFast) -> None:
    import torch
    from transformers import AutoModelForTokenClassification

    text = "2021年3月15日，南通恒岳电缆有限公司与王建国在北京签订合同，合同金额为3,500万元，占20%。"
    model = AutoModelForTokenClassification.from_pretrained(FOLDER, dtype=torch.float32).eval()
    batch = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = batch.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        best = model(**batch).logits[0].argmax(-1).tolist()
    found = dict.fromkeys(("DATE", "ORG", "MONEY", "PERCENT"), "")
    for number, (start, end) in zip(best, offsets, strict=True):
        kind = model.config.id2label[number].partition("-")[2]
        if kind in found:
            found[kind] += text[start:end]
    assert found["DATE"] == "2021年3月15日"
    # The quick version may run one character too far; the name itself must be found.
    assert found["ORG"].startswith("南通恒岳电缆有限公司")
    assert len(found["ORG"]) <= len("南通恒岳电缆有限公司") + 2
    assert found["MONEY"] == "3,500万元"
    assert found["PERCENT"] == "20%"


def test_names_are_found_whole_and_by_the_forward_that_gives_the_vectors() -> None:
    from featpipe.encoders.encode_and_tag import encode_and_tag
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.tagger import Tagger

    encoder = Encoder.load(FOLDER)
    tagger = Tagger.load(FOLDER, trunk=encoder.trunk)
    assert tagger.shares_trunk
    texts = [
        "浙江向日葵光能科技股份有限公司与王建国在北京签订《设备采购合同》。",
        "2021年3月15日，南通恒岳电缆有限公司取得3,500万元，占20%。",
    ]
    encoded, entities = encode_and_tag(encoder, tagger, texts)
    assert encoded.vectors.tobytes() == encoder.encode(texts).vectors.tobytes()
    labels = [tagger.labels[number] for number in entities.label]
    bounds = list(zip(entities.start.tolist(), entities.end.tolist(), labels, strict=True))
    first, second = entities.lengths.tolist()
    assert [(texts[0][s:e], kind) for s, e, kind in bounds[:first]] == [
        ("浙江向日葵光能科技股份有限公司", "ORG"),
        ("王建国", "PER"),
        ("北京", "LOC"),
        ("《设备采购合同》", "LAW"),
    ]
    assert [(texts[1][s:e], kind) for s, e, kind in bounds[first : first + second]] == [
        ("2021年3月15日", "DATE"),
        ("南通恒岳电缆有限公司", "ORG"),
        ("3,500万元", "MONEY"),
        ("20%", "PERCENT"),
    ]


@pytest.mark.usefixtures("scripts_are_importable")
def test_scores_of_names_are_as_high_as_the_names_are_right() -> None:
    """On sentences labelled by hand; softmax probabilities claim a third more than is right."""
    from calibrate_small_model import NAMES, read_labelled
    from eval_ner import Sample, judge_scores, measure_calibration

    from featpipe.encoders.tagger import Tagger

    samples = [Sample(*one) for one in read_labelled()]
    scores, is_right, kind = judge_scores(Tagger.load(FOLDER), samples, NAMES)
    assert len(scores) > 200
    assert set(kind.tolist()) == set(NAMES)
    assert abs(scores.mean() - is_right.mean()) < 0.02
    assert measure_calibration(scores, is_right)[0] < 0.08


@pytest.mark.usefixtures("scripts_are_importable")
def test_the_calibration_error_is_that_of_ten_bins() -> None:
    from eval_ner import measure_calibration

    scores = np.array([0.05, 0.92, 0.98, 1.0, 0.55, 0.45])
    is_right = np.array([False, True, True, False, True, False])
    error, precision, share = measure_calibration(scores, is_right)
    gaps = [0.05, (0.92 + 0.98 + 1.0) - 2, 0.45, 0.45]
    assert error == pytest.approx(sum(gaps) / 6)
    assert (precision, share) == (pytest.approx(2 / 3), 0.5)


def test_no_name_goes_on_as_another_kind() -> None:
    """Not even where every token on its own would."""
    from featpipe.encoders.tagger import Tagger

    head = Tagger.load(FOLDER).head
    labels = list(json.loads((FOLDER / "config.json").read_text("utf-8"))["label2id"])
    chance = np.random.default_rng(0)
    scores = chance.normal(0, 20, (3000, len(labels))).astype(np.float32)
    lengths = np.full(100, 30)
    alone, path = scores.argmax(1), head.choose(scores, lengths)[0]

    def count_strays(chosen: np.ndarray) -> int:
        rows = np.array(labels)[chosen].reshape(100, 30)
        before = np.concatenate([np.full((100, 1), "O"), rows[:, :-1]], axis=1)
        return sum(
            label.startswith("I-") and label[1:] != last[1:]
            for label, last in zip(rows.flat, before.flat, strict=True)
        )

    assert count_strays(alone) > 100
    assert count_strays(path) == 0


def test_labels_are_bio_over_the_announced_kinds() -> None:
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    kinds = {label.partition("-")[2] for label in config["label2id"]} - {""}
    assert kinds == {"PER", "ORG", "LOC", "DATE", "MONEY", "PERCENT", "LAW"}
    assert set(config["label2id"]) == {"O"} | {f"{head}-{kind}" for head in "BI" for kind in kinds}
    assert {int(number): label for number, label in config["id2label"].items()} == {
        number: label for label, number in config["label2id"].items()
    }


def test_the_quick_recipe_writes_the_files_of_the_published_folder(tmp_path: Path) -> None:
    """On the project's own documents alone, as in a checkout without the shared data."""
    (tmp_path / "empty").mkdir()
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "train_small_model.py", "--data", tmp_path / "empty",
         "--work", tmp_path / "work", "--out", tmp_path / "out", "--tokens", "256", "--threads", "1",
         "--float32", "--steps", *"111111"],
        check=True, capture_output=True,
    )  # fmt: skip
    names = {p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()}
    published = {p.relative_to(FOLDER) for p in FOLDER.rglob("*") if p.is_file()}
    # Probabilities are fitted by calibrate_small_model.py on what is written.
    assert names == published - {Path("README.md"), Path("entity_calibration.json")}
    written, shipped = (
        {name: shape for name, shape in read_shapes(folder / "model.safetensors").items()
         if "word_embeddings" not in name}
        for folder in (tmp_path / "out", FOLDER)
    )  # fmt: skip
    assert written == shipped


@pytest.mark.usefixtures("scripts_are_importable")
def test_spans_of_many_texts_are_those_of_each() -> None:
    from eval_ner import find_spans

    from featpipe.encoders.tagger import Tagger

    tagger = Tagger.load(FOLDER)
    texts = ["王建国在北京。", "", "没有", "占20%。"]
    each = [next(find_spans(tagger, [text])) for text in texts]
    assert [len(spans) for spans in each] == [2, 0, 0, 1]
    assert list(find_spans(tagger, texts * 100)) == each * 100


@pytest.mark.parametrize("name", ["eval_model.py", "train_small_model.py"])
def test_data_that_is_not_there_is_not_taken_for_none(tmp_path: Path, name: str) -> None:
    command = [sys.executable, ROOT / "scripts" / name, "--data", tmp_path / "none"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert f"{tmp_path / 'none'} is no folder with data" in ended.stderr


def test_an_evaluation_that_does_not_exist_is_not_passed_over(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "eval_model.py", "--data", tmp_path]
    ended = subprocess.run(
        [*command, "--only", "msra", "msar"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "invalid choice: 'msar' (choose from " in ended.stderr


@pytest.mark.usefixtures("scripts_are_importable")
def test_checkpoints_of_other_samples_are_refused(tmp_path: Path) -> None:
    from train_small_model import claim

    claim(tmp_path, {"seed": 20, "texts": "a"})
    claim(tmp_path, {"seed": 20, "texts": "a"})
    with pytest.raises(SystemExit, match="of another texts: give a new --work"):
        claim(tmp_path, {"seed": 20, "texts": "b"})
    claim(tmp_path, {"seed": 20, "texts": "a"})


@pytest.mark.usefixtures("scripts_are_importable")
def test_a_stage_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path) -> None:
    import torch
    from small_model.stages import Run, Stage, run_stage

    def loss(network: torch.nn.Module, rng: np.random.Generator) -> tuple[dict, dict]:
        sample = torch.from_numpy(rng.normal(size=(4, 3)).astype(np.float32))
        return {"loss": network(sample).pow(2).mean()}, {}

    def weights(folder: Path, *steps: int) -> list[bytes]:
        for n_steps in steps:
            torch.manual_seed(1)
            network = torch.nn.Linear(3, 2)
            run = Run(folder, seed=7, device="cpu", is_mixed=False, every=5)
            run_stage(Stage("toy", n_steps, 0.01, loss), network, run, lambda _: None)
        return [value.numpy().tobytes() for value in network.state_dict().values()]

    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    whole.mkdir()
    resumed.mkdir()
    assert weights(whole, 20) == weights(resumed, 7, 20)
    assert weights(whole, 20) != weights(tmp_path, 19)
