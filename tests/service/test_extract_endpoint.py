"""``/extract`` and ``/extract/batch``: oracle is the library's Extractor."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from featpipe.extraction.extractor import Extractor
from featpipe.extraction.messages import Done, Stored
from featpipe.report import Quarantined
from featpipe.service.errors import Failure
from featpipe.service.metrics import ServiceMetrics
from featpipe.service.routes.extract import Job, extract_one

if TYPE_CHECKING:
    from service_watch import Service

TEXT = "租赁合同。甲方：广州山川有限公司。乙方：王五。每月租金为人民币6,300元。"


def plain(response: Any) -> Any:  # noqa: ANN401  # JSON
    """The extraction without what differs from call to call."""
    found = response.json()["extractions"]
    for one in found:
        one["provenance"].pop("run")
    return found


def test_values_of_a_text_are_those_of_the_library(service: Service, encoder_folder: Path) -> None:
    response = service.extract(text=TEXT, template="lease", with_text=True)
    assert response.status_code == 200
    body = response.json()
    assert body["text"] == TEXT
    values = {name: found[0] for name, found in body["extractions"][0]["fields"].items() if found}
    assert values["甲方"]["text"] == "广州山川有限公司"
    for value in values.values():
        assert TEXT[value["start"] : value["end"]] == value["text"]
    from featpipe.on_demand.space import Checkpoints

    with Extractor(
        service.home / "templates",
        service.home / "c.h5",
        checkpoints=Checkpoints(model=str(encoder_folder)),
    ) as library:
        expected = library.extract(TEXT, "lease").as_dict()
    assert body["extractions"][0]["fields"] == json.loads(json.dumps(expected["fields"]))
    provenance = body["extractions"][0]["provenance"]
    assert provenance["fingerprint"] == expected["provenance"]["fingerprint"]  # type: ignore[index]


def test_a_cached_document_is_named_by_its_id(service: Service) -> None:
    response = service.extract(document="notice_2.txt", template="notice")
    assert response.status_code == 200
    assert plain(response)[0]["fields"]["公告编号"][0]["text"] == "2020-012"


def test_an_upload_as_a_form_and_as_a_body_and_as_text_are_one(service: Service) -> None:
    page = f"<html><body><p>{TEXT}</p></body></html>".encode()
    form = service.client.post(
        "/extract", files={"file": ("a.html", page)}, data={"template": "lease"}
    )
    raw = service.client.post(
        "/extract",
        content=page,
        params={"template": "lease", "name": "a.html"},
        headers={"content-type": "text/html"},
    )
    assert form.status_code == raw.status_code == 200
    assert plain(form) == plain(raw)
    text = plain(service.extract(text=TEXT, template="lease"))
    assert plain(form)[0]["fields"] == text[0]["fields"]


def test_an_upload_whose_content_is_cached_is_recognised(service: Service) -> None:
    data = (service.home / "documents" / "notice_3.txt").read_bytes()
    uploaded = service.client.post(
        "/extract", files={"file": ("other.txt", data)}, data={"template": "notice"}
    )
    cached = service.extract(document="notice_3.txt", template="notice")
    assert plain(uploaded)[0]["fields"] == plain(cached)[0]["fields"]
    assert uploaded.json()["document"] == "other.txt"


def test_the_likeliest_template_is_chosen_where_none_is_named(service: Service) -> None:
    assert plain(service.extract(text=TEXT))[0]["template"] == "lease"
    found = plain(service.extract(text=TEXT, template="*"))
    assert sorted(one["template"] for one in found) == ["lease", "notice"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ("UnreadableDocument", 404, "unknown_document"),
        ("UnlikeTemplates", 422, "no_template_fits"),
        ("ValueError", 422, "extraction_failed"),
    ],
)
def test_a_cached_document_without_an_extraction_is_not_always_unknown(
    error: str, status: int, code: str
) -> None:
    class Batcher:
        async def submit(self, *_: object, **__: object) -> Done:
            return Done("a.txt", quarantined=Quarantined("a.txt", "why", error))

    engine: Any = SimpleNamespace(extract=Batcher(), watcher=None, metrics=ServiceMetrics())
    job = Job(Stored("a.txt"), None, with_text=False, deadline_s=None, n_bytes=1)
    with pytest.raises(Failure) as caught:
        asyncio.run(extract_one(engine, job, 1.0))
    assert (caught.value.status, caught.value.code) == (status, code)


@pytest.mark.parametrize("name", ["/etc/passwd", "../documents/notice_0.txt", "c.h5", "a\x00b"])
def test_no_path_of_a_client_is_opened(service: Service, name: str) -> None:
    response = service.extract(document=name, template="lease")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "unknown_document"
    upload = service.client.post(
        "/extract", files={"file": (name, TEXT.encode())}, data={"template": "lease"}
    )
    assert upload.status_code == 200
    assert "/" not in upload.json()["document"]
    text = service.extract(text=name.replace("\x00", ""), template="lease", with_text=True)
    assert text.json()["text"] == name.replace("\x00", "")


def test_a_body_nested_without_end_is_the_callers_mistake(service: Service) -> None:
    for path in ("/extract", "/extract/batch", "/search", "/v1/embeddings"):
        response = service.client.post(
            path, content="[" * 200_000, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in {200, 400, 422}, (path, response.text[:200])
        if response.status_code == 200:  # lines fail one by one
            assert '"error"' in response.text
    assert service.extract(text=TEXT, template="lease").status_code == 200


def test_a_form_of_many_parts_is_refused_as_a_whole(service: Service) -> None:
    files = [("file", (f"{number}.txt", b"x")) for number in range(2_000)]
    assert service.client.post("/extract", files=files).status_code in {400, 422}
    fields = {f"field{number}": "x" for number in range(2_000)}
    response = service.client.post("/extract", files={"file": ("a.txt", b"x")}, data=fields)
    assert response.status_code in {400, 422}


def test_no_header_is_taken_over_into_an_answer_unless_it_is_a_plain_id(service: Service) -> None:
    given = 'a"><script>'
    response = service.client.get("/healthz", headers={"X-Request-ID": given})
    assert response.headers["x-request-id"] != given
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"template": "lease", "with_text": "no"}, 200),
        ({"template": ""}, 200),  # a field that was left empty
        ({"with_text": "perhaps"}, 422),
        ({"with_text": ""}, 422),
        ({"deadline_s": ""}, 422),
        ({"deadline_s": "soon"}, 422),
        ({"deadline_s": "nan"}, 422),
        ({"template": "a" * 257}, 422),
        ({"path": "/etc/passwd"}, 422),
    ],
)
def test_the_options_of_a_form_are_checked_like_those_of_json(
    service: Service, options: dict[str, str], status: int
) -> None:
    files = {"file": ("a.txt", TEXT.encode())}
    response = service.client.post("/extract", files=files, data=options)
    assert response.status_code == status, response.text
    assert "text" not in response.json()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": "a", "template": "nope"}, 404, "unknown_template"),
        ({"text": "a", "document": "b"}, 422, "invalid_request"),
        ({}, 422, "invalid_request"),
        ({"text": ""}, 422, "invalid_request"),
        ({"text": "a", "path": "/etc/passwd"}, 422, "invalid_request"),
        ({"text": "a", "deadline_s": -1}, 422, "invalid_request"),
    ],
)
def test_a_mistake_is_explained(
    service: Service, body: dict[str, object], status: int, code: str
) -> None:
    response = service.client.post("/extract", json=body, headers={"X-Request-Id": "mine-1"})
    assert response.status_code == status
    error = response.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert error["request_id"] == response.headers["x-request-id"] == "mine-1"


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 64, 415, "unsupported_document"),
        (b"\0" * 100, 422, "unreadable_document"),
        (b"<html><body></body></html>", 422, "empty_document"),
        (b"%PDF-1.4 and nothing more", 422, "unreadable_document"),
        (b"", 422, "empty_body"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    service: Service, data: bytes, status: int, code: str
) -> None:
    response = service.client.post("/extract", content=data, params={"template": "lease"})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("templat=lease", {"content": TEXT}),
        ("template=lease&template=notice", {"content": TEXT}),
        ("template=lease", {"json": {"text": TEXT}}),
        ("template=lease", {"files": {"file": ("a.txt", TEXT)}}),
        ("", {"files": {"file": ("a.txt", TEXT)}, "data": {"template": ["lease", "notice"]}}),
    ],
)
def test_no_option_is_passed_over(service: Service, query: str, options: dict[str, Any]) -> None:
    response = service.client.post(f"/extract?{query}", **options)
    assert response.status_code == 422, response.text
    assert "templat" in response.json()["error"]["message"]


def test_a_batch_takes_no_option_for_all_of_its_lines(service: Service) -> None:
    line = json.dumps({"text": TEXT})
    assert service.client.post("/extract/batch?template=lease", content=line).status_code == 422


def test_every_line_of_a_batch_is_answered_once(service: Service) -> None:
    lines: list[object] = [{"id": n, "text": TEXT, "template": "lease"} for n in range(40)]
    lines[7] = {"id": 7, "document": "nowhere"}
    lines[9] = {"id": 9}
    content = "\n".join([*map(json.dumps, lines), "no json", ""])
    response = service.client.post("/extract/batch", content=content)
    assert response.headers["content-type"].startswith("application/x-ndjson")
    *found, last = [json.loads(line) for line in response.text.splitlines()]
    assert last == {"is_complete": True, "n_lines": 41, "n_failed": 3}
    assert sorted(one["index"] for one in found) == list(range(41))
    by_index = {one["index"]: one for one in found}
    assert by_index[7]["error"]["code"] == "unknown_document"
    assert by_index[9]["error"]["code"] == by_index[40]["error"]["code"] == "invalid_line"
    good = [one for one in found if "result" in one]
    assert all(one["id"] == one["index"] for one in good)
    assert len({json.dumps(one["result"]["extractions"][0]["fields"]) for one in good}) == 1


def test_an_empty_line_of_a_batch_has_its_index(service: Service) -> None:
    line = json.dumps({"text": TEXT, "template": "lease"})
    response = service.client.post("/extract/batch", content=f"{line}\n\n \n{line}\n")
    *found, last = [json.loads(one) for one in response.text.splitlines()]
    assert sorted(one["index"] for one in found) == [0, 3]
    assert last == {"is_complete": True, "n_lines": 2, "n_failed": 0}


def test_requests_of_many_clients_share_batches(service: Service) -> None:
    def count(name: str) -> float:
        text = service.client.get("/metrics").text
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    service.extract(text=TEXT, template="lease")
    before = [count(f'featpipe_batch_items_{what}{{lane="extract"') for what in ("sum", "count")]
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(lambda _: service.extract(text=TEXT, template="lease"), range(64))
        )
    after = [count(f'featpipe_batch_items_{what}{{lane="extract"') for what in ("sum", "count")]
    assert {answer.status_code for answer in answers} == {200}
    assert after[0] - before[0] == 64
    assert after[1] - before[1] < 64
