"""featpipe: business documents become features once; templates are extracted from them after.

Public names are loaded when first used (PEP 562), so that ``import featpipe`` loads none of torch,
transformers, h5py and jieba: a spawned writer starts in a tenth of a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

#: Public name -> the module that defines it: the one list of what featpipe offers.
_HOMES = {
    "Cache": "featpipe.cache.cache",
    "Checkpoints": "featpipe.on_demand.space",
    "Extractor": "featpipe.extraction.extractor",
    "LoadLimits": "featpipe.documents.limits",
    "Pipeline": "featpipe.build.pipeline",
    "RunReport": "featpipe.report",
    "TextEncoder": "featpipe.on_demand.text_encoder",
    "FeatpipeError": "featpipe.errors",
}

__all__ = [
    "Cache", "Checkpoints", "Extractor", "FeatpipeError", "LoadLimits", "Pipeline", "RunReport",
    "TextEncoder", "__version__",
]  # fmt: skip

if TYPE_CHECKING:
    from featpipe.build.pipeline import Pipeline
    from featpipe.cache.cache import Cache
    from featpipe.documents.limits import LoadLimits
    from featpipe.errors import FeatpipeError
    from featpipe.extraction.extractor import Extractor
    from featpipe.on_demand.space import Checkpoints
    from featpipe.on_demand.text_encoder import TextEncoder
    from featpipe.report import RunReport


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'featpipe' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
