"""A vectorised WordPiece tokenizer with exactly the ids and offsets of the one it is made from.

The loaded tokenizer is probed for each character, a page of 256 code points at a time when one
first occurs: ``"a" + character + "b"`` shows whether the character is a token of its own, a mere
separator, or anything else. Tokens of their own (Chinese characters, punctuation) come from a
table. Runs of anything else, mostly letters and digits, go through the loaded tokenizer once and
are remembered, so that "anything else" is always exact.

The slow way (`tokens.encode_slowly`) is for texts that hold an added token literally, such as
"[SEP]", and for tokenizers of another design (`FastWordPiece.of` returns None).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from featpipe.encoders.tokens import Tokens, concatenate, encode_slowly, number_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer as RawTokenizer

    from featpipe.encoders.tokens import Ids, Ints, Offsets

    Characters = npt.NDArray[np.uint32]

_ALONE, _BLANK = 1, 2
_N_CODES = 0x110000
_PAGE = 256

#: Characters of one pass: bounds memory, and fits the processor's cache.
_PASS_CHARACTERS = 1 << 18

#: Remembered runs and their tokens before all are forgotten.
_MOST_RUNS = 500_000
_MOST_TOKENS = 4_000_000


def is_bert_wordpiece(raw: RawTokenizer) -> bool:
    """Whether model, normalizer and pre-tokenizer are of BERT's kinds."""
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    return (
        isinstance(raw.model, WordPiece)
        and raw.model.continuing_subword_prefix != ""  # a part of a run would look like a token
        and isinstance(raw.normalizer, BertNormalizer)
        and isinstance(raw.pre_tokenizer, BertPreTokenizer)
    )


