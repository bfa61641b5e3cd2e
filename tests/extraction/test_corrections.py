"""Corrections: kept whatever ends their writer, folded to samples, and learnt line by line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pages import features_of

from featpipe import Cache, Extractor
from featpipe.cli.main import featpipe
from featpipe.errors import UsageError
from featpipe.extraction.corrections import Acceptance, Correction, Undo, read_record
from featpipe.extraction.corrections_fold import accepted, fold, last_id
from featpipe.extraction.corrections_log import CorrectionsLog, read_corrections
from featpipe.extraction.scoring.field_fitting import sample_of
from featpipe.extraction.template_file import load_template, load_uncorrected

KEY = "0" * 32
SHOP = "documents/contracts/lease_shop.txt"
DATE = "2023年7月16日"


def said(verdict: str, *spans: tuple[int, int], **more: object) -> Correction:
    given = {"template": "t", "document": "a.txt", "key": KEY, "field": "租金", **more}
    return Correction(verdict=verdict, spans=spans, values=("v",) * len(spans), **given)  # type: ignore[arg-type]  # as a line has them


@pytest.fixture
def log(tmp_path: Path) -> CorrectionsLog:
    (tmp_path / "t.toml").write_text('name = "t"\n[[fields]]\nname = "租金"\n', "utf-8")
    return CorrectionsLog(tmp_path / "t.toml")


# ---- the file

WRITER = """
import sys
from pathlib import Path
from featpipe.extraction.corrections import Correction
from featpipe.extraction.corrections_log import CorrectionsLog
log = CorrectionsLog(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    record = Correction(verdict="none", template="t", document="a", key="0" * 32, field="f",
                        id=f"{sys.argv[2]}-{number}", who="x" * 90)
    log.append([record])
    print(record.id, flush=True)
"""


def writer(log: CorrectionsLog, name: str, n: int) -> subprocess.Popen[str]:
    folder = log.path.with_name("t.toml")
    arguments = [sys.executable, "-c", WRITER, str(folder), name, str(n)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_what_was_kept_outlives_its_writer_and_no_writer_loses_to_another(
    log: CorrectionsLog,
) -> None:
    """Two go on while a third is killed between two of its answers, or within a write."""
    going = [writer(log, name, 60) for name in ("one", "two")]
    killed = writer(log, "killed", 100_000)
    assert killed.stdout is not None
    answered = [killed.stdout.readline().strip() for _ in range(20)]
    os.kill(killed.pid, signal.SIGKILL)
    answered += killed.stdout.read().split()
    killed.stdout.close()
    killed.wait()
    for process in going:
        answered += process.communicate()[0].split()
        assert process.returncode == 0
    found = log.read()
    assert {record.id for record in found.records} >= set(answered)
    assert len(answered) >= 140
    assert found.bad == ()  # a line is one write: a kill leaves it whole, or none of it


def test_half_a_line_costs_itself_alone(log: CorrectionsLog) -> None:
    log.append([said("none", id="first")])
    with log.path.open("ab") as file:
        file.write(said("none", id="cut").as_line().encode()[:70])
    log.append([said("none", id="last")])
    found = log.read()
    assert [record.id for record in found.records] == ["first", "last"]
    assert found.lines == (1, 3)
    assert [bad.line for bad in found.bad] == [2]
    assert "is not whole JSON" in found.bad[0].reason


def test_a_file_that_is_replaced_gets_the_next_record(log: CorrectionsLog) -> None:
    log.append([said("none", id="first")])
    other = log.path.with_suffix(".new")
    other.write_bytes(log.path.read_bytes())
    other.replace(log.path)
    log.append([said("none", id="second")])
    assert [record.id for record in log.read().records] == ["first", "second"]


def test_who_may_not_read_the_template_may_not_read_what_is_said_of_it(
    log: CorrectionsLog,
) -> None:
    log.path.with_name("t.toml").chmod(0o600)
    log.append([said("none")])
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_kept_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"t\.corrections\.jsonl: corrections cannot be kept"):
        CorrectionsLog(tmp_path / "nowhere" / "t.toml").append([said("none")])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spans": [[5, 5]]}, "5:5 is no place of a value"),
        ({"spans": []}, "'correct' needs the places of values"),
        ({"verdict": "none"}, "'none' has no places of values"),
        ({"verdict": "reject", "spans": [], "values": []}, "needs the place of the value"),
        ({"values": ["a", "b"]}, "there are not as many values as spans"),
        ({"key": "xyz"}, "key: String should match"),
        ({"verdict": "maybe"}, "the verdict 'maybe' is none of 'confirm', 'correct', 'none'"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"field": None}, "field: Input should be a valid string"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_reason(
    change: dict[str, object], reason: str
) -> None:
    line = json.loads(said("correct", (1, 3)).as_line())
    read_record(json.dumps(line).encode())
    with pytest.raises(ValueError, match=reason):
        read_record(json.dumps(line | change).encode())


@pytest.mark.parametrize(
    ("line", "reason"), [(b"[]", "is no JSON object"), (b"{}", "has no verdict")]
)
def test_a_line_that_holds_no_record_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_record(line)


# ---- what it amounts to


def known(*records: Correction | Undo | Acceptance) -> object:
    """Places that are known to be right, () for none, None while the field is unknown."""
    found = fold(records).get((KEY, "租金"))
    return tuple(sorted(found.right)) if found is not None and found.is_known else None


def test_the_last_word_holds_and_unknown_is_not_none() -> None:
    confirm = said("confirm", (1, 3), about=(1, 3), shown=((1, 3),))
    correct = said("correct", (7, 9), about=(1, 3), shown=((1, 3),))
    other = said("correct", (4, 6), about=(1, 3), shown=((1, 3),))
    reject = said("reject", about=(1, 3), shown=((1, 3),))
    none = said("none", shown=((1, 3),))
    assert known(confirm) == ((1, 3),)
    assert known(confirm, correct) == ((7, 9),)
    assert known(correct, other) == ((4, 6),)  # two reviewers of a field of one value
    assert known(reject) is None
    assert known(confirm, reject) is None
    assert known(confirm, none) == ()
    assert known(none, confirm) == ((1, 3),)
    assert known(confirm, none, Undo(template="t", of=none.id)) == ((1, 3),)
    assert known(confirm, Undo(template="t", of=confirm.id)) is None
    assert known(confirm, confirm) == ((1, 3),)  # sent twice


def test_a_field_of_many_values_is_known_when_all_that_were_shown_were_looked_at() -> None:
    many = {"is_many": True, "shown": ((1, 3), (4, 6))}
    first = said("confirm", (1, 3), about=(1, 3), **many)
    second = said("reject", about=(4, 6), **many)
    added = said("correct", (7, 9), **many)
    assert known(first) is None
    assert known(first, second) == ((1, 3),)
    assert known(first, second, added) == ((1, 3), (7, 9))
    assert known(second, said("reject", about=(1, 3), **many)) is None


def test_an_acceptance_reaches_as_far_as_was_seen() -> None:
    one, two = said("none", id="one"), said("none", id="two", field="甲方")
    unseen = said("none", id="unseen", field="乙方")
    accept = Acceptance(template="t", through="two")
    records = [one, two, unseen, accept]
    assert accepted(records) == (one, two)
    assert last_id(records) == "unseen"
    assert accepted([*records, Undo(template="t", of=accept.id)]) == ()
    assert accepted([*records, Undo(template="t", of="one")]) == (one, two)  # not accepted yet


# ---- learning


def call(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


@pytest.fixture
def lease(templates: Path) -> Path:
    return templates / "lease.toml"


def shop_date(cache: Path, **more: object) -> dict[str, object]:
    """A line that corrects a date of the shop to another of its text, with all that goes in."""
    with Cache.open(cache) as opened:
        document = opened.document(SHOP)
        start = document.text.index(DATE)
        line = {
            "verdict": "correct", "template": "租赁合同", "document": document.id,
            "key": document.key.hex(), "field": "签订日期", "spans": [[start, start + len(DATE)]],
            "values": [DATE], "id": "date",
        }  # fmt: skip
    return line | more


def test_each_line_is_learnt_or_named(cache: Path, lease: Path, tmp_path: Path) -> None:
    before = lease.read_bytes()
    name = load_template(lease).name
    good = shop_date(cache, template=name)
    lines = [
        json.dumps(good),
        json.dumps(good | {"id": "b", "field": "旧字段"}),
        json.dumps(good | {"id": "c", "key": "f" * 32}),
        json.dumps(good | {"id": "d", "document": "gone.txt", "key": "e" * 32}),
        json.dumps(good | {"id": "e", "spans": [[10, 10**7]]}),
        json.dumps(good | {"id": "f", "values": ["other"]}),
        json.dumps(good | {"id": "g", "template": "other"}),
        json.dumps({"verdict": "undo", "template": name, "of": "nothing"}),
        json.dumps(good)[:50],
    ]
    given = tmp_path / "corrections.jsonl"
    given.write_text("\n".join(lines), "utf-8")
    result = call("template", "learn", lease, given, "--cache", cache)
    assert result.exit_code == 1
    reasons = [line for line in result.stdout.splitlines() if ": left out: " in line]
    expected = (
        "has no field '旧字段'", "another version of", "does not hold the document gone.txt",
        "is beyond the text", "not 'other'", "of the template 'other'", "which is not here",
        "is not whole JSON",
    )  # fmt: skip
    for number, (line, words) in enumerate(zip(reasons, expected, strict=True), start=2):
        assert line.startswith(f"{given}:{number}: ")
        assert words in line
    assert "corrections 1 taken, 0 known before, 8 left out" in result.stdout
    template = load_template(lease)
    assert (load_uncorrected(lease).version, template.version) == ("", "1")
    assert template.samples[-1].fields == {"签订日期": (DATE,)}
    assert lease.read_bytes() == before
    again = call("template", "learn", lease, given, "--cache", cache)
    assert "corrections 0 taken, 1 known before, 8 left out\nno value changes" in again.stdout
    assert load_template(lease).version == template.version


def test_a_correction_changes_what_is_extracted_and_its_undo_changes_it_back(
    cache: Path, lease: Path, tmp_path: Path
) -> None:
    """The corrected document is a sample of the template: what it said before no longer holds."""
    name = load_template(lease).name
    with Extractor(lease, cache) as extractor:
        first = {s.document: s for s in load_uncorrected(lease).samples}
        before = extractor.extract(SHOP).fields
        given = tmp_path / "c.jsonl"
        given.write_text(json.dumps(shop_date(cache, template=name)) + "\n", "utf-8")
        dry = call("template", "learn", lease, given, "--cache", cache, "--dry-run")
        assert dry.exit_code == 0
        assert not CorrectionsLog(lease).path.exists()
        assert call("template", "learn", lease, given, "--cache", cache).stdout == dry.stdout
        assert " change" in dry.stdout.splitlines()[-1]
        fitted = extractor.engine.templates[name]
        own = [s for s in fitted.template.samples if s.is_read_for("签订日期")]
        assert sum(s.document in {SHOP, "contracts/lease_shop.txt"} for s in own) == 1
        assert extractor.extract(SHOP).fields["签订日期"] != before["月租金"]
        [accept] = [r for r in CorrectionsLog(lease).read().records if isinstance(r, Acceptance)]
        CorrectionsLog(lease).append([Undo(template=name, of=accept.id)])
        assert extractor.extract(SHOP).fields == before
        assert first


def test_a_reviewed_document_that_changed_is_left_out_and_named(
    cache: Path, lease: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = load_template(lease).name
    record = read_record(json.dumps(shop_date(cache, template=name) | {"key": "f" * 32}).encode())
    accept = Acceptance(template=name, through=record.id)
    CorrectionsLog(lease).append([record, accept])
    with Extractor(lease, cache) as extractor:
        samples = extractor.engine.templates[name].template.samples
        assert len(samples) == len(load_uncorrected(lease).samples)
    assert "does not hold the version of the document that was reviewed" in caplog.text


def test_bad_lines_beside_a_template_are_logged_and_the_rest_counts(
    cache: Path, lease: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = load_template(lease).name
    rent = read_record(json.dumps(shop_date(cache, template=name)).encode())
    log = CorrectionsLog(lease)
    log.append([rent])
    with log.path.open("ab") as file:
        file.write(b'{"verdict": "no')
    log.append([Acceptance(template=name, through="date")])
    assert load_template(lease).samples[-1].key is not None
    assert "lease.corrections.jsonl:2: left out: is not whole JSON" in caplog.text
    assert len(read_corrections(log.path).records) == 2


def test_what_was_selected_is_learnt_wherever_it_stands() -> None:
    """A reviewer selects one of several places, more or less widely; all of them are samples."""
    features = features_of("合同金额：人民币3,500元。\n总价3500元整，大写见下。\n编号A-7。")
    chosen = sample_of(features, ["人民币3,500元"], "money", [(5, 14)], is_selected=True)
    assert chosen.spans == sample_of(features, ["人民币3,500元"], "money").spans
    assert len(chosen.spans) == 2
    assert sample_of(features, ["3,5"], "money", [(8, 11)], is_selected=True).spans == ((8, 11),)
