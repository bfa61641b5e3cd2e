"""Fit: a worker that makes templates ready before any document meets them.

Fitting may take seconds per template. Done here, it neither counts against a document's time nor
costs it when it fails; and a worker that is replaced finds everything fitted.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.cache.cache import Cache
from featpipe.extraction.extractor import Extractor
from featpipe.extraction.model_cache import ModelCache

if TYPE_CHECKING:
    from featpipe.extraction.template import Template
    from featpipe.on_demand.live import Checkpoints


class FitRole:
    """Fits what is not fitted of one template per task.

    Args:
        cache: path of the file.
        folder: where sample documents lie.
        models: folder of fitted fields.
        space: which vectors.
        checkpoints: for samples that the cache does not hold.
        device, threads: given by the engine.

    """

    def __init__(  # noqa: PLR0913, PLR0917  # the engine passes arguments by name
        self,
        cache: str,
        folder: str,
        models: str,
        space: str | None,
        checkpoints: Checkpoints | None,
        device: str,
        threads: int,
    ) -> None:
        self._cache, self._folder, self._space = Cache.open(cache), folder, space
        self._models = Path(models)
        self._checkpoints = None
        if checkpoints is not None:
            self._checkpoints = replace(checkpoints, device=device, threads=threads)

    def run(self, template: Template) -> int:
        """The number of fields that were fitted.

        Raises:
            TemplateError: a sample document is nowhere.

        """
        models = ModelCache(self._models)
        extractor = Extractor(
            [template],
            self._cache,
            space=self._space,
            checkpoints=self._checkpoints,
            folder=self._folder,
            models=models,
        )
        fitted = extractor.templates[template.name]
        for field in fitted.unfitted():
            fitted.model(field)
        return models.n_fitted

    def close(self) -> None:
        """Let go of the cache."""
        self._cache.close()
