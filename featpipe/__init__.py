"""featpipe: business documents become features once; templates are extracted from them after.

Public names are loaded when first used (PEP 562), so that ``import featpipe`` loads none of torch,
transformers, h5py and jieba: a spawned writer starts in a tenth of a second.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # ``python -m featpipe`` has put the working folder first on the search path, which may hold a
    # received typing.py: it goes before the next import.
    _NAME = sys.orig_argv[-len(sys.argv)]
    if _NAME == "featpipe" or (_NAME.startswith("-") and _NAME.endswith("mfeatpipe")):
        del sys.path[0]

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

#: Public name -> the module that defines it: the one list of public names.
_HOMES = {
    "BuildSettings": "featpipe.settings",
    "Cache": "featpipe.cache.cache",
    "CachedDocument": "featpipe.cache.documents",
    "Cell": "featpipe.documents.document",
    "Checkpoints": "featpipe.on_demand.space",
    "Dictionary": "featpipe.cache.dictionary",
    "Document": "featpipe.documents.document",
    "DryRunReport": "featpipe.build.dry_run",
    "EncoderSettings": "featpipe.encoders.spec",
    "Entity": "featpipe.cache.documents",
    "ExtractedValue": "featpipe.extraction.results",
    "Extraction": "featpipe.extraction.results",
    "Extractor": "featpipe.extraction.extractor",
    "FailedUnits": "featpipe.report",
    "FeatpipeError": "featpipe.errors",
    "FieldResult": "featpipe.extraction.results",
    "FieldSpec": "featpipe.extraction.template",
    "Heading": "featpipe.documents.document",
    "Hit": "featpipe.cache.search",
    "LoadLimits": "featpipe.documents.limits",
    "Neighbour": "featpipe.cache.nearest",
    "OffsetMap": "featpipe.documents.document",
    "Page": "featpipe.documents.document",
    "Pipeline": "featpipe.build.pipeline",
    "Progress": "featpipe.build.progress",
    "Provenance": "featpipe.extraction.results",
    "Quarantined": "featpipe.report",
    "RunReport": "featpipe.report",
    "SampleSpec": "featpipe.extraction.template",
    "SentenceSearch": "featpipe.cache.search",
    "Source": "featpipe.documents.source",
    "Table": "featpipe.documents.document",
    "TaggerSettings": "featpipe.encoders.spec",
    "Template": "featpipe.extraction.template",
    "TextEncoder": "featpipe.on_demand.text_encoder",
    "Unit": "featpipe.cache.documents",
}

__all__ = [
    "BuildSettings",
    "Cache",
    "CachedDocument",
    "Cell",
    "Checkpoints",
    "Dictionary",
    "Document",
    "DryRunReport",
    "EncoderSettings",
    "Entity",
    "ExtractedValue",
    "Extraction",
    "Extractor",
    "FailedUnits",
    "FeatpipeError",
    "FieldResult",
    "FieldSpec",
    "Heading",
    "Hit",
    "LoadLimits",
    "Neighbour",
    "OffsetMap",
    "Page",
    "Pipeline",
    "Progress",
    "Provenance",
    "Quarantined",
    "RunReport",
    "SampleSpec",
    "SentenceSearch",
    "Source",
    "Table",
    "TaggerSettings",
    "Template",
    "TextEncoder",
    "Unit",
    "__version__",
]

if TYPE_CHECKING:
    from featpipe.build.dry_run import DryRunReport
    from featpipe.build.pipeline import Pipeline
    from featpipe.build.progress import Progress
    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument, Entity, Unit
    from featpipe.cache.nearest import Neighbour
    from featpipe.cache.search import Hit, SentenceSearch
    from featpipe.documents.document import Cell, Document, Heading, OffsetMap, Page, Table
    from featpipe.documents.limits import LoadLimits
    from featpipe.documents.source import Source
    from featpipe.encoders.spec import EncoderSettings, TaggerSettings
    from featpipe.errors import FeatpipeError
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.results import ExtractedValue, Extraction, FieldResult, Provenance
    from featpipe.extraction.template import FieldSpec, SampleSpec, Template
    from featpipe.on_demand.space import Checkpoints
    from featpipe.on_demand.text_encoder import TextEncoder
    from featpipe.report import FailedUnits, Quarantined, RunReport
    from featpipe.settings import BuildSettings


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'featpipe' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
