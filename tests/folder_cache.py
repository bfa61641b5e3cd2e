"""A folder cache as jobs make it, and the file that one machine makes of the same documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from building import build

from featpipe.build.jobs import Job, Seat, SeatJobs
from featpipe.build.publish import open_folder
from featpipe.build.shards.folder_plan import Models, plan_folder
from featpipe.build.shards.part_lists import plan_run
from featpipe.documents.find import search
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.settings import BuildSettings

SHARED = "本公司及董事会全体成员保证公告内容的真实、准确、完整，不存在虚假记载。"


EXACT = EncoderSettings(precision="exact")
TAGGER = TaggerSettings(precision="exact")


@dataclass(frozen=True)
class Pair:
    """The same documents in both kinds of cache."""

    documents: Path
    file: Path
    folder: Path
    encoder: Path
    tagger: Path

    @property
    def models(self) -> Models:
        """Those of both; a precision that is chosen depends on the texts."""
        return Models(self.encoder, self.tagger, EXACT, TAGGER)


def write_documents(folder: Path, numbers: range) -> None:
    """Documents that share sentences; every fifth has the content of another."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        n = number - number % 5 if number % 5 == 4 else number
        lines = [
            f"第{n}号合同。",
            SHARED,
            f"合同金额为{n},000万元，分{n % 3}期支付。",
            f"甲方是{'深圳北京上海'[n % 3 * 2 :][:2]}科技有限公司，乙方是张{'三四五六'[n % 4]}。",
            f"违约金每日按{n % 7}%计算，由违约方承担，双方协商解决争议。",
        ]
        (folder / f"{number:02d}.txt").write_text("\n".join(lines), "utf-8")


def build_folder(
    folder: Path, documents: Path, models: Models, *, n_shards: int = 4, n_parts: int = 2
) -> None:
    """All jobs of a run."""
    target, settings = open_folder(folder), BuildSettings()
    plan_folder(target, models, settings, ("cpu",), n_shards)
    sources = search([documents]).sources
    run = plan_run(target, sources, settings, n_parts_asked=n_parts, is_unfinished=lambda _: False)
    with SeatJobs(folder, Seat(("cpu",), threads=1)) as jobs:
        for number in range(run.n_parts):
            jobs.run(Job("prepare", number, run.id))
        for number in range(n_shards):
            jobs.run(Job("encode", number))


def build_pair(folder: Path, encoder: Path, tagger: Path) -> Pair:
    """Twenty documents; the folder gets ten of them by a second run."""
    pair = Pair(folder / "docs", folder / "one.h5", folder / "corpus.fp", encoder, tagger)
    for numbers in (range(10), range(10, 20)):
        write_documents(pair.documents, numbers)
        build_folder(pair.folder, pair.documents, pair.models)
    # One reader, so that documents have the order of the folder's on a busy machine, too.
    settings = BuildSettings(n_prepare_workers=1)
    options = {"encoder": EXACT, "tagger": TAGGER, "settings": settings}
    build(pair.file, pair.documents, encoder, ner=tagger, **options)
    return pair
