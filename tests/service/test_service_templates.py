"""Templates change while the service runs; models do not move."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import psutil
import pytest
from service_watch import Service, wait_for

from featpipe.errors import TemplateError
from featpipe.service.routes import templates
from featpipe.service.schemas import ValidateBody

TEXT = "租赁合同。甲方：广州山川有限公司。乙方：王五。每月租金为人民币6,300元。"
RENT = (
    'name = "{name}"\n[[fields]]\nname = "乙方"\n[[samples]]\ntext = "甲方：一公司。乙方：张三。"\n'
)


def pids(service: Service) -> set[int]:
    return {child.pid for child in psutil.Process(service.pid).children(recursive=True)}


def test_templates_are_listed_with_fields_and_fingerprints(service: Service) -> None:
    found = service.client.get("/templates").json()
    assert found["problem"] == ""
    assert [one["name"] for one in found["templates"]] == ["lease", "notice"]
    one = service.client.get("/templates/lease").json()
    assert one in found["templates"]
    assert [field["name"] for field in one["fields"]] == ["甲方", "租金"]
    used = service.extract(text=TEXT, template="lease").json()["extractions"][0]["provenance"]
    assert used["fingerprint"] == one["fingerprint"]
    assert service.client.get("/templates/nope").status_code == 404


def test_changed_files_come_to_work_without_a_model_being_loaded(service: Service) -> None:
    folder = service.home / "templates"
    before = pids(service)
    (folder / "added.toml").write_text(RENT.format(name="added"), "utf-8")
    try:
        changed = service.client.post("/templates/reload")
        assert changed.status_code == 200, changed.text
        assert "added" in changed.json()["templates"]
        found = service.extract(text=TEXT, template="added")
        assert found.status_code == 200
        assert list(found.json()["extractions"][0]["fields"]) == ["乙方"]
        assert before <= pids(service)  # others may have begun anew since an earlier test
    finally:
        (folder / "added.toml").unlink()
    # Nobody has to ask: the files are watched.
    wait_for(lambda: service.client.get("/templates/added").status_code == 404, "removal")
    assert service.extract(text=TEXT, template="added").status_code == 404


def test_invalid_files_leave_everything_as_it_was(service: Service) -> None:
    file = service.home / "templates" / "lease.toml"
    good = file.read_text("utf-8")
    before = service.extract(text=TEXT, template="lease").json()["extractions"]
    file.write_text("name = [", "utf-8")
    try:
        refused = service.client.post("/templates/reload")
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "template_unusable"
        assert str(service.home) not in refused.text
        assert "lease.toml" in service.client.get("/templates").json()["problem"]
        # Also a worker that begins anew has the good ones.
        for pid in pids(service):
            with suppress(psutil.NoSuchProcess):  # it went with another
                psutil.Process(pid).kill()
        assert service.extract(text=TEXT, template="lease").json()["extractions"] == before
    finally:
        file.write_text(good, "utf-8")
    wait_for(lambda: service.client.get("/templates").json()["problem"] == "", "recovery")


def test_a_sample_that_is_nowhere_is_refused(service: Service) -> None:
    file = service.home / "templates" / "lost.toml"
    file.write_text('name="lost"\n[[fields]]\nname="a"\n[[samples]]\ndocument="no.txt"\n', "utf-8")
    try:
        refused = service.client.post("/templates/reload")
        assert refused.status_code == 409
        assert "no.txt" in refused.json()["error"]["message"]
    finally:
        file.unlink()
    wait_for(lambda: service.client.get("/templates").json()["problem"] == "", "recovery")


@pytest.mark.parametrize(
    ("content", "form", "line"),
    [
        ('name = "a"\n[[fields]]\nname = "b"\ntype = "nothing"\n', "toml", 4),
        ('name = "a"\n[[fields\n', "toml", 2),
        ('{"name": "a",\n "fields": 3,\n}', "json", 3),
        ("[]", "json", None),
        ('{"fields": [{"name": "a"}], "samples": [{"text": "r", "spans": {"a": 3}}]}', "json", 1),
    ],
)
def test_validation_names_the_line(
    service: Service, content: str, form: str, line: int | None
) -> None:
    body = {"content": content, "format": form}
    found = service.client.post("/templates/validate", json=body).json()
    assert not found["is_valid"]
    assert found["message"]
    assert found["line"] == line


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_valid_template_is_described_and_not_kept(service: Service, mark: str) -> None:
    body = {"content": mark + RENT.format(name="sent")}
    found = service.client.post("/templates/validate", json=body).json()
    assert found["is_valid"]
    assert [field["name"] for field in found["fields"]] == ["乙方"]
    assert service.client.get("/templates/sent").status_code == 404


def test_a_template_is_checked_beside_the_loop_that_answers_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[threading.Thread] = []

    def check(*_: object) -> None:
        seen.append(threading.current_thread())
        raise TemplateError("template: seen")

    monkeypatch.setattr(templates, "check_template", check)
    found = asyncio.run(templates.validate(ValidateBody(content='name = "x"')))
    assert found["message"] == "seen"
    assert seen != [threading.main_thread()]


def test_very_many_fields_are_checked_within_the_time_of_a_test() -> None:
    """Not each against all before it, which took minutes."""
    content = "[[fields]]\n" + "\n[[fields]]\n".join(f'name = "f{n}"' for n in range(120_000))
    found = asyncio.run(templates.validate(ValidateBody(content=content)))
    assert found["is_valid"]
