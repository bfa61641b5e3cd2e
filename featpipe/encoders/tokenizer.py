"""A checkpoint's tokenizer.

Guarantees:

* The ids are those of ``transformers.AutoTokenizer(text, truncation=False)``.
* Nothing is truncated or padded, although many tokenizer files ask for it: both are switched off in
  a private copy.
* A lone surrogate, which has no UTF-8, is read as U+FFFD; offsets still count the characters of the
  text as it was given.

Only ``tokenizers`` is imported. transformers loads the files that ``tokenizers`` cannot read (a
sentencepiece model without ``tokenizer.json``), and folders in which other files name tokens that
``tokenizer.json`` or ``vocab.txt`` lacks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from featpipe.encoders.bert_rules import has_berts_class, is_kin
from featpipe.encoders.recipe import read_json_object
from featpipe.encoders.tokens import Tokens, concatenate, encode_slowly
from featpipe.encoders.vocabulary import check_vocabulary
from featpipe.encoders.wordpiece import FastWordPiece, is_bert_wordpiece
from featpipe.errors import CheckpointError, UnsupportedModel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokenizers import Tokenizer as RawTokenizer
    from tokenizers.normalizers import BertNormalizer

    from featpipe.encoders.checkpoint import Checkpoint

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPECIAL = ("unk", "sep", "pad", "cls", "mask")


class Tokenizer:
    """Turns texts into ids; ``prefix`` and ``suffix`` are the special ones around a sequence."""

    def __init__(self, raw: RawTokenizer, *, lowercase: bool = False) -> None:
        self._raw = raw
        self._lowercase = lowercase
        self._fast = FastWordPiece.of(raw)
        self.prefix, self.suffix = _probe_specials(raw)
        self.n_special = len(self.prefix) + len(self.suffix)

    @classmethod
    def load(cls, checkpoint: Checkpoint) -> Tokenizer:
        """Read the tokenizer in the checkpoint's folder. Raises as `load_raw`."""
        return cls(load_raw(checkpoint), lowercase=checkpoint.recipe.lowercase)

    def check_fits(self, n_words: int, folder: Path) -> None:
        """Refuse to serve a model with `n_words` rows of word embeddings that is another's.

        Raises:
            CheckpointError: see `vocabulary.check_vocabulary`.
        """
        special = (*self.prefix, *self.suffix)
        check_vocabulary(self._raw, special, n_words=n_words, folder=folder)

    @property
    def is_fast(self) -> bool:
        """Whether `FastWordPiece` takes the texts."""
        return self._fast is not None

    def encode(self, texts: Sequence[str], *, with_offsets: bool = False) -> Tokens:
        """Tokens of `texts` without special tokens, in order."""
        try:
            return self._encode(texts, with_offsets=with_offsets)
        except UnicodeEncodeError:
            readable = [_SURROGATE.sub("\ufffd", text) for text in texts]
            return self._encode(readable, with_offsets=with_offsets)

    def _encode(self, texts: Sequence[str], *, with_offsets: bool) -> Tokens:
        if not self._lowercase:
            return self._encode_as_is(texts, with_offsets=with_offsets)
        lowered = [text.lower() for text in texts]
        tokens = self._encode_as_is(lowered, with_offsets=with_offsets)
        if tokens.start is not None and tokens.stop is not None:
            for number, text in enumerate(texts):
                if len(lowered[number]) != len(text):  # İ becomes two characters
                    own = slice(tokens.ends[number] - tokens.lengths[number], tokens.ends[number])
                    origin = np.repeat(np.arange(len(text)), [len(c.lower()) for c in text])
                    tokens.start[own] = origin[tokens.start[own]]
                    tokens.stop[own] = origin[tokens.stop[own].astype(np.int64) - 1] + 1
        return tokens

    def _encode_as_is(self, texts: Sequence[str], *, with_offsets: bool) -> Tokens:
        fast = self._fast
        if fast is None:
            return encode_slowly(self._raw, texts, with_offsets=with_offsets)
        if not fast.holds_literal("\n".join(texts)):
            return fast.encode(texts, with_offsets=with_offsets)
        # Text by text, because few batches hold a literal.
        return concatenate(
            [
                encode_slowly(self._raw, [text], with_offsets=with_offsets)
                if fast.holds_literal(text)
                else fast.encode([text], with_offsets=with_offsets)
                for text in texts
            ]
        )


