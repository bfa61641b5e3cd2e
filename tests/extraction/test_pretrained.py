"""Pretrained fields: found by name and type, better than a sample alone, never in its way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import features_of
from test_scoring import announcement, samples_of, share_right

from featpipe.extraction.fitted import FittedTemplate
from featpipe.extraction.model_cache import ModelCache
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.context import N_HASHED
from featpipe.extraction.scoring.field_fitting import fit_field, rows_of_samples
from featpipe.extraction.scoring.mentions import fit_mentions, prior_model
from featpipe.extraction.scoring.model_file import pack_model, unpack_model
from featpipe.extraction.scoring.pretrained import (
    PretrainedField,
    PretrainedFields,
    kind_of_values,
    shipped_fields,
)
from featpipe.extraction.scoring.sentence_model import SentenceModel, fit_sentences
from featpipe.extraction.scoring.sentence_words import N_PLACES
from featpipe.extraction.scoring.similarity import INSIDE, SIMILARITIES
from featpipe.extraction.template import FieldSpec, Template

TEST = range(4000, 4040)
NONE = np.empty(0, np.int32)


def field(name: str, kind: str, sentences: SentenceModel | None = None) -> PretrainedField:
    """It knows nothing."""
    measured = np.zeros(len(MEASURED))
    return PretrainedField(name, kind, NONE, NONE.astype(np.float16), measured, 0.0, sentences)


def pretrained_on(name: str, numbers: range) -> PretrainedField:
    """The words that a fit on many samples has learnt; nothing that compares with samples."""
    model = fit_field(samples_of(name, numbers), "organisation", (name,))
    columns = np.flatnonzero(model.mentions.hashed).astype(np.int32)
    weights = model.mentions.hashed[columns].astype(np.float16)
    return replace(field(name, "organisation"), columns=columns, weights=weights)


@pytest.fixture(scope="module")
def buyer() -> PretrainedField:
    return pretrained_on("甲方", range(60))


def test_a_field_is_found_by_its_name_a_synonym_and_a_like_type() -> None:
    fields = PretrainedFields([
        field("甲方", "organisation"), field("company", "text"), field("date", "text"),
        field("date", "date"),
    ])  # fmt: skip

    def found(*names: str, kind: str | None = None) -> tuple[str, str] | None:
        one = fields.find(names, kind)
        return None if one is None else (one.name, one.kind)

    assert found("甲方") == found("买方", "甲方") == ("甲方", "organisation")
    assert found("发包人", kind="text") == ("甲方", "organisation")
    assert found("甲方", kind="money") is None
    assert found("Date", kind="date") == ("date", "date")
    assert found("date", kind="text") == ("date", "text")
    assert found("date") == ("date", "date")
    # A synonym in another language stands in other documents.
    assert found("公司名称") is None
    assert found("company name") == ("company", "text")
    assert found("备注") is found() is None


def test_the_type_of_a_field_without_values_is_the_pretrained_one() -> None:
    fields = PretrainedFields([field("合同金额", "money")])
    values = [(features_of("编号 A-17"), "A-17")]
    assert kind_of_values([], ("合同金额",), fields) == "money"
    assert kind_of_values(values, ("合同金额",), fields) == "id"
    assert kind_of_values([], ("备注",), fields) == "text"


def test_fields_come_back_from_a_file_and_equal_fields_give_equal_bytes(tmp_path: Path) -> None:
    table = np.zeros(N_PLACES, np.float32)
    table[[3, 70]] = 0.5, -1.25
    words = replace(
        field("甲方", "organisation"),
        columns=np.array([5, 9], np.int32),
        weights=np.array([0.25, -2], np.float16),
        measured=np.arange(len(MEASURED)) / 8,
        bias=-0.5,
    )
    clause = field("transfer", "clause", SentenceModel(table, -3.5))
    files = [tmp_path / name for name in ("a.npz", "b.npz")]
    PretrainedFields([words, clause]).save(files[0])
    first, second = again = list(PretrainedFields.load(files[0]))
    PretrainedFields(again).save(files[1])
    assert files[0].read_bytes() == files[1].read_bytes()
    assert (first.name, first.kind, first.bias) == ("甲方", "organisation", -0.5)
    assert first.hashed[[5, 9]].tolist() == [0.25, -2]
    assert first.hashed.any()
    assert first.measured.tolist() == words.measured.tolist()
    assert first.sentences is None
    assert second.sentences is not None
    assert second.sentences.bias == -3.5
    assert second.sentences.weights.tolist() == table.tolist()


def test_samples_move_the_weights_of_their_own_words_alone(buyer: PretrainedField) -> None:
    samples = samples_of("甲方", range(100, 104))
    model = fit_field(samples, "organisation", ("甲方",), pretrained=buyer)
    assert model.is_pretrained
    rows = [r.hashed.matrix() for r in rows_of_samples(samples, "organisation", ("甲方",))]
    is_shown = np.zeros(N_HASHED, bool)
    is_shown[np.concatenate([one.ravel() for one in rows])] = True
    moved = model.mentions.hashed != buyer.hashed
    assert moved[is_shown].any()
    assert buyer.hashed[~is_shown].any()
    assert not moved[~is_shown].any()


def test_without_a_sample_it_finds_values_that_no_name_stands_beside(
    buyer: PretrainedField,
) -> None:
    by_name = fit_field([], "organisation", ("买受单位",))
    pretrained = fit_field([], "organisation", ("买受单位",), pretrained=buyer)
    assert share_right(by_name, "甲方", TEST) == 0
    assert share_right(pretrained, "甲方", TEST) > 0.3
    assert by_name.is_untaught
    assert not pretrained.is_untaught


def test_without_a_sample_it_must_be_surer_than_a_name(buyer: PretrainedField) -> None:
    features = features_of("保证人：司徒娟\n")
    for pretrained, chosen in ((None, [0]), (buyer, [])):
        model = fit_field([], "organisation", ("保证人",), pretrained=pretrained)
        scored = model.score(features)
        n = len(scored.groups)
        doubtful = replace(scored, confidences=np.full(n, 0.3), probabilities=np.zeros(n))
        assert model.choose(doubtful) == chosen
        assert model.choose(replace(doubtful, confidences=np.full(n, 0.4))) == [0]


def test_without_rows_it_is_the_model(buyer: PretrainedField) -> None:
    fitted, prior = fit_mentions([], pretrained=buyer), prior_model(pretrained=buyer)
    assert np.array_equal(fitted.hashed, buyer.hashed)
    assert np.array_equal(fitted.measured, prior.measured)
    assert fitted.bias == prior.bias


def test_where_samples_are_ranked_worse_by_it_it_is_not_used(buyer: PretrainedField) -> None:
    samples = samples_of("甲方", range(200, 206))
    turned = replace(buyer, weights=(-4 * buyer.weights).astype(np.float16))
    plain = fit_field(samples, "organisation", ("甲方",))
    model = fit_field(samples, "organisation", ("甲方",), pretrained=turned)
    assert pack_model(model, "f") == pack_model(plain, "f")


def test_a_kept_model_says_that_it_was_pretrained(buyer: PretrainedField) -> None:
    model = fit_field([], "organisation", ("买受单位",), pretrained=buyer)
    assert unpack_model(pack_model(model, "f"), "f").is_pretrained


def test_words_of_sentences_are_a_prior_too() -> None:
    held = features_of("第一句说转让。第二句说别的。")
    sentences = [(held, [(0, 7)])]
    prior = fit_sentences(sentences * 4)
    assert fit_sentences([], prior) is prior
    new = features_of("本句说转让。那句说付款。")
    by_prior, by_both = (
        fit_sentences([(features_of("别的文本。说付款。"), [(0, 5)])], one).logits(new)
        for one in (prior, None)
    )
    assert by_prior[0] - by_prior[1] > by_both[0] - by_both[1]


def test_shipped_weights_are_of_these_columns() -> None:
    fields = list(shipped_fields())
    assert {"甲方", "乙方", "合同金额", "项目名称", "合同名称"} <= {one.name for one in fields}
    by_samples = [MEASURED.index(name) for name in (*SIMILARITIES, *INSIDE)]
    for one in fields:
        assert len(one.columns) == len(one.weights) > 0
        assert one.columns.min() >= 0
        assert one.columns.max() < N_HASHED
        assert (np.diff(one.columns) > 0).all()
        assert np.isfinite(one.hashed).all()
        assert not one.measured[by_samples].any()
        assert (one.sentences is not None) == (one.kind == "clause")


def test_shipped_weights_find_amounts_and_parties_of_documents_of_our_own() -> None:
    """They would find nothing if words were hashed otherwise than when they were learnt."""
    for name, shown in (("甲方", "甲方"), ("乙方", "乙方"), ("金额", "合同金额")):
        kind = "money" if name == "金额" else "organisation"
        pretrained = shipped_fields().find((shown,), kind)
        assert pretrained is not None
        without, by_it = (
            fit_field([], kind, ("无名",), pretrained=one) for one in (None, pretrained)
        )
        assert share_right(by_it, name, TEST) > share_right(without, name, TEST)


def test_a_template_without_samples_has_the_fields_that_are_shipped() -> None:
    template = Template(name="公告", fields=(FieldSpec(name="乙方"), FieldSpec(name="合同金额")))
    fitted = FittedTemplate(template, [], "", ModelCache(None))
    assert [fitted.model(name).kind for name in fitted.facts] == ["organisation", "money"]
    n_given = n_right = 0
    for number in TEST:
        text, values = announcement(number)
        found = fitted.extract_fields(["乙方"], features_of(text))["乙方"].values
        n_given += len(found)
        n_right += [one.text for one in found] == [values["乙方"]]
    assert n_right >= 0.8 * n_given > 0


def test_cells_below_its_name_are_values_whatever_was_pretrained(buyer: PretrainedField) -> None:
    """The pretrained field prefers the organisation of another column."""
    text = (
        "备选名单\n编码\t推荐单位\t买受单位\n"
        "1\t宁波锦程贸易有限公司\t司徒娟\n2\t温州恒泰机械有限公司\t欧阳朔\n"
    )
    model = fit_field([], "organisation", ("买受单位",), pretrained=buyer)
    scored = model.score(features_of(text))
    assert (np.diff(scored.confidences) <= 0).all()
    chosen = [text[slice(*scored.groups[number].spans[0])] for number in model.choose(scored)]
    assert sorted(chosen) == ["司徒娟", "欧阳朔"]


def test_numbers_of_rows_are_no_amounts_of_a_column_that_its_name_heads() -> None:
    rows = "1\t宁波锦程\t742,300.00\n2\t温州恒泰\t95,160.00\n"
    text = f"开标结果\n序号\t投标单位\t中标金额（元）\n{rows}"
    template = Template(name="开标", fields=(FieldSpec(name="中标金额"),))
    fitted = FittedTemplate(template, [], "", ModelCache(None))
    found = fitted.extract_fields(["中标金额"], features_of(text))["中标金额"].values
    assert {one.text for one in found} == {"742,300.00", "95,160.00"}
