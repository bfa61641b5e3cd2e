"""BM25: rank-bm25's scores, bit for bit, over sentences that come, change and go."""

from featpipe.features.bm25.fields import score_fields
from featpipe.features.bm25.fusion import combine, fuse_ranks, normalise, tune_weight
from featpipe.features.bm25.index import Index, Part, Ranking
from featpipe.features.bm25.segment import Segment
from featpipe.features.bm25.statistics import Statistics
from featpipe.features.bm25.variants import L, Okapi, Plus, Variant
from featpipe.features.bm25.vocabulary import Vocabulary

__all__ = [
    "Index",
    "L",
    "Okapi",
    "Part",
    "Plus",
    "Ranking",
    "Segment",
    "Statistics",
    "Variant",
    "Vocabulary",
    "combine",
    "fuse_ranks",
    "normalise",
    "score_fields",
    "tune_weight",
]
