"""doccano and Label Studio: files as those tools write them, there and back, and broken ones."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from featpipe.cache.cache import Cache
from featpipe.cli.main import featpipe
from featpipe.errors import TemplateError
from featpipe.extraction.doccano import write_doccano
from featpipe.extraction.label_exchange import import_labels
from featpipe.extraction.label_studio import write_label_studio
from featpipe.extraction.labels import SampleText
from featpipe.extraction.template import SampleSpec
from featpipe.extraction.template_file import load_template

if TYPE_CHECKING:
    from featpipe.extraction.label_exchange import Imported

Json = dict[str, Any]

TEXT = "甲方：海南毓坤有限公司，联系人：唐振"
PARTY, PERSON = (3, 11), (16, 18)


def region(name: str, start: int, end: int, of: str = TEXT, **more: object) -> Json:
    """A result as Label Studio writes it."""
    value = {"start": start, "end": end, "text": of[start:end], "labels": [name], **more}
    return {"value": value, "id": f"r{start}", "from_name": "label", "to_name": "text",
            "type": "labels", "origin": "manual"}  # fmt: skip


def annotation(*results: Json, **more: object) -> Json:
    return {"id": 11, "completed_by": 1, "result": list(results), "was_cancelled": False,
            "ground_truth": False, "created_at": "2024-03-01T09:21:37.104822Z",
            "updated_at": "2024-03-01T09:21:37.104846Z", "draft_created_at": None,
            "lead_time": 12.884, "prediction": {}, "result_count": len(results), "task": 1,
            "unique_id": "6d1f", "import_id": None, "last_action": None, "project": 3,
            "parent_prediction": None, "parent_annotation": None, **more}  # fmt: skip


def task(*annotations: Json, text: str = TEXT, **more: object) -> Json:
    return {"id": 7, "annotations": list(annotations), "file_upload": "1f2e-tasks.json",
            "drafts": [], "predictions": [], "data": {"text": text}, "meta": {},
            "created_at": "2024-03-01T09:20:51.000000Z", "inner_id": 1, "total_annotations": 1,
            "cancelled_annotations": 0, "total_predictions": 0, "comment_count": 0,
            "last_comment_updated_at": None, "project": 3, "updated_by": 1,
            "comment_authors": [], **more}  # fmt: skip


LABELLED = task(annotation(region("甲方", *PARTY), region("联系人", *PERSON)))
DOCCANO = {"id": 15, "text": TEXT, "label": [[3, 11, "甲方"], [16, 18, "联系人"]], "Comments": []}
ENTITIES = {
    "id": 15, "text": TEXT, "Comments": [], "relations": [],
    "entities": [{"id": 4, "label": "甲方", "start_offset": 3, "end_offset": 11},
                 {"id": 5, "label": "联系人", "start_offset": 16, "end_offset": 18}],
}  # fmt: skip
ENDED = {**ENTITIES, "text": TEXT + "。"}
BOTH = {"甲方": ("海南毓坤有限公司",), "联系人": ("唐振",)}


def studio(tmp_path: Path, *tasks: Json, **options: Any) -> Imported:
    file = tmp_path / "l.json"
    file.write_text(json.dumps(tasks), "utf-8")
    return import_labels(file, "label-studio", **options)


def doccano(tmp_path: Path, *rows: Json | str, **options: Any) -> Imported:
    file = tmp_path / "d.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(lines), "utf-8")
    return import_labels(file, "doccano", **options)


def reasons(imported: Imported) -> str:
    return "\n".join(str(one) for one in imported.left_out)


# ---- files as the tools write them


@pytest.mark.parametrize("row", [
    DOCCANO, ENTITIES, {"text": TEXT, "labels": DOCCANO["label"]},
    {"data": TEXT, "label": DOCCANO["label"], "featpipe": None},
])  # fmt: skip
def test_every_shape_of_doccano_is_read(tmp_path: Path, row: Json) -> None:
    imported = doccano(tmp_path, row, "")
    assert imported.left_out == ()
    [sample] = imported.samples
    assert (sample.text, dict(sample.fields)) == (TEXT, BOTH)
    assert dict(sample.spans) == {"甲方": (PARTY,), "联系人": (PERSON,)}


@pytest.mark.parametrize("one", [
    LABELLED,
    {"data": {"content": TEXT}, "completions": [{"result": [
        {"value": {"start": 3, "end": 11, "labels": ["甲方"]}},
        {"value": {"start": 16, "end": 18, "labels": ["联系人"]}}]}]},
])  # fmt: skip
def test_tasks_of_new_and_old_label_studio_are_read(tmp_path: Path, one: Json) -> None:
    imported = studio(tmp_path, one)
    assert imported.left_out == ()
    assert [dict(sample.fields) for sample in imported.samples] == [BOTH]
    assert dict(imported.samples[0].spans) == {"甲方": (PARTY,), "联系人": (PERSON,)}


def test_a_label_that_others_have_is_none_and_with_partial_unknown(tmp_path: Path) -> None:
    rows = DOCCANO, {"id": 16, "text": "没有当事人。", "label": []}
    assert dict(doccano(tmp_path, *rows).samples[1].fields) == {"甲方": (), "联系人": ()}
    assert dict(doccano(tmp_path, *rows, is_partial=True).samples[1].fields) == {}


def test_a_region_of_two_labels_is_a_value_of_both(tmp_path: Path) -> None:
    both = region("甲方", *PARTY, labels=["甲方", "卖方"])
    [sample] = studio(tmp_path, task(annotation(both))).samples
    assert sample.spans == {"甲方": (PARTY,), "卖方": (PARTY,)}


def test_overlapping_labels_are_taken_and_equal_ones_once(tmp_path: Path) -> None:
    row = {"text": TEXT, "label": [[3, 11, "甲方"], [3, 5, "地点"], [3, 11, "甲方"]]}
    [sample] = doccano(tmp_path, row).samples
    assert sample.spans == {"甲方": (PARTY,), "地点": ((3, 5),)}


def test_offsets_of_utf16_units_are_told_by_the_text_of_the_region(tmp_path: Path) -> None:
    text = "😀😀甲方：某公司😀乙方"
    shifted = region("甲方", 7, 10, text, text="某公司")
    inside = region("乙方", 5, 9, text)  # code points, and half of them behind an emoji
    [sample] = studio(tmp_path, task(annotation(shifted, inside), text=text)).samples
    assert sample.fields == {"甲方": ("某公司",), "乙方": (text[5:9],)}
    assert sample.spans["甲方"] == ((5, 8),)


def test_layout_within_a_region_may_be_written_otherwise(tmp_path: Path) -> None:
    text = "住所：海南\n海口"
    [sample] = studio(
        tmp_path, task(annotation(region("住所", 3, 8, text, text="海南\\n海口")), text=text)
    ).samples
    assert sample.fields == {"住所": ("海南\n海口",)}


# ---- what cannot be used is named, and its field unknown


@pytest.mark.parametrize(("result", "reason"), [
    (region("甲方", 3, 99, text="x"), "at 3:99 stands"),
    ({**region("甲方", 3, 99), "value": {"start": 3, "end": 99, "labels": ["甲方"]}},
     "甲方: 3:99 is beyond the text, which has 18 characters"),
    (region("甲方", 3, 11, text="另一家"), "甲方: at 3:11 stands '海南毓坤有限公司', not '另一家'"),
    (region("甲方", 3, 3), "3:3 is no place"),
    ({"value": {"start": "/div[1]/text()[1]", "end": 11, "labels": ["甲方"]}}, "is no place"),
])  # fmt: skip
def test_a_field_with_a_label_that_cannot_be_used_is_unknown(
    tmp_path: Path, result: Json, reason: str
) -> None:
    bad = task(annotation(result, region("联系人", *PERSON)), text=TEXT)
    imported = studio(tmp_path, bad, {**LABELLED, "id": 8, "data": {"text": TEXT + "。"}})
    assert reason in reasons(imported)
    assert "task 7" in reasons(imported)
    assert [dict(sample.fields) for sample in imported.samples] == [{"联系人": ("唐振",)}, BOTH]


@pytest.mark.parametrize("label", [
    [3, 99, "甲方"], [True, 3, "甲方"], [11, 3, "甲方"], ["3", "11", "甲方"], [-1, 3, "甲方"],
])  # fmt: skip
def test_doccano_labels_outside_the_text_are_named(tmp_path: Path, label: list[object]) -> None:
    imported = doccano(tmp_path, {"text": TEXT, "label": [label, [3, 11, "甲方"]]}, ENDED)
    assert reasons(imported).startswith("line 1: left out: 甲方: ")
    assert [dict(sample.fields) for sample in imported.samples] == [{"联系人": ()}, BOTH]


@pytest.mark.parametrize(("line", "reason"), [
    ('{"text": "某公司", "label": [[0, 3', "line 2: left out: is not whole JSON"),
    ("[" * 100_000, "line 2: left out: is nested too deeply"),
    ("[1]", "no object"),
    ('{"text": "某公司"}', "no list of labels"),
    ('{"text": "某公司", "label": 3}', "no list of labels"),
    ('{"text": null, "label": []}', "no text"),
    ('{"text": "\\ud83d", "label": []}', "half a character"),
    ('{"text": "某公司", "label": [], "featpipe": "{}"}', "not as it was exported"),
])  # fmt: skip
def test_a_bad_line_is_named_and_the_others_are_taken(
    tmp_path: Path, line: str, reason: str
) -> None:
    imported = doccano(tmp_path, DOCCANO, line, {"text": "乙", "label": []})
    assert [sample.text for sample in imported.samples] == [TEXT, "乙"]
    assert len(imported.left_out) == 1
    assert reason in reasons(imported)


@pytest.mark.parametrize(("row", "reason"), [
    ({"text": TEXT, "label": ["pos"]}, "'pos' is no label"),
    ({"text": TEXT, "annotations": [{"label": 7, "start_offset": 0, "end_offset": 2, "user": 1}]},
     "the label 7 is no name"),
    ({"text": TEXT, "label": [[0, 2, "\ud83d"]]}, "is no name of a field"),
    ({**ENTITIES, "relations": [{"id": 1, "from_id": 4, "to_id": 5, "type": "有"}]}, "relations"),
])  # fmt: skip
def test_other_things_in_doccano_rows_are_named(tmp_path: Path, row: Json, reason: str) -> None:
    imported = doccano(tmp_path, row)
    assert len(imported.samples) == len(imported.left_out) == 1
    assert reason in reasons(imported)


def test_other_results_of_label_studio_are_named(tmp_path: Path) -> None:
    choice = {"type": "choices", "from_name": "kind", "value": {"choices": ["合同"]}}
    relation = {"type": "relation", "from_id": "r3", "to_id": "r16", "direction": "right"}
    imported = studio(tmp_path, task(annotation(region("甲方", *PARTY), choice, relation)))
    assert [dict(one.fields) for one in imported.samples] == [{"甲方": ("海南毓坤有限公司",)}]
    assert "'choices'" in reasons(imported)
    assert "'relation'" in reasons(imported)


@pytest.mark.parametrize("cut", [1, 40, 5])
def test_of_half_a_list_the_whole_tasks_are_read(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "l.json"
    file.write_text(json.dumps([LABELLED, {**LABELLED, "id": 8}], indent=1)[:-cut], "utf-8")
    imported = import_labels(file, "label-studio")
    assert len(imported.samples) == 1
    assert "the file breaks off" in reasons(imported)


def test_a_second_list_is_named(tmp_path: Path) -> None:
    file = tmp_path / "l.json"
    file.write_text(json.dumps([LABELLED]) + "\n[]\n", "utf-8")
    imported = import_labels(file, "label-studio")
    assert [dict(one.fields) for one in imported.samples] == [BOTH]
    assert "behind the list of tasks" in reasons(imported)


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"data": {}}]', "[", "", "[" * 100_000])
def test_what_is_no_label_studio_export_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "l.json"
    file.write_text(content, "utf-8")
    with pytest.raises(TemplateError, match=r"l\.json: is no Label Studio export"):
        import_labels(file, "label-studio")


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\xff\xfe"])
def test_what_is_no_doccano_export_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "d.jsonl"
    file.write_bytes(content)
    with pytest.raises(TemplateError, match=r"d\.jsonl: is no"):
        import_labels(file, "doccano")


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(json.dumps(DOCCANO), "utf-8-sig")
    assert len(import_labels(tmp_path / "d.jsonl", "doccano").samples) == 1


# ---- several annotators


OTHER = annotation(region("甲方", 3, 7), region("联系人", *PERSON), id=12, completed_by=2)
FIRST = LABELLED["annotations"][0]


def test_what_annotators_differ_on_is_unknown(tmp_path: Path) -> None:
    imported = studio(tmp_path, task(FIRST, OTHER))
    assert dict(imported.samples[0].fields) == {"联系人": ("唐振",)}
    assert reasons(imported) == (
        "task 7, annotation 11: left out: 甲方: labelled otherwise than by task 7, annotation 12"
    )


def test_annotators_who_agree_are_one(tmp_path: Path) -> None:
    imported = studio(tmp_path, task(FIRST, {**FIRST, "id": 12}))
    assert [dict(one.fields) for one in imported.samples] == [BOTH]
    assert imported.left_out == ()


def test_cancelled_annotations_are_named_and_do_not_count(tmp_path: Path) -> None:
    imported = studio(tmp_path, task({**OTHER, "was_cancelled": True}, FIRST))
    assert [dict(one.fields) for one in imported.samples] == [BOTH]
    assert "annotation 12 was cancelled" in reasons(imported)


def test_the_ground_truth_wins_and_the_other_is_named(tmp_path: Path) -> None:
    imported = studio(tmp_path, task(FIRST, {**OTHER, "ground_truth": True}))
    assert imported.samples[0].fields["甲方"] == ("海南毓坤",)
    assert "annotation 11 gives way" in reasons(imported)


def test_predictions_teach_nothing(tmp_path: Path) -> None:
    guess = {"id": 3, "model_version": "m", "score": 0.9, "result": FIRST["result"]}
    imported = studio(tmp_path, {**task(predictions=[guess]), "id": 9}, LABELLED)
    assert [dict(one.fields) for one in imported.samples] == [BOTH]
    assert reasons(imported).startswith("task 9: left out: it has no annotation; predictions")


def test_a_text_labelled_twice_in_one_doccano_file_is_one_sample(tmp_path: Path) -> None:
    other = {**DOCCANO, "label": [[3, 7, "甲方"], [16, 18, "联系人"]]}
    imported = doccano(tmp_path, DOCCANO, other)
    assert [dict(one.fields) for one in imported.samples] == [{"联系人": ("唐振",)}]
    assert "line 1: left out: 甲方: labelled otherwise than by line 2" in reasons(imported)


# ---- there and back

NAMES = ("甲方", "联系人", "金额")
FORMS = {"doccano": write_doccano, "label-studio": write_label_studio}


def as_tool_exports(form: str, written: str) -> str:
    """What the tool makes of an imported file: its own ids, keys and order."""
    if form == "doccano":
        rows = [json.loads(line) for line in written.split("\n") if line]
        for number, row in enumerate(rows):
            row |= {"id": 100 + number, "Comments": [], "label": sorted(row["label"])[::-1]}
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows[::-1])
    tasks = json.loads(written)
    for number, one in enumerate(tasks, start=40):
        results = one["annotations"][0]["result"][::-1]
        one |= {"id": number, "annotations": [annotation(*results)], "inner_id": number}
    return json.dumps(tasks[::-1])


@st.composite
def sample_texts(draw: st.DrawFn) -> SampleText:
    text = draw(st.text(st.sampled_from('甲乙公司 \n\r\u2028😀"\\<a1é'), min_size=1, max_size=30))
    names = st.sampled_from(NAMES)
    place = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    real = place.filter(lambda at: at[0] < at[1])
    places = draw(st.dictionaries(names, st.lists(real, max_size=3, unique=True)))
    spans = {name: tuple(at) for name, at in places.items() if at and draw(st.booleans())}
    values = st.lists(st.text("甲1,", max_size=3), max_size=3).map(tuple)
    fields = draw(st.dictionaries(names, values))
    record = st.dictionaries(names, st.text("甲乙", min_size=1))
    records = draw(st.lists(record, max_size=2))
    source: Json = draw(st.sampled_from([
        {"text": text}, {"document": "a/b.txt"}, {"document": "c.pdf", "key": "0f" * 16},
    ]))  # fmt: skip
    sample = SampleSpec(**source, fields=fields, records=tuple(records), spans=spans,
                        complete=draw(st.booleans()))  # fmt: skip
    return SampleText(sample, text, {name: at for name, at in places.items() if at})


@settings(max_examples=60, deadline=None)
@given(st.lists(sample_texts(), max_size=4))
def test_samples_come_back_as_they_went(
    tmp_path_factory: pytest.TempPathFactory, samples: list[SampleText]
) -> None:
    for form, write in FORMS.items():
        file = tmp_path_factory.mktemp("there") / "x"
        written = write(samples, NAMES)
        for content, order in ((written, 1), (as_tool_exports(form, written), -1)):
            file.write_text(content, "utf-8", newline="")
            imported = import_labels(file, form)
            assert list(imported.samples) == [one.sample for one in samples][::order]
            assert imported.left_out == ()


PARTIAL = SampleText(
    SampleSpec(document="a.txt", key="0f" * 16, fields={"甲方": ("海南毓坤",), "金额": ()},
               spans={"甲方": ((3, 7),)}),
    TEXT, {"甲方": ((3, 7),)},
)  # fmt: skip


def relabelled(form: str, one: SampleText, labels: list[tuple[int, int, str]]) -> str:
    """An export in which someone has set other labels; the statements of none stay."""
    if form == "doccano":
        return json.dumps(json.loads(FORMS[form]([one], NAMES)) | {"label": labels})
    [written] = json.loads(FORMS[form]([one], NAMES))
    kept = [r for r in written["annotations"][0]["result"] if r["type"] == "choices"]
    regions = [region(name, a, b) for a, b, name in labels]
    return json.dumps([written | {"annotations": [annotation(*regions, *kept)]}])


@pytest.mark.parametrize("form", FORMS)
def test_only_what_was_labelled_anew_changes(tmp_path: Path, form: str) -> None:
    file = tmp_path / "x"
    file.write_text(relabelled(form, PARTIAL, [(3, 11, "甲方")]), "utf-8")
    [sample] = import_labels(file, form).samples
    assert (sample.document, sample.key) == ("a.txt", "0f" * 16)
    assert sample.fields == {"甲方": ("海南毓坤有限公司",), "金额": ()}
    assert sample.spans == {"甲方": (PARTY,)}
    assert not sample.is_read_for("联系人")


@pytest.mark.parametrize("form", FORMS)
def test_a_label_taken_away_is_none_and_a_new_one_is_known(tmp_path: Path, form: str) -> None:
    file = tmp_path / "x"
    file.write_text(relabelled(form, PARTIAL, [(16, 18, "联系人")]), "utf-8")
    [sample] = import_labels(file, form).samples
    assert sample.fields == {"甲方": (), "联系人": ("唐振",), "金额": ()}
    assert sample.spans == {"联系人": (PERSON,)}


def test_none_that_is_no_longer_said_is_unknown_and_can_be_said_anew(tmp_path: Path) -> None:
    [written] = json.loads(write_label_studio([PARTIAL], NAMES))
    results = written["annotations"][0]["result"]
    assert results[-1]["value"] == {"choices": ["金额"]}
    results[-1]["value"] = {"choices": ["联系人"]}
    [sample] = studio(tmp_path, written).samples
    assert sample.fields == {"甲方": ("海南毓坤",), "联系人": ()}
    results[-1]["value"] = {"choices": ["甲方", "金额"]}
    imported = studio(tmp_path, written)
    assert "甲方: has labels, and is said to have no value" in reasons(imported)
    assert dict(imported.samples[0].fields) == {"金额": ()}


def test_values_of_records_that_are_labelled_anew_leave_them_by_name(tmp_path: Path) -> None:
    rows = SampleSpec(text=TEXT, records=({"甲方": "海南毓坤", "联系人": "唐振"},), complete=True)
    one = SampleText(rows, TEXT, {"甲方": ((3, 7),), "联系人": (PERSON,)})
    labels = [(3, 11, "甲方"), (16, 18, "联系人")]
    imported = doccano(tmp_path, relabelled("doccano", one, labels))
    [sample] = imported.samples
    assert sample.values_of("甲方") == ("海南毓坤有限公司",)
    assert sample.records == ({"联系人": "唐振"},)
    assert sample.complete
    assert "甲方: is labelled anew" in reasons(imported)


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_a_changed_text_are_named(tmp_path: Path, form: str) -> None:
    written = FORMS[form]([PARTIAL, PARTIAL], NAMES).replace("唐振", "唐震", 1)
    (tmp_path / "x").write_text(written, "utf-8")
    imported = import_labels(tmp_path / "x", form)
    assert list(imported.samples) == [PARTIAL.sample]
    assert "its text is not the one that was exported" in reasons(imported)


# ---- the commands


def call(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


TEMPLATE = 'name = "t"\n[[fields]]\nname = "甲方"\n[[fields]]\nname = "金额"\n'


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "t.toml").write_text(TEMPLATE, "utf-8")
    return tmp_path / "t.toml"


def test_unknown_fields_are_named_and_the_rest_is_imported(tmp_path: Path, template: Path) -> None:
    (tmp_path / "d.jsonl").write_text(json.dumps(DOCCANO), "utf-8")
    result = call("template", "import", tmp_path / "d.jsonl", "--from", "doccano",
                  "--template", template)  # fmt: skip
    assert result.exit_code == 1
    assert "d.jsonl: line 1: left out: the template has no field '联系人'" in result.stderr
    assert json.loads(result.stdout)["fields"] == {"甲方": ["海南毓坤有限公司"]}


def test_options_of_labelled_texts_are_refused_for_tables(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()
    result = call("template", "import", tmp_path / "s.db", "--from", "table", "--partial")
    assert result.exit_code == 2
    assert "are for labelled texts" in result.stderr


@pytest.mark.parametrize("form", FORMS)
def test_cached_samples_go_out_and_come_back(
    cache: Path, templates: Path, tmp_path: Path, form: str
) -> None:
    lease = templates / "lease.toml"
    loaded = load_template(lease)
    out = call("template", "export", lease, "--to", form, "--cache", cache)
    assert out.exit_code == 0
    (tmp_path / "x").write_text(out.stdout, "utf-8")
    back = call("template", "import", tmp_path / "x", "--from", form, "--template", lease,
                "--cache", cache)  # fmt: skip
    assert back.exit_code == 0
    assert back.stderr == f"samples {len(loaded.samples)} imported, 0 left out\n"
    rows = [json.loads(line) for line in back.stdout.splitlines()]
    assert [SampleSpec.model_validate(row) for row in rows] == list(loaded.samples)


@pytest.mark.parametrize("form", FORMS)
def test_samples_named_from_the_templates_folder_come_back(
    cache: Path, tmp_path: Path, form: str
) -> None:
    """As a template names them beside which they lie: `../docs/a.txt` is no id of the cache."""
    folder, docs = tmp_path / "templates", tmp_path / "docs"
    folder.mkdir()
    docs.mkdir()
    (docs / "a.txt").write_text(TEXT, "utf-8")
    template = folder / "t.toml"
    template.write_text(
        '[[fields]]\nname = "联系人"\n[[samples]]\ndocument = "../docs/a.txt"\n'
        '[samples.fields]\n"联系人" = "唐振"\n',
        "utf-8",
    )
    out = call("template", "export", template, "--to", form, "--cache", cache)
    (tmp_path / "x").write_text(out.stdout, "utf-8")
    ask = ("template", "import", tmp_path / "x", "--from", form, "--template", template,
           "--cache", cache)  # fmt: skip
    back = call(*ask)
    assert (back.exit_code, back.stderr) == (0, "samples 1 imported, 0 left out\n")
    assert SampleSpec.model_validate_json(back.stdout) == load_template(template).samples[0]
    (docs / "a.txt").write_text(TEXT + "。", "utf-8")
    assert "holds another text than the one that was labelled" in call(*ask).stderr
    (docs / "a.txt").write_bytes(bytes(range(256)) * 40)
    assert "a.txt" in call(*ask).stderr
    (docs / "a.txt").unlink()
    assert "the cache does not hold ../docs/a.txt" in call(*ask).stderr


def test_the_values_of_cached_samples_are_labelled(cache: Path, templates: Path) -> None:
    out = call("template", "export", templates / "lease.toml", "--to", "label-studio",
               "--cache", cache)  # fmt: skip
    for one in json.loads(out.stdout):
        document = json.loads(one["data"]["featpipe"])["sample"]["document"]
        with Cache.open(cache) as opened:
            found = opened.find_document(document)
            assert found is not None
            assert found.text == one["data"]["text"]
        labels = [r["value"] for r in one["annotations"][0]["result"] if r["type"] == "labels"]
        assert len({name for value in labels for name in value["labels"]}) >= 5
        assert all(found.text[v["start"] : v["end"]] == v["text"] for v in labels)


def test_without_a_cache_samples_of_documents_are_named(templates: Path) -> None:
    out = call("template", "export", templates / "lease.toml", "--to", "doccano")
    assert (out.exit_code, out.stdout) == (1, "")
    assert "left out: its document is in a cache: name it by --cache" in out.stderr


def test_documents_that_the_cache_holds_otherwise_are_named(cache: Path, tmp_path: Path) -> None:
    with Cache.open(cache) as opened:
        document = next(iter(opened.documents()))
        text, key = document.text, document.key.hex()
    cases = {
        "does not hold gone.txt": (SampleSpec(document="gone.txt"), text),
        "in the version that was labelled": (SampleSpec(document=document.id, key="0f" * 16), text),
        "holds another text": (SampleSpec(document=document.id), text + "。"),
    }
    good = SampleText(SampleSpec(document="moved.txt", key=key), text, {"甲方": ((0, 2),)})
    bad = [SampleText(sample, at, {}) for sample, at in cases.values()]
    (tmp_path / "x").write_text(write_doccano([good, *bad], ["甲方"]), "utf-8")
    result = call("template", "import", tmp_path / "x", "--from", "doccano", "--cache", cache)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["document"] == "moved.txt"
    for line, reason in zip(result.stderr.splitlines(), cases, strict=False):
        assert reason in line


def test_the_configuration_has_every_field_twice(template: Path) -> None:
    from xml.etree import ElementTree as ET

    out = call("template", "export", template, "--to", "label-studio-config")
    view = ET.fromstring(out.stdout)  # noqa: S314  # our own
    for tag in ("Label", "Choice"):
        assert [one.get("value") for one in view.iter(tag)] == ["甲方", "金额"]
    controls = chain(view.iter("Labels"), view.iter("Choices"))
    assert {(one.get("name"), one.get("toName")) for one in controls} == {
        ("label", "text"), ("none", "text")
    }  # fmt: skip
