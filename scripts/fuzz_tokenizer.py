"""Hold the vectorised tokenizer against the one it was made from, and against transformers.

On random Unicode, or with ``--corpus`` on the texts of a folder of .jsonl.xz files.

Every code point may occur; runs, literals, control characters and combining marks are frequent.
Prints one line per mismatch and a JSON object at the end; exit code 1 when there was any.

    python scripts/fuzz_tokenizer.py MODEL_FOLDER [--texts 100000] [--seed 0] [--corpus DIR]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import read_lines

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.tokenizer import Tokenizer, load_raw
from featpipe.encoders.tokens import encode_slowly

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 10_000

ODD = "\n\t\x00\x07\u0301\u0338\u200b\u200d\ufffd\u0130\u00df\u03a3\u2260\u3000\ufeff\u00ad\x85"
LITERALS = ("[SEP]", "[CLS]", "[sep]", "[UNK", "##a", "[MASK]")


def make_text(chance: random.Random) -> str:
    """Up to 40 characters, now and then a literal special token."""
    parts = [make_character(chance) for _ in range(chance.randrange(40))]
    if chance.random() < 0.05:
        parts.insert(chance.randrange(len(parts) + 1), chance.choice(LITERALS))
    return "".join(parts)


def make_character(chance: random.Random) -> str:
    """A character from a mixture of everyday and far-off ranges."""
    kind = chance.random()
    if kind < 0.3:
        return chr(chance.randrange(0x20, 0x7F))
    if kind < 0.5:
        return chr(chance.randrange(0x4E00, 0x9FFF))
    if kind < 0.8:
        return chr(chance.randrange(0x3000))
    if kind < 0.9:
        return chance.choice(ODD)
    code = chance.randrange(0x110000)
    return "x" if 0xD800 <= code < 0xE000 else chr(code)


def make_texts(count: int, seed: int) -> Iterator[str]:
    """Random texts."""
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets
    return (make_text(chance) for _ in range(count))


def read_texts(folder: Path, count: int) -> Iterator[str]:
    """The first texts of every file."""
    for file in sorted(folder.glob("*.jsonl.xz")):
        yield from (str(row.get("text", row)) for row in read_lines(file, count))


def main() -> int:
    """Compare in batches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path)
    options = parser.parse_args()
    from transformers import AutoTokenizer

    checkpoint = describe_checkpoint(options.model)
    tokenizer, raw = Tokenizer.load(checkpoint), load_raw(checkpoint)
    theirs = AutoTokenizer.from_pretrained(str(checkpoint.path))
    every = (
        read_texts(options.corpus, options.texts)
        if options.corpus
        else make_texts(options.texts, options.seed)
    )
    n_texts = n_tokens = n_wrong = 0
    while texts := list(islice(every, BATCH)):
        n_texts += len(texts)
        found = tokenizer.encode(texts, with_offsets=True)
        expected = encode_slowly(raw, texts, with_offsets=True)
        n_tokens += len(expected.ids)
        if not (_are_equal(found, expected) and found.ids.tolist() == _flat(theirs, texts)):
            for text in texts:
                one, other = (
                    tokenizer.encode([text], with_offsets=True),
                    encode_slowly(raw, [text], with_offsets=True),
                )
                if not (_are_equal(one, other) and one.ids.tolist() == _flat(theirs, [text])):
                    n_wrong += 1
                    print(ascii(text), one.ids.tolist(), other.ids.tolist())
    print(
        json.dumps(
            {
                "texts": n_texts,
                "tokens": n_tokens,
                "mismatches": n_wrong,
                "is_fast": tokenizer.is_fast,
            }
        )
    )
    return 1 if n_wrong else 0


def _flat(theirs: Any, texts: list[str]) -> list[int]:  # noqa: ANN401 - untyped library
    """Ids by transformers, without special tokens, one text after another."""
    ids = theirs(texts, add_special_tokens=False, truncation=False)["input_ids"]
    return [number for one in ids for number in one]


def _are_equal(a: object, b: object) -> bool:
    names = ("ids", "ends", "start", "stop")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


if __name__ == "__main__":
    sys.exit(main())
