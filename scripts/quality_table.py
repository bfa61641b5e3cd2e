"""The guide's tables of quality, in English and in Chinese: what evaluations measured.

Made and checked by ``make_performance_table.py``, of results in ``data/benchmarks``::

    scripts/eval_extraction.py --json values.json --part held-out --entities --samples 5 20
                               --sets fddc_hetong fewfc_base sroie cuad freezes trades
                               pledges repurchases dividends loans thefts news
    scripts/eval_institutions.py --json institutions.json
    scripts/eval_ner.py --json entities.json
    scripts/eval_retrieval.py --json retrieval.json
    scripts/eval_similarity.py --json similarity.json
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Figures = Mapping[str, float]


@dataclass(frozen=True)
class Wording:
    """One language's words for the tables."""

    heads: tuple[str, ...]
    """Of the table of values."""
    sets: tuple[str, ...]
    """Names of :data:`VALUE_SETS`, in their order."""
    samples: str
    institution_heads: tuple[str, ...]
    institutions: tuple[str, ...]
    """What :data:`INSTITUTIONS` are, in their order."""
    entity_heads: tuple[str, ...]
    entity_sets: tuple[str, ...]
    meaning_heads: tuple[str, ...]
    meanings: tuple[str, ...]
    """What :data:`MEANINGS` are scores of, in their order."""


VALUE_SETS = (
    "fddc", "fewfc", "sroie", "cuad", "freezes", "trades", "pledges", "repurchases", "dividends",
    "loans", "thefts", "news",
)  # fmt: skip
VALUE_SAMPLES = (5, 20)
#: How a field is known, by keys of ``eval_institutions``.
INSTITUTIONS = ("names", "other_k3", "other_k5", "same_k3", "same_k5")
#: How far probabilities are to be trusted.
_SURENESS = ("p90_precision", "p90_share", "ece")
ENTITY_SETS = ("msra", "cluener", "resume")
#: Evaluation and key.
MEANINGS = (
    ("eval_similarity", "simclue_spearman"),
    ("eval_similarity", "simclue_tfidf_spearman"),
    ("eval_retrieval", "stard_mrr10_chars"),
    ("eval_retrieval", "stard_mrr10_vectors"),
    ("eval_retrieval", "stard_mrr10_hybrid_at_80"),
)

ENGLISH = Wording(
    heads=(
        "documents", "F1 (95 %)", "right of those at .9 and more", "their share",
        "calibration error", "F1 in records",
    ),
    sets=(
        "announcements of contracts", "events in sentences", "English receipts",
        "English contracts", "freezes and pledges of shares", "purchases and sales of shares",
        "pledges and releases of shares", "repurchases of shares", "dividends",
        "judgments about loans", "case facts of thefts", "short news of companies",
    ),
    samples="{name}, {k} samples",
    institution_heads=(
        "what is known of a field", "F1 (95 %)", "right of those at .9 and more", "their share",
        "calibration error",
    ),
    institutions=(
        "its name alone", "3 samples of other institutions", "5 samples of other institutions",
        "3 samples, any institution", "5 samples, any institution",
    ),
    entity_heads=(
        "texts", "F1", "right of those at .9 and more", "their share", "calibration error",
    ),
    entity_sets=("news (MSRA)", "short news (CLUENER)", "careers (resumes)"),
    meaning_heads=("what", "score"),
    meanings=(
        "similar sentences (SimCLUE), rank correlation", "the same by TF-IDF of characters",
        "the law to a question (STARD), MRR@10 by BM25", "the same by vectors",
        "the same by both",
    ),
)  # fmt: skip

CHINESE = Wording(
    heads=("文档", "F1（95 %）", "概率 .9 及以上者的正确率", "其占比", "校准误差", "记录的 F1"),
    sets=(
        "合同公告", "句子中的事件", "英文收据", "英文合同", "股份冻结与质押公告", "股份增减持公告",
        "股份质押与解除质押公告", "股份回购公告", "分红公告", "借款案件裁判文书", "盗窃案件事实",
        "公司短新闻",
    ),
    samples="{name}，{k} 个样本",
    institution_heads=(
        "对字段已知的内容", "F1（95 %）", "概率 .9 及以上者的正确率", "其占比", "校准误差",
    ),
    institutions=(
        "仅有名称", "其他机构的 3 个样本", "其他机构的 5 个样本",
        "任意机构的 3 个样本", "任意机构的 5 个样本",
    ),
    entity_heads=("文本", "F1", "概率 .9 及以上者的正确率", "其占比", "校准误差"),
    entity_sets=("新闻（MSRA）", "短新闻（CLUENER）", "履历（resume）"),
    meaning_heads=("内容", "得分"),
    meanings=(
        "相似句子（SimCLUE），等级相关", "同上，用字的 TF-IDF",
        "由问题找法条（STARD），按 BM25 的 MRR@10", "同上，按向量", "同上，两者合用",
    ),
)  # fmt: skip


def quality_tables(kept: Mapping[str, Mapping], wording: Wording) -> list[str]:
    """Tables that begin with a line of heads; what nobody measured is left empty."""
    figures = {name: result["figures"] for name, result in kept.items()}
    return [
        _written(wording.heads, _value_rows(figures.get("eval_extraction", {}), wording)),
        _written(
            wording.institution_heads,
            _institution_rows(figures.get("eval_institutions", {}), wording),
        ),
        _written(wording.entity_heads, _entity_rows(figures.get("eval_ner", {}), wording)),
        _written(wording.meaning_heads, _meaning_rows(figures, wording)),
    ]


def _value_rows(figures: Figures, wording: Wording) -> Iterator[tuple[str, ...]]:
    for name, words in zip(VALUE_SETS, wording.sets, strict=True):
        for k in VALUE_SAMPLES:
            key = f"{name}_k{k}"
            if f"{key}_f1" not in figures:
                continue
            yield (
                wording.samples.format(name=words, k=k),
                *_measured(figures, key, (*_SURENESS, "records_f1")),
            )


def _institution_rows(figures: Figures, wording: Wording) -> Iterator[tuple[str, ...]]:
    for name, words in zip(INSTITUTIONS, wording.institutions, strict=True):
        key = f"all_{name}"
        if f"{key}_f1" not in figures:
            continue
        yield words, *_measured(figures, key, _SURENESS)


def _measured(figures: Figures, key: str, measures: tuple[str, ...]) -> Iterator[str]:
    """F1 with its interval, and further measures."""
    f1, low, high = (_short(figures[f"{key}_{what}"]) for what in ("f1", "low", "high"))
    yield f"{f1} ({low}-{high})"
    yield from (_short(figures.get(f"{key}_{measure}")) for measure in measures)


def _entity_rows(figures: Figures, wording: Wording) -> Iterator[tuple[str, ...]]:
    for name, words in zip(ENTITY_SETS, wording.entity_sets, strict=True):
        measures = ("f1", *_SURENESS)
        yield words, *(_short(figures.get(f"{name}_{measure}")) for measure in measures)


def _meaning_rows(figures: Mapping[str, Figures], wording: Wording) -> Iterator[tuple[str, ...]]:
    for (evaluation, key), words in zip(MEANINGS, wording.meanings, strict=True):
        yield words, _short(figures.get(evaluation, {}).get(key), 3)


def _written(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = (f"| {' | '.join(cells)} |" for cells in (heads, *rows))
    return "\n".join((next(lines), "|---" * len(heads) + "|", *lines))


def _short(share: float | None, digits: int = 2) -> str:
    """As .62; nothing for None."""
    if share is None:
        return ""
    return f"{share:.{digits}f}".removeprefix("0")
