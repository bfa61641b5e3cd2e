"""The extractor: every value points at its characters, whoever asks, whenever templates change."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from featpipe import Extractor, LoadLimits, Source
from featpipe.errors import TemplateError, UsageError
from featpipe.extraction.results import ExtractedValue
from featpipe.extraction.values.values import read_value

DATA = Path(__file__).parents[2] / "data"
EXPECTED = {
    row["document"]: row
    for row in map(
        json.loads, (DATA / "templates" / "expected.jsonl").read_text("utf-8").splitlines()
    )
}


def refuse(texts: object) -> None:
    raise AssertionError(f"the encoder was called for {texts!r}")


def test_every_value_is_the_text_at_its_place(cache: Path, templates: Path) -> None:
    with Extractor(templates, cache, encode=refuse) as extractor:
        n_values = 0
        for document in extractor.cache.documents():
            for name in extractor.engine.templates:
                extraction = extractor.extract(document, name)
                for result in extraction.fields.values():
                    for value in result.values:
                        n_values += 1
                        assert document.text[value.start : value.end] == value.text
                        assert 0 < value.probability <= 1
                        assert value.nearest in {
                            s.document for s in extractor.engine.templates[name].template.samples
                        }
                        assert set(value.parts) >= {"value"}
                        for start, end in value.places:
                            assert read_value(document.text[start:end], "text").key
        assert n_values > 50
        assert extractor.engine.pages.n_encoded == 0


def test_documents_left_out_of_the_samples_give_their_values(cache: Path, templates: Path) -> None:
    right = wanted = given = 0
    with Extractor(templates, cache) as extractor:
        for name, document in (
            ("租赁合同", "contracts/lease_warehouse.docx"),
            ("减持公告", "announcements/reduction_two.html"),
        ):
            extraction = extractor.extract(document, name)
            for field, values in EXPECTED[document]["fields"].items():
                kind = extractor.engine.templates[name].model(field).kind
                found = [read_value(v.text, kind) for v in extraction.fields[field].values]
                right += sum(any(read_value(v, kind).means(f) for f in found) for v in values)
                wanted, given = wanted + len(values), given + len(found)
    assert 2 * right / (wanted + given) > 0.85


def test_records_hold_the_values_of_one_row(cache: Path, templates: Path) -> None:
    with Extractor(templates, cache) as extractor:
        extraction = extractor.extract("announcements/reduction_four.html", "减持公告")
    wanted = EXPECTED["announcements/reduction_four.html"]["records"]
    found = [{name: value.text for name, value in record.items()} for record in extraction.records]
    assert sum(record in found for record in wanted) >= len(wanted) - 1


def test_one_document_by_path_by_id_and_as_bytes_elsewhere_is_one_result(
    cache: Path, templates: Path, documents: Path, tmp_path: Path
) -> None:
    other = tmp_path / "renamed.txt"
    other.write_bytes((documents / "contracts/lease_factory.txt").read_bytes())
    with Extractor(templates, cache, encode=refuse) as extractor:
        results = [
            extractor.extract(given, "租赁合同").as_dict()["fields"]
            for given in (
                "contracts/lease_factory.txt",
                documents / "contracts/lease_factory.txt",
                str(other),
            )
        ]
    assert results[0] == results[1] == results[2]


def test_a_text_from_nowhere_is_extracted_and_only_its_new_sentences_are_encoded(
    cache: Path, templates: Path
) -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.ones((len(texts), 32), np.float16)

    added = "补充约定：乙方应于每月五日前付款。"
    with Extractor(templates, cache, encode=encode) as extractor:
        known = extractor.cache.find_document("contracts/lease_factory.txt")
        assert known is not None
        extraction = extractor.extract(f"{known.text}\n{added}", "租赁合同")
        assert extractor.engine.pages.n_encoded == len(asked)
    assert asked == [added]
    assert extraction.fields["出租方"].value == "株洲禾宁产业园运营有限公司"


def test_an_extractor_that_is_pickled_says_how_another_process_gets_one(
    cache: Path, templates: Path
) -> None:
    with Extractor(templates, cache) as extractor:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(UsageError, match="pickled") as refused:
                pickle.dumps(extractor.extract, protocol)
            assert "workers=N" in str(refused.value.hint)


def test_threads_and_tasks_get_what_one_caller_gets(cache: Path, templates: Path) -> None:
    names = [
        f"contracts/lease_{n}" for n in ("factory.txt", "office.md", "shop.txt", "warehouse.docx")
    ]
    with Extractor(templates, cache) as extractor:

        async def together() -> list[object]:
            return list(await asyncio.gather(*(extractor.aextract(n, "租赁合同") for n in names)))

        with ThreadPoolExecutor(4) as pool:
            threaded = list(pool.map(lambda n: extractor.extract(n, "租赁合同"), names))
        alone = list(extractor.extract_many(names, "租赁合同"))
        assert asyncio.run(together()) == threaded == alone


def test_a_changed_template_is_seen_and_only_its_field_is_fitted(
    cache: Path, templates: Path
) -> None:
    file = templates / "lease.toml"
    with Extractor(templates, cache) as extractor:
        before = {n: extractor.engine.templates["租赁合同"].model(n) for n in ("出租方", "月租金")}
        text = file.read_text("utf-8").replace(
            'name = "月租金"\n', 'name = "月租金"\naliases = ["每月租金"]\n'
        )
        rewrite(file, text)
        after = {n: extractor.engine.templates["租赁合同"].model(n) for n in ("出租方", "月租金")}
        assert after["出租方"] is before["出租方"]
        assert after["月租金"] is not before["月租金"]


def test_a_broken_template_leaves_the_last_good_one_in_use(
    cache: Path, templates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Extractor(templates, cache) as extractor:
        good = extractor.engine.templates["租赁合同"]
        rewrite(templates / "lease.toml", "name = ")
        assert extractor.engine.templates["租赁合同"] is good
    assert "keeping the templates as they were" in caplog.text


def rewrite(file: Path, text: str) -> None:
    """Write with a time that differs from the one before, whatever the clock's grain."""
    old = file.stat().st_mtime_ns
    file.write_text(text, "utf-8")
    os.utime(file, ns=(old + 1_000_000, old + 1_000_000))