def load_raw(checkpoint: Checkpoint) -> RawTokenizer:
    """The ``tokenizers`` object of a checkpoint, with truncation and padding off.

    Raises:
        CheckpointError: damaged files.
        UnsupportedModel: files that neither tokenizers nor transformers can load.
    """
    raw = _load_as_saved(checkpoint)
    raw.no_truncation()
    raw.no_padding()
    return raw


def _load_as_saved(checkpoint: Checkpoint) -> RawTokenizer:
    folder = checkpoint.path
    options = read_json_object(folder / "tokenizer_config.json")
    named = read_json_object(folder / "special_tokens_map.json") | options
    raw = _load_fast(checkpoint, options, named)
    if raw is not None and _knows_all(raw, named, read_json_object(folder / "added_tokens.json")):
        return raw
    return _ask_transformers(checkpoint)


def _load_fast(
    checkpoint: Checkpoint, options: dict[str, object], named: dict[str, object]
) -> RawTokenizer | None:
    """From tokenizer.json, or BERT's vocab.txt; None without either, or for another class.

    Of BERT's class the words of tokenizer.json are read and no other rules, as in transformers.
    """
    is_bert = has_berts_class(checkpoint, options)
    if (checkpoint.path / "tokenizer.json").exists():
        raw = _read_tokenizer_json(checkpoint)
        if is_bert and _is_wordpiece(raw):
            if _is_berts_own(raw, named):
                return _apply_bert_options(raw, options)
            return _build_from_words(raw, named)
        return raw
    if (checkpoint.path / "vocab.txt").exists() and is_kin(checkpoint) and is_bert:
        return _build_wordpiece(*_read_vocabulary(checkpoint.path / "vocab.txt", named), named)
    return None


def _read_tokenizer_json(checkpoint: Checkpoint) -> RawTokenizer:
    from tokenizers import Tokenizer as RawTokenizer

    file = checkpoint.path / "tokenizer.json"
    try:
        return RawTokenizer.from_file(str(file))
    except Exception as error:  # the Rust side raises bare Exception for any damage
        raise CheckpointError(f"{file} is no tokenizer: {error}") from error


def _is_wordpiece(raw: RawTokenizer) -> bool:
    from tokenizers.models import WordPiece

    return isinstance(raw.model, WordPiece)


def _is_berts_own(raw: RawTokenizer, named: dict[str, object]) -> bool:
    """Whether the rules are those that BERT's class makes, options of its normalizer aside."""
    special = _name_special(named)
    added = {token.content for token in raw.get_added_tokens_decoder().values()}
    empty = raw.encode("", add_special_tokens=True)
    return (
        is_bert_wordpiece(raw)
        and (raw.model.continuing_subword_prefix, raw.model.max_input_chars_per_word) == ("##", 100)
        and added.issuperset(special.values())
        and empty.tokens == [special["cls"], special["sep"]]
    )


def _apply_bert_options(raw: RawTokenizer, options: dict[str, object]) -> RawTokenizer:
    """Take the options from tokenizer_config.json, or their defaults, not from tokenizer.json.

    As in transformers, whose BERT tokenizer takes only the words from tokenizer.json.
    """
    raw.normalizer = _make_normalizer(options)
    return raw


def _make_normalizer(options: dict[str, object]) -> BertNormalizer:
    from tokenizers.normalizers import BertNormalizer

    strip_accents = options.get("strip_accents")
    return BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(options.get("tokenize_chinese_chars", True)),
        strip_accents=None if strip_accents is None else bool(strip_accents),
        lowercase=bool(options.get("do_lower_case", True)),
    )


