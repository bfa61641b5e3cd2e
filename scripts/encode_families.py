"""Parts of ``bench_encode.py``: families of encoders, and tokenizers without a fast way of ours."""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from encoder_families import FAMILIES, TEXTS, dress, read_by_transformers, save_family, trainer
from harness import interleave

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import FeatpipeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness import Report

    from featpipe.encoders.tokens import Tokens

_EXACT = EncoderSettings(precision="exact", dtype="float32")
_SLOW = ("byte-level", "unigram")


def bench_families(report: Report) -> None:
    """Vectors of every family against sentence-transformers, or transformers without it."""
    counts = {"families_equal": 0, "families_refused": 0, "families_unequal": 0}
    for family in FAMILIES:
        with TemporaryDirectory() as scratch:
            folder = save_family(family, Path(scratch) / "model")
            try:
                found = Encoder.load(folder, _EXACT).encode(TEXTS).vectors
            except FeatpipeError as error:
                counts["families_refused"] += 1
                print(f"  {family.name}: refused: {error.message}")
                continue
            expected = _ask_peer(folder)
            if expected is None:
                read = read_by_transformers(family, folder)
                expected = np.stack([read(text) for text in TEXTS])
        is_equal = bool(np.allclose(found, expected, atol=2e-5))
        counts["families_equal" if is_equal else "families_unequal"] += 1
        print(f"  {family.name}: largest difference {np.abs(found - expected).max():.1e}")
    for key, count in counts.items():
        report.note(key, count)


def bench_slow_tokenizers(report: Report, texts: Sequence[str], rounds: int) -> None:
    """Byte-level and SentencePiece-like tokenizers: against transformers, and as a share.

    The share is that of the processor time of `Encoder.encode` with the shape of MiniLM with 12
    layers (multilingual-e5-small), the smallest model that has such a tokenizer: the largest share.
    """
    ratios, shares = [], []
    for kind in _SLOW:
        with TemporaryDirectory() as scratch:
            folder = _save_minilm_shape(Path(scratch), kind, texts)
            ratio, share = _measure(folder, texts, rounds)
        print(f"  {kind}: {ratio:.1f} times as fast as transformers, {share:.2%} of encoding")
        ratios.append(ratio)
        shares.append(share)
    report.note("slow_tokenizer_vs_transformers", min(ratios))
    report.note("slow_tokenizer_share", max(shares))


def _ask_peer(folder: Path) -> np.ndarray | None:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return None
    return np.asarray(SentenceTransformer(str(folder), device="cpu").encode(list(TEXTS)))


def _save_minilm_shape(folder: Path, kind: str, texts: Sequence[str]) -> Path:
    from tokenizers import Tokenizer, models, processors
    from transformers import XLMRobertaConfig, XLMRobertaModel

    raw = Tokenizer(models.Unigram() if kind == "unigram" else models.BPE())
    dress(raw, kind)
    raw.train_from_iterator(texts, trainer(kind, 8000))
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = XLMRobertaConfig(
        vocab_size=raw.get_vocab_size(), hidden_size=384, num_hidden_layers=12,
        num_attention_heads=12, intermediate_size=1536, pad_token_id=0,
    )  # fmt: skip
    XLMRobertaModel(config).save_pretrained(folder)
    raw.save(str(folder / "tokenizer.json"))
    options = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
    return folder


def _measure(folder: Path, texts: Sequence[str], rounds: int) -> tuple[float, float]:
    """How many times as fast as transformers, and the share of the tokenizer in encoding."""
    from transformers import AutoTokenizer

    peer = AutoTokenizer.from_pretrained(folder)
    encoder = Encoder.load(folder)
    ours = encoder.tokenizer
    many = list(texts)
    _refuse_other_ids(ours.encode(many), peer(many)["input_ids"], ours.prefix, ours.suffix)
    seconds = interleave(rounds, peer=lambda: peer(many), we=lambda: ours.encode(many))
    few = many[:: max(1, len(many) // 150)]
    in_tokens = min(_time(lambda: ours.encode(few)) for _ in range(3))
    return min(seconds["peer"]) / min(seconds["we"]), in_tokens / _time(lambda: encoder.encode(few))


def _refuse_other_ids(
    tokens: Tokens, expected: list[list[int]], prefix: tuple[int, ...], suffix: tuple[int, ...]
) -> None:
    bodies = np.split(tokens.ids, tokens.ends[:-1])
    if any([*prefix, *b.tolist(), *suffix] != e for b, e in zip(bodies, expected, strict=True)):
        raise SystemExit("texts are tokenised differently")


def _time(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