def test_a_template_must_be_named_where_there_are_several(cache: Path, templates: Path) -> None:
    with Extractor(templates, cache) as extractor, pytest.raises(UsageError, match="must be named"):
        extractor.extract("contracts/lease_factory.txt")


def test_a_sample_document_that_is_nowhere_is_named(cache: Path, templates: Path) -> None:
    file = templates / "lease.toml"
    file.write_text(file.read_text("utf-8").replace("lease_office.md", "gone.md"), "utf-8")
    with pytest.raises(TemplateError, match=r"contracts/gone\.md is neither in the cache"):
        Extractor(templates, cache).close()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_results_are_written_with_their_provenance(
    cache: Path, templates: Path, tmp_path: Path, suffix: str
) -> None:
    from featpipe.extraction.results_file import write_extractions

    out = tmp_path / f"out{suffix}"
    with Extractor(templates, cache) as extractor:
        extraction = extractor.extract("contracts/lease_factory.txt", "租赁合同")
        assert write_extractions([extraction], out).n_extractions == 1
    text = out.read_text("utf-8-sig")
    assert extraction.provenance.fingerprint in text
    assert "株洲禾宁产业园运营有限公司" in text
    if suffix == ".jsonl":
        assert json.loads(text) == json.loads(extraction.as_json())


def test_results_and_templates_show_themselves_in_a_line(cache: Path, templates: Path) -> None:
    with Extractor(templates / "lease.toml", cache) as extractor:
        (fitted,) = extractor.engine.templates.values()
        found = extractor.extract("contracts/lease_shop.txt")
        n_fields = len(fitted.template.fields)
        n_found = sum(bool(result.values) for result in found.fields.values())
        assert repr(fitted.template).startswith(f"Template('租赁合同', {n_fields} fields, ")
        assert repr(fitted) == f"FittedTemplate('租赁合同', {fitted.fingerprint})"
    assert repr(found) == (
        "Extraction('documents/contracts/lease_shop.txt', '租赁合同', "
        f"{n_found} of {n_fields} fields)"
    )
    value = next(result for result in found.fields.values() if result.values).values[0]
    place = f"{value.text!r} [{value.start}:{value.end}] p={value.probability:.2f}"
    assert repr(value) == f"ExtractedValue({place})"
    assert ExtractedValue.from_dict(json.loads(json.dumps(value.as_dict()))) == value


@pytest.mark.parametrize("name", ["contracts/lease_factory.txt", "new.txt"])
def test_a_file_is_read_and_hashed_once(
    cache: Path, templates: Path, documents: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, name: str,
) -> None:  # fmt: skip
    from featpipe.documents import load
    from featpipe.extraction import named_documents

    (tmp_path / "new.txt").write_text("出租方：汉口置业有限公司\n月租金：3,500元\n", "utf-8")
    n_read, n_hashed = 0, 0
    read, hash_bytes = Source.read, load.hash_bytes

    def count_read(source: Source, limits: LoadLimits | None = None) -> bytes:
        nonlocal n_read
        n_read += 1
        return read(source, limits)

    def count_hash(data: bytes) -> str:
        nonlocal n_hashed
        n_hashed += 1
        return hash_bytes(data)

    with Extractor(templates, cache) as extractor:
        extractor.engine.template_set.choose("租赁合同")
        monkeypatch.setattr(Source, "read", count_read)
        for module in (load, named_documents):
            monkeypatch.setattr(module, "hash_bytes", count_hash)
        extractor.engine.page_of((documents if "/" in name else tmp_path) / name)
    assert (n_read, n_hashed) == (1, 1)
