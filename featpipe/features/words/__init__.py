"""Words: jieba's cuts as spans over batches of texts."""

from featpipe.features.words.batch import TermBatch
from featpipe.features.words.segmenter import ENGINES, WORDS_VERSION, Words

__all__ = ["ENGINES", "WORDS_VERSION", "TermBatch", "Words"]
