"""Which folders have the tokenizer class of BERT, and whether their files have rules of their own.

Of that class transformers reads the words alone, and so does featpipe since `TOKENIZER_RULES`:
what else stands in tokenizer.json, and blanks behind the words of vocab.txt, gave other ids before.
Reads JSON only: fingerprints are made where no tokenizer is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.encoders.recipe import read_json_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.encoders.checkpoint import Checkpoint

#: Raised when folders with rules of their own have other ids than before.
TOKENIZER_RULES = 1

#: Tokenizers that transformers builds from words and options alone, and models that use them.
_CLASSES = frozenset({"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"})
_KIN = frozenset({"bert", "electra", "distilbert"})

_SPECIAL = frozenset({"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"})


def is_kin(checkpoint: Checkpoint) -> bool:
    """Whether models of this architecture have BERT's tokenizer where nothing else is said."""
    return checkpoint.architecture in _KIN


def has_berts_class(checkpoint: Checkpoint, options: Mapping[str, object]) -> bool:
    """Whether the tokenizer is of BERT's class; `options` are of tokenizer_config.json."""
    named = options.get("tokenizer_class") or checkpoint.config.get("tokenizer_class")
    kind = str(named or "").removesuffix("Fast")
    return kind in _CLASSES or (not kind and is_kin(checkpoint))


def has_own_rules(checkpoint: Checkpoint) -> bool:
    """Whether files of a tokenizer of BERT's class have more than its words, in doubt True."""
    folder = checkpoint.path
    if not has_berts_class(checkpoint, read_json_object(folder / "tokenizer_config.json")):
        return False
    if (folder / "tokenizer.json").exists():
        return not _is_plain(read_json_object(folder / "tokenizer.json"))
    try:
        words = (folder / "vocab.txt").read_text("utf-8")
    except (OSError, ValueError):  # the tokenizer says so when it is loaded
        return False
    return any(line != line.rstrip() for line in words.replace("\r", "").split("\n"))


def _is_plain(told: Mapping[str, object]) -> bool:
    """Whether a tokenizer.json is as BERT's class writes it, options of its normalizer aside."""
    model = told.get("model")
    if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece":
        return isinstance(model, dict)  # another kind of model is read as it is
    pieces = (model.get("continuing_subword_prefix"), model.get("max_input_chars_per_word"))
    kinds = {
        part: rules.get("type")
        for part in ("normalizer", "pre_tokenizer", "post_processor")
        if isinstance(rules := told.get(part), dict)
    }
    added = told.get("added_tokens")
    listed = added if isinstance(added, list) else []
    names = {one.get("content") for one in listed if isinstance(one, dict)}
    return (
        pieces == ("##", 100)
        and kinds.get("normalizer") == "BertNormalizer"
        and kinds.get("pre_tokenizer") == "BertPreTokenizer"
        and kinds.get("post_processor") in {"TemplateProcessing", "BertProcessing"}
        and names >= _SPECIAL
    )
