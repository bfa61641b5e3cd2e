"""The files of a tokenizer in a model's folder, and whether its vocabulary is that of the model.

Where the words are missing, transformers makes up a tokenizer of its special tokens alone, without
a warning: every text becomes a row of "unknown". Both checks here refuse that, one by the files and
one by the number of tokens. Imports no torch and no transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer as RawTokenizer

#: Files that hold a vocabulary by themselves.
_WORDS = (
    "tokenizer.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model",
    "spm.model", "sentencepiece.model", "dict.txt",
)  # fmt: skip

#: A vocabulary with ids, which is one only together with either list of merges.
_NUMBERS, _MERGES = "vocab.json", ("merges.txt", "vocab.bpe", "bpe.codes")

#: Options and additions, which change ids and hold no vocabulary.
_OPTIONS = (
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "emoji.json",
    "normalizer.json", "word_pronunciation.json", "word_shape.json", "entity_vocab.json",
)  # fmt: skip

#: What a model without tokenizer.json needs, by ``model_type``.
_NEEDED = {
    "vocab.txt": "bert convbert distilbert electra ernie esm layoutlm megatron-bert mobilebert"
    " mpnet nezha roformer squeezebert",
    "vocab.json and merges.txt": "bart clip data2vec-text deberta gpt2 ibert longformer luke qwen2"
    " qwen3 roberta roberta-prelayernorm",
    "sentencepiece.bpe.model": "camembert xlm-roberta xlm-roberta-xl xmod",
    "spiece.model": "albert big_bird mt5 nystromformer t5 umt5 xlnet",
    "spm.model": "deberta-v2",
    "tokenizer.model": "gemma gemma2 gemma3_text llama mistral",
}

#: Tokens by which sizes may differ at all. Rows of an embedding matrix are padded to a multiple of
#: up to 128 (ESM C: 33 tokens, 64 rows); a few added tokens may have no row (Gemma 3: one).
_SLACK = 128
#: Least share of the rows that have a token. Padding beyond `_SLACK` is for a number of cards:
#: DeepSeek LLM has 97.7 %, Phi-2 98.2 %, Nystromformer 98.3 %; Qwen3, ModernBERT, DeBERTa-v3, mT5
#: and XLM-R 99.8 % and more.
_LEAST_SHARE = 0.9


def find_tokenizer_files(folder: Path, architecture: str) -> tuple[Path, ...]:
    """All tokenizer files of `folder`, on which token ids depend.

    Raises:
        CheckpointError: none of them holds a vocabulary; the missing file is named.
    """
    names = (*_WORDS, _NUMBERS, *_MERGES, *_OPTIONS)
    found = tuple(folder / name for name in names if (folder / name).exists())
    there = {file.name for file in found}
    has_merges = not there.isdisjoint(_MERGES)
    if there.isdisjoint(_WORDS) and not (_NUMBERS in there and has_merges):
        raise CheckpointError(
            f"{folder} has no vocabulary for its tokenizer: {_name_missing(there, architecture)}",
            hint="the folder was not copied whole: copy the tokenizer's files from where its"
            " weights came from",
        )
    return found


def _name_missing(there: set[str], architecture: str) -> str:
    if _NUMBERS in there:
        return f"{_MERGES[0]}, which belongs to {_NUMBERS}, is missing, and so is tokenizer.json"
    if not there.isdisjoint(_MERGES):
        return f"{_NUMBERS}, which belongs to the merges, is missing, and so is tokenizer.json"
    needed = next((file for file, kinds in _NEEDED.items() if architecture in kinds.split()), "")
    also = f", and so is {needed}" if needed else ""
    return f"tokenizer.json is missing{also}"


def check_vocabulary(
    raw: RawTokenizer, special: Sequence[int], *, n_words: int, folder: Path
) -> None:
    """Refuse a tokenizer that is not that of a model with `n_words` rows of word embeddings.

    Allowed are rows without a token, as many as padding makes, and a few added tokens without a
    row: a text that uses one of those is refused by itself.

    Raises:
        CheckpointError: too few tokens, too many, or a special one without a row.
    """
    ids = set(raw.get_vocab(with_added_tokens=True).values())
    n_inside = sum(number < n_words for number in ids)
    n_beyond = len(ids) - n_inside
    n_idle = n_words - n_inside
    if n_idle > _SLACK and n_inside < _LEAST_SHARE * n_words:
        what = f"its tokenizer has {len(ids):,} tokens, and its model knows {n_words:,}"
    elif n_beyond > _SLACK:
        what = f"{n_beyond:,} tokens of its tokenizer are beyond the {n_words:,} of its model"
    elif beyond := sorted(number for number in {*special} if number >= n_words):
        what = f"the special token {beyond[0]} is beyond the {n_words:,} tokens of its model"
    else:
        return
    raise CheckpointError(
        f"the tokenizer in {folder} is not that of its model, or is not whole: {what}",
        hint="copy tokenizer.json (or the vocabulary it is made of) from where the weights came"
        " from",
    )
