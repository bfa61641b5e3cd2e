"""Templates are fitted once per user, published whole, and nothing of it outlives its time."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from service_watch import running, wait_for
from waiting import HANG_S

from featpipe.cache.cache import Cache
from featpipe.errors import TemplateError
from featpipe.extraction import deploy as module
from featpipe.extraction.deploy import Publication
from featpipe.on_demand.space import choose_checkpoints

if TYPE_CHECKING:
    from featpipe.extraction.template import Template
    from featpipe.pool import Pool, Role


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    """A copy of its own, whose templates may be changed."""
    return shutil.copytree(built, tmp_path / "home")


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for what is fitted."""
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept" / "fitted"


@pytest.fixture(autouse=True)
def roles_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@contextmanager
def opened(home: Path, encoder: Path) -> Iterator[Publication]:
    with Cache.open(home / "c.h5") as cache:
        chosen = choose_checkpoints(cache, str(encoder))
    publication = Publication(home / "templates", home / "c.h5", chosen, ("cpu",))
    try:
        yield publication
    finally:
        publication.close()


def files_of(folder: Path) -> dict[str, int]:
    """Names and inodes: a file that was written again is another one."""
    return {file.name: file.stat().st_ino for file in folder.rglob("*.field")}


def no_pool(_: list[Role]) -> Pool:
    raise AssertionError("a pool was opened")


def test_what_was_fitted_before_is_not_fitted_again(
    home: Path, encoder_folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, encoder_folder) as publication:
        assert set(publication.publish().changed) == {"lease", "notice"}
        prints = {name: one.fingerprint for name, one in publication.templates.items()}
    fitted = files_of(kept)
    assert len(fitted) == 3, "one per field"
    with monkeypatch.context() as patch:
        patch.setattr(module, "Pool", no_pool)
        with opened(home, encoder_folder) as publication:
            assert set(publication.publish().changed) == {"lease", "notice"}
            assert {n: one.fingerprint for n, one in publication.templates.items()} == prints
            assert len(list(publication.folder.iterdir())) == 2
    # A changed template is fitted, and of it only what changed.
    file = home / "templates" / "lease.toml"
    file.write_text(
        file.read_text("utf-8").replace('name = "租金"', 'name = "租金"\naliases = ["月租"]'),
        "utf-8",
    )
    with opened(home, encoder_folder) as publication:
        publication.publish()
    assert files_of(kept).items() > fitted.items()
    assert len(files_of(kept)) == 4


def test_without_a_place_to_keep_them_templates_are_fitted_for_this_program(
    home: Path, encoder_folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    (tmp_path / "file").touch()
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "file" / "below"))
    with caplog.at_level(logging.WARNING), opened(home, encoder_folder) as publication:
        assert "are not kept" in caplog.text
        publication.publish()
        models = publication.models
        assert len(files_of(models)) == 3
        assert not any(one.unfitted() for one in publication.templates.values())
    assert not models.exists()


def test_closing_ends_a_fit_that_is_under_way(
    home: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = Publication._fit_role

    def endless(publication: Publication, templates: Sequence[Template]) -> Role:
        return replace(role(publication, templates), target="service_poison:EndlessFitRole")

    monkeypatch.setattr(Publication, "_fit_role", endless)
    errors: list[TemplateError] = []
    with opened(home, encoder_folder) as publication:

        def publish() -> None:
            with pytest.raises(TemplateError) as caught:
                publication.publish()
            errors.append(caught.value)

        thread = threading.Thread(target=publish)
        thread.start()
        wait_for(lambda: publication._fitting is not None, "the fit")
        publication.close()
        thread.join(HANG_S)
        assert not thread.is_alive()
    assert errors
    assert publication.templates == {}


def test_the_next_start_of_a_service_fits_nothing(
    home: Path, encoder_folder: Path, kept: Path
) -> None:
    text = "租赁合同。甲方：广州山川有限公司。乙方：王五。每月租金为人民币6,300元。"
    answers = []
    for number in range(2):
        before = files_of(kept)
        with running(home, model=str(encoder_folder)) as (service, _):
            answers.append(service.extract(text=text, template="lease").json()["extractions"])
            said = [str(record["message"]) for record in service.records()]
        assert any(m.startswith("fitting templates") for m in said) == (number == 0)
        assert files_of(kept) == before or number == 0
    assert answers[0] == answers[1]
    assert answers[0][0]["fields"]["甲方"][0]["text"] == "广州山川有限公司"
