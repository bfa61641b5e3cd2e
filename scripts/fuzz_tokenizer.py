"""Hold the vectorised tokenizer against the one it was made from, on random Unicode.

Every code point may occur; runs, literals, control characters and combining marks are frequent.
Prints one line per mismatch and a JSON object at the end; exit code 1 when there was any.

    python scripts/fuzz_tokenizer.py MODEL_FOLDER [--texts 100000] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import random
import sys

import numpy as np

from featpipe.features.checkpoint import describe_checkpoint
from featpipe.features.tokenizer import Tokenizer, load_raw
from featpipe.features.tokens import encode_slowly

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


def main() -> int:
    """Compare in batches of ten thousand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    checkpoint = describe_checkpoint(options.model)
    tokenizer, raw = Tokenizer.load(checkpoint), load_raw(checkpoint)
    chance = random.Random(options.seed)  # noqa: S311 - texts, not secrets
    n_wrong = n_tokens = 0
    for _ in range(0, options.texts, 10_000):
        texts = [make_text(chance) for _ in range(10_000)]
        found = tokenizer.encode(texts, with_offsets=True)
        expected = encode_slowly(raw, texts, with_offsets=True)
        n_tokens += len(expected.ids)
        if not _are_equal(found, expected):
            for text in texts:
                one, other = (
                    tokenizer.encode([text], with_offsets=True),
                    encode_slowly(raw, [text], with_offsets=True),
                )
                if not _are_equal(one, other):
                    n_wrong += 1
                    print(ascii(text), one.ids.tolist(), other.ids.tolist())
    print(
        json.dumps(
            {
                "texts": options.texts,
                "tokens": n_tokens,
                "mismatches": n_wrong,
                "is_fast": tokenizer.is_fast,
            }
        )
    )
    return 1 if n_wrong else 0


def _are_equal(a: object, b: object) -> bool:
    names = ("ids", "ends", "start", "stop")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


if __name__ == "__main__":
    sys.exit(main())
