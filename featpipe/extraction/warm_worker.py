"""Warm extraction: a worker that says it is ready when its models are loaded.

So the time that a document is given is spent on the document, also after a worker was replaced.
Templates come from a folder in which only valid and fitted ones are published.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents import LoadLimits
from featpipe.extraction.extractor import Extractor
from featpipe.extraction.model_cache import ModelCache
from featpipe.extraction.worker import AUTO, ExtractTask, Reloaded, extract_given
from featpipe.pool import Role

if TYPE_CHECKING:
    from featpipe.extraction.deploy import Publication
    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.worker import Done, ReloadTask
    from featpipe.on_demand.live import Checkpoints

#: Any text will do to load models for.
_ANY_TEXT = "甲方：某某有限公司。"
#: What the fork server imports once for all workers on the processor.
_PRELOAD = ("torch", "featpipe.encoders.encoder", "featpipe.encoders.tagger", __name__)
#: Texts of a thousand lengths must not keep a kernel each. Fewer are kept than by the workers of a
#: build: these live for months beside each other.
FEW_KERNELS = {"LRU_CACHE_CAPACITY": "64", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}


def warm_role(publication: Publication, limits: LoadLimits, deadline_s: float) -> Role:
    """The role ``extract`` over what is published, one worker per device.

    Args:
        publication: whose templates are at work; open as long as the workers.
        limits: beyond which a document is refused.
        deadline_s: of a task.

    """
    return Role(
        name="extract",
        target="featpipe.extraction.warm_worker:WarmExtractRole",
        arguments={
            "cache": str(publication.cache),
            "published": str(publication.folder),
            "folder": str(publication.samples),
            "models": str(publication.models),
            "space": publication.space,
            "checkpoints": publication.chosen.checkpoints,
            "limits": limits,
        },
        devices=publication.devices,
        threads=1,
        deadline_s=deadline_s,
        bisect="split",
        preload=_PRELOAD,
        environment=FEW_KERNELS,
        is_lazy=False,
    )


class WarmExtractRole:
    """Holds one Extractor, with everything loaded before the first document.

    Args:
        cache: path of the file.
        published: folder of the templates at work; watched.
        folder: where their sample documents lie.
        models: folder of fitted fields.
        space: which vectors.
        checkpoints: for texts that the cache does not hold.
        limits: beyond which a document is refused.
        device, threads: given by the engine.

    """

    def __init__(  # noqa: PLR0913, PLR0917  # the engine passes arguments by name
        self,
        cache: str,
        published: str,
        folder: str,
        models: str,
        space: str | None,
        checkpoints: Checkpoints | None,
        limits: LoadLimits | None,
        device: str,
        threads: int,
    ) -> None:
        self._in_memory: dict[str, FieldModel] = {}
        here = None
        if checkpoints is not None:
            here = replace(checkpoints, device=device, threads=threads)
        self._extractor = Extractor(
            published,
            cache,
            space=space,
            checkpoints=here,
            folder=folder,
            models=ModelCache(Path(models), self._in_memory),
        )
        self._limits = limits or LoadLimits()
        self._at_work: object = None
        self._any = self._extractor.evidence.page_of_text(_ANY_TEXT)
        self._load_fitted()

    def run(self, task: ExtractTask | ReloadTask) -> tuple[Done, ...] | Reloaded:
        """One `Done` per document; a document's fault is told in it.

        Raises:
            UsageError: no such template.
            CheckpointError, DictionaryError: nothing can be extracted at all.

        """
        self._load_fitted()
        if isinstance(task, ExtractTask):
            return tuple(
                extract_given(
                    self._extractor, given, task.template, self._limits, with_text=task.with_text
                )
                for given in task.documents
            )
        fitted = self._extractor.templates
        prints = {name: template.fingerprint for name, template in fitted.items()}
        return Reloaded(prints, self._extractor.problem)

    def close(self) -> None:
        """Let go of the cache."""
        self._extractor.close()

    def _load_fitted(self) -> None:
        """What was published last: load what is new, let go of what is gone."""
        fitted = self._extractor.templates
        if fitted is self._at_work:
            return
        self._at_work = fitted
        for template in fitted.values():
            for field in template.template.fields:
                template.model(field.name)
        wanted = {facts.fingerprint for one in fitted.values() for facts in one.facts.values()}
        for gone in self._in_memory.keys() - wanted:
            del self._in_memory[gone]
        if len(fitted) > 1 and any(one.has_samples for one in fitted.values()):
            # What templates are chosen by is made of all their samples: not in a document's time.
            self._extractor.choose_for(self._any, AUTO)
