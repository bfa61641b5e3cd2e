# ruff: noqa: E501 - patterns and lists
"""The character vocabulary and its tokenizer files.

Guarantees: between 6,000 and 9,000 pieces in a fixed order; every GB2312 level-1 character, every
common traditional one (Big5 level 1), Latin letters, digits and punctuation, half and full width,
stand in it, and of GB2312 level 2 what jieba's dictionary uses most; `BertTokenizerFast` reads the three files.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from typing import TYPE_CHECKING

from small_model.gazetteer import dictionary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MOST = 9_000
PUNCTUATION = "　、。·ˉˇ¨〃々—～‖…‘’“”〔〕〈〉《》「」『』〖〗【】±×÷∶∧∨∑∏∪∩∈∷√⊥∥∠⌒⊙∫∮≡≌≈∽∝≠≮≯≤≥∞∵∴♂♀°′″℃＄¤￠￡‰§№☆★○●◎◇◆□■△▲※→←↑↓〓ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹ①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⒈⒉⒊⒋⒌⒍⒎⒏⒐㎡㎏㎜㎝㎞²³µαβγδεζηθλμνπρστφχψωΔΣΩ€¥￥£–―•√✓"


def characters_of(codec: str, first: range, second: range) -> list[str]:
    """All Chinese characters of a two-byte block of a codec, in its order."""
    found = []
    for high in first:
        for low in second:
            try:
                char = bytes((high, low)).decode(codec)
            except UnicodeDecodeError:
                continue
            if "一" <= char <= "鿿":
                found.append(char)
    return found


def build_pieces(texts: Iterable[str]) -> list[str]:
    """The vocabulary in its final order."""
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(text.lower())
    latin = string.ascii_lowercase + string.digits
    pieces = [*SPECIAL, *string.punctuation, *latin, *("##" + char for char in latin)]
    pieces += [str(year) for year in range(1980, 2040)]
    pieces += [f"{number:02}" for number in range(100)] + [
        f"##{number:02}" for number in range(100)
    ]
    pieces += [f"##{number:03}" for number in (0, 100, 200, 300, 500, 600, 800)] + [
        "000",
        "100",
        "500",
    ]
    wide = [chr(code) for code in range(0xFF01, 0xFF5F) if not 0xFF21 <= code <= 0xFF3A]
    pieces += [*wide, *("##" + char for char in wide if char.isalnum())]
    pieces += list(PUNCTUATION)
    pieces += characters_of("gb2312", range(0xB0, 0xD8), range(0xA1, 0xFF))
    pieces += sorted(c for c, n in seen.items() if n >= 2 and ("一" <= c <= "鿿" or c == "〇"))
    pieces += characters_of("big5", range(0xA4, 0xC7), [*range(0x40, 0x7F), *range(0xA1, 0xFF)])  # type: ignore[arg-type] # any iterable does
    used = Counter[str]()
    for word, count, _ in dictionary():
        used.update(dict.fromkeys(word, count))
    rare = characters_of("gb2312", range(0xD8, 0xF8), range(0xA1, 0xFF))
    pieces += sorted(rare, key=lambda char: -used[char])
    return list(dict.fromkeys(pieces))[:MOST]


def write_tokenizer(folder: Path, pieces: list[str]) -> None:
    """vocab.txt, tokenizer.json and tokenizer_config.json for a lower-casing BERT tokenizer."""
    from tokenizers import BertWordPieceTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_bytes("".join(piece + "\n" for piece in pieces).encode())
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {
        "tokenizer_class": "BertTokenizerFast",
        "do_lower_case": True,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
        "model_max_length": 512,
        "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]",
        "sep_token": "[SEP]", "mask_token": "[MASK]",
    }  # fmt: skip
    text = json.dumps(settings, ensure_ascii=False, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_bytes(text.encode())