class FastWordPiece:
    """Built by `of`. Texts must hold no surrogates."""

    def __init__(self, raw: RawTokenizer, literals: tuple[str, ...]) -> None:
        self._raw = raw
        self._literals = literals
        self._kind = np.zeros(_N_CODES, np.uint8)
        self._id = np.zeros(_N_CODES, np.int32)
        self._is_probed = np.zeros(_N_CODES // _PAGE, np.bool_)
        self._before = raw.encode("a", add_special_tokens=False).ids
        self._after = raw.encode("b", add_special_tokens=False).ids
        self._runs = _Runs(raw)

    @classmethod
    def of(cls, raw: RawTokenizer) -> FastWordPiece | None:
        """A fast tokenizer equal to `raw`; None for a design that does not allow it."""
        added = raw.get_added_tokens_decoder().values()
        # A normalised literal also matches other spellings, which a plain search would miss.
        if not is_bert_wordpiece(raw) or any(token.normalized for token in added):
            return None
        fast = cls(raw, tuple(token.content for token in added if token.content))
        fast._probe(np.zeros(1, np.int64))
        return fast if fast._kind[ord("\n")] == _BLANK else None

    def holds_literal(self, text: str) -> bool:
        """Whether `text` holds an added token, and must be encoded slowly."""
        return any(literal in text for literal in self._literals)

    def encode(self, texts: Sequence[str], *, with_offsets: bool) -> Tokens:
        """Tokens of texts without literals and surrogates."""
        parts: list[Tokens] = []
        start = 0
        while start < len(texts) or not parts:
            stop, size = start, 0
            while stop < len(texts) and (
                stop == start or size + len(texts[stop]) < _PASS_CHARACTERS
            ):
                size += len(texts[stop]) + 1
                stop += 1
            parts.append(self._encode_pass(texts[start:stop], with_offsets=with_offsets))
            start = stop
        return concatenate(parts)

    def _encode_pass(self, texts: Sequence[str], *, with_offsets: bool) -> Tokens:
        # A line break after each text: a separator, which `of` has checked.
        code = np.frombuffer(("\n".join(texts) + "\n").encode("utf-32-le"), np.uint32)
        self._probe(np.flatnonzero(np.bincount(code >> np.uint32(8))))
        kind = self._kind[code]
        is_alone = kind == _ALONE
        is_run = kind == 0
        run_start = np.flatnonzero(is_run & ~np.concatenate(([False], is_run[:-1])))
        run = self._runs.find(code, is_run)
        counts = is_alone.astype(np.int32)
        counts[run_start] = self._runs.lengths[run]
        ends = np.cumsum(counts, dtype=np.int64)

        alone = np.flatnonzero(is_alone)
        at_alone = ends[alone] - 1
        run_lengths = self._runs.lengths[run]
        at_run, from_run = _spread(ends[run_start], run_lengths, self._runs.starts[run])
        ids = np.empty(int(ends[-1]), np.int32)
        ids[at_alone] = self._id[code[alone]]
        ids[at_run] = self._runs.ids[from_run]
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        breaks = np.cumsum(sizes + 1) - 1
        text_ends = ends[breaks]
        if not with_offsets:
            return Tokens(ids, text_ends)
        edges: Offsets = np.empty((len(ids), 2), np.uint32)
        edges[at_alone, 0] = alone
        edges[at_alone, 1] = alone + 1
        edges[at_run] = self._runs.offsets[from_run] + np.repeat(run_start, run_lengths)[:, None]
        edges -= np.repeat(breaks - sizes, np.diff(text_ends, prepend=0))[:, None].astype(np.uint32)
        return Tokens(ids, text_ends, edges[:, 0].copy(), edges[:, 1].copy())

    def _probe(self, pages: Ints) -> None:
        """Learn the kind and id of the characters of new pages."""
        for page in pages[~self._is_probed[pages]].tolist():
            first = page * _PAGE
            codes = [c for c in range(first, first + _PAGE) if not 0xD800 <= c < 0xE000]
            probes = [f"a{chr(code)}b" for code in codes]
            found = self._raw.encode_batch_fast(probes, add_special_tokens=False)
            for code, encoding in zip(codes, found, strict=True):
                ids = encoding.ids
                n = len(self._before)
                if ids == self._before + self._after:
                    self._kind[code] = _BLANK
                elif ids == [*self._before, *ids[n : n + 1], *self._after]:
                    self._kind[code], self._id[code] = _ALONE, ids[n]
            self._is_probed[page] = True


class _Runs(dict[str, int]):
    """Number of each run met before, and the runs' tokens in flat arrays by number."""

    def __init__(self, raw: RawTokenizer) -> None:
        super().__init__()
        self._raw = raw
        self._forget()

    def _forget(self) -> None:
        self.clear()
        self._new: list[str] = []
        self.starts: Ints = np.empty(0, np.int64)
        self.lengths: Ints = np.empty(0, np.int64)
        self.ids: Ids = np.empty(0, np.int32)
        self.offsets: Offsets = np.empty((0, 2), np.uint32)

    def __missing__(self, run: str) -> int:
        self._new.append(run)
        number = self[run] = len(self)
        return number

    def find(self, code: Characters, is_run: npt.NDArray[np.bool_]) -> Ints:
        """Numbers of the runs in `code`, in order."""
        if len(self) > _MOST_RUNS or len(self.ids) > _MOST_TOKENS:
            self._forget()
        follows = np.empty(len(code), np.bool_)
        follows[0] = False
        follows[1:] = is_run[:-1] & ~is_run[1:]
        kept = np.where(follows, np.uint32(10), code)[is_run | follows]
        runs = kept.tobytes().decode("utf-32-le").split("\n")
        runs.pop()  # behind the last separator
        numbers = np.fromiter(map(self.__getitem__, runs), np.int64, len(runs))
        if self._new:
            self._learn()
        return numbers

    def _learn(self) -> None:
        tokens = encode_slowly(self._raw, self._new, with_offsets=True)
        self._new = []
        lengths = tokens.lengths
        self.starts = np.concatenate([self.starts, len(self.ids) + tokens.ends - lengths])
        self.lengths = np.concatenate([self.lengths, lengths])
        self.ids = np.concatenate([self.ids, tokens.ids])
        edges = np.stack(tokens.offsets, axis=1)
        self.offsets = np.concatenate([self.offsets, edges])


def _spread(ends: Ints, lengths: Ints, sources: Ints) -> tuple[Ints, Ints]:
    """Places of pieces of `lengths`: (targets that end at `ends`, sources from `sources` on)."""
    within = number_within(lengths)
    return np.repeat(ends - lengths, lengths) + within, np.repeat(sources, lengths) + within
