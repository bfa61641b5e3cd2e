"""Tiny checkpoints, made on the fly by transformers itself: random weights, a real file layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import BertConfig

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHINESE = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能"
    "下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加"
    "量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与"
    "关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者"
    "最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少"
    "图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光"
    "门即保治北造百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采"
    "转更单风切打白教速花带安场身车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节"
    "话米整空元况今集温传土许步群广石记需段研界拉林律叫且究观越织装影算低持音众书布复容儿须际"
    "商非验连断深难近矿千周委素技备半办青省列习响约支般史感劳便团往酸历市克何除消构府称太准精"
    "值号率族维划选标写存候毛亲快效斯院查江型眼王按格养易置派层片始却专状育厂京识适属圆包火住"
    "调满县局照参红细引听该铁价严，。、；：？！“”（）《》"
)


def vocabulary() -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = ["##" + letter for letter in letters] + [
        "the",
        "and",
        "con",
        "##tract",
        "##ing",
        "##ed",
    ]
    marks = list(".,;:?!()[]-/%$&'\"")
    return [*SPECIAL, *letters, *pieces, *marks, *dict.fromkeys(CHINESE)]


def write_tokenizer(folder: Path, words: list[str]) -> None:
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    options = {"do_lower_case": False, "model_max_length": 64, "tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")


def tiny_config(**changes: object) -> BertConfig:
    from transformers import BertConfig

    sizes: dict[str, object] = {
        "vocab_size": len(vocabulary()),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }
    return BertConfig(**(sizes | changes))


def save_encoder(folder: Path, *, seed: int = 0, **changes: object) -> Path:
    import torch
    from transformers import BertModel

    torch.manual_seed(seed)
    model = BertModel(tiny_config(**changes))
    _spread(model)
    model.save_pretrained(folder)
    write_tokenizer(folder, vocabulary())
    return folder


LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG")


def save_tagger(
    folder: Path, *, labels: tuple[str, ...] = LABELS, seed: int = 0, **changes: object
) -> Path:
    import torch
    from transformers import BertForTokenClassification

    torch.manual_seed(seed)
    config = tiny_config(
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        num_labels=len(labels),
        **changes,
    )
    model = BertForTokenClassification(config)
    _spread(model)
    model.save_pretrained(folder)
    write_tokenizer(folder, vocabulary())
    return folder


def _spread(model: Module) -> None:
    """Weights as large as trained ones, so that a wrong layer shows."""
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "embeddings" not in name:
                parameter.mul_(8)
            elif "bias" in name:
                parameter.normal_(0, 0.1)


def random_crf(n_labels: int = 5) -> dict[str, Tensor]:
    """Tensors of a linear-chain CRF by pytorch-crf's names."""
    import torch

    torch.manual_seed(1)
    shapes = {
        "transitions": (n_labels, n_labels),
        "start_transitions": (n_labels,),
        "end_transitions": (n_labels,),
    }
    return {f"crf.{name}": torch.randn(shape) for name, shape in shapes.items()}