def _knows_all(raw: RawTokenizer, named: dict[str, object], added: dict[str, object]) -> bool:
    """Whether every token that other files name is an added token of `raw`, with their number."""
    known = {token.content: str(number) for number, token in raw.get_added_tokens_decoder().items()}
    tokens = [named.get(f"{name}_token") for name in (*_SPECIAL, "bos", "eos")]
    for several in (named.get("additional_special_tokens"), named.get("extra_special_tokens")):
        if isinstance(several, dict | list):
            tokens += several.values() if isinstance(several, dict) else several
    decoder = named.get("added_tokens_decoder")
    numbered = decoder.items() if isinstance(decoder, dict) else ()
    numbers = {_content(token): number for number, token in numbered} | added
    return all(_content(token) in known for token in tokens if token) and all(
        known.get(content) == str(number) for content, number in numbers.items()
    )


def _content(token: object) -> str:
    """Text of a token, which is written as text or as an object."""
    return str(token.get("content") if isinstance(token, dict) else token)


def _name_special(options: dict[str, object]) -> dict[str, str]:
    """BERT's special tokens by role: those that `options` name, or its own."""
    given = {name: options.get(f"{name}_token") for name in _SPECIAL}
    return {name: _content(token or f"[{name.upper()}]") for name, token in given.items()}


def _read_vocabulary(
    file: Path, options: dict[str, object]
) -> tuple[dict[str, int], dict[str, str]]:
    """Number of each token in ``vocab.txt``, and the special tokens by role."""
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read as UTF-8: {error}") from error
    # As in tokenizers, which leaves out blanks behind a word.
    vocabulary = {line.rstrip(): number for number, line in enumerate(lines) if line.strip()}
    special = _name_special(options)
    absent = [special[n] for n in ("cls", "sep", "unk") if special[n] not in vocabulary]
    if absent:
        raise CheckpointError(f"{file} lacks the special tokens {absent}")
    return vocabulary, special


def _build_from_words(raw: RawTokenizer, options: dict[str, object]) -> RawTokenizer | None:
    """BERT's tokenizer of the words of another; None where further tokens were added to them."""
    vocabulary, special = raw.get_vocab(with_added_tokens=False), _name_special(options)
    added = {token.content for token in raw.get_added_tokens_decoder().values()}
    if not vocabulary.keys() >= {*added, *special.values()}:
        return None
    return _build_wordpiece(vocabulary, special, options)


def _build_wordpiece(
    vocabulary: dict[str, int], special: dict[str, str], options: dict[str, object]
) -> RawTokenizer:
    from tokenizers import Tokenizer as RawTokenizer
    from tokenizers import models, pre_tokenizers, processors

    raw = RawTokenizer(models.WordPiece(vocabulary, unk_token=special["unk"]))
    raw.normalizer = _make_normalizer(options)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.add_special_tokens([token for token in special.values() if token in vocabulary])
    raw.post_processor = processors.TemplateProcessing(
        single=f"{special['cls']}:0 $A:0 {special['sep']}:0",
        special_tokens=[(special[n], vocabulary[special[n]]) for n in ("cls", "sep")],
    )
    return raw


def _ask_transformers(checkpoint: Checkpoint) -> RawTokenizer:
    from tokenizers import Tokenizer as RawTokenizer
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(checkpoint.path), local_files_only=True)
        return RawTokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    except Exception as error:  # a dozen classes for one reason
        raise UnsupportedModel(
            f"the tokenizer of {checkpoint.path} cannot be loaded: {error}",
            hint="save it with a tokenizer.json",
        ) from error


def _probe_specials(raw: RawTokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids put before and after a text, found by encoding one."""
    bare = raw.encode("a", add_special_tokens=False).ids
    full = raw.encode("a", add_special_tokens=True).ids
    for start in range(len(full) - len(bare) + 1):
        if bare and full[start : start + len(bare)] == bare:
            return tuple(full[:start]), tuple(full[start + len(bare) :])
    if not bare:
        raise CheckpointError('the tokenizer makes nothing of the letter "a"')
    raise UnsupportedModel("the tokenizer changes a text's tokens when special ones are added")
