"""Tiny checkpoints with random weights, in the layout of the families of encoders that people use.

Each has the architecture, kind of tokenizer, pooling and modules of its family. The tokenizers are
trained on a few lines, so that they hold real merges and pieces.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokenizers import Tokenizer

Untyped = Any  # transformers: its models and configurations

TEXTS = (
    "甲方应当于2024年3月15日前支付合同金额人民币1,200万元。",
    "违约责任由违约方承担，双方协商解决争议；协商不成的，提交仲裁委员会仲裁。",
    "The contract is governed by the laws of the People's Republic of China.",
    "Payment within thirty (30) days;  late payments bear interest at 0.05% a day.",
    "本公司及董事会全体成员保证公告内容的真实、准确和完整。",
    "乙", "a", "Ｆｕｌｌ－ｗｉｄｔｈ ①②③ ﬁne café naïve 한국어 日本語",
)  # fmt: skip

WIDTH = 32
_N_TOKENS = 400


#: What Qwen's tokenizer takes for a word: https://huggingface.co/Qwen/Qwen2-0.5B tokenizer.json
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class Family:
    """One checkpoint: ``architecture`` is the stem of its classes in transformers."""

    name: str
    architecture: str
    tokenizer: str
    pooling: str
    changes: dict[str, object] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    """After pooling: ``Normalize``, or ``Dense`` and the name of an activation."""
    model: str = "Model"
    """The end of the name of its class."""
    has_adapter: bool = False


_ROTARY: dict[str, object] = {"head_dim": 8, "num_key_value_heads": 2, "pad_token_id": 0}
_T5: dict[str, object] = {"d_model": WIDTH, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
_GPT: dict[str, object] = {"n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": 128}

FAMILIES = (
    Family("bge", "Bert", "wordpiece", "cls", steps=("Normalize",)),
    Family("text2vec, m3e, MiniLM", "Bert", "wordpiece", "mean"),
    Family("stella, conan", "Bert", "wordpiece", "mean", steps=("Dense Identity",)),
    Family("LaBSE", "Bert", "wordpiece", "cls", steps=("Dense Tanh", "Normalize")),
    Family("Dense chain", "Bert", "wordpiece", "mean", steps=("Dense GELU", "Dense Identity")),
    Family("DistilBERT", "DistilBert", "wordpiece", "mean", {"dim": WIDTH, "n_layers": 2,
           "n_heads": 4, "hidden_dim": 64}),
    Family("RoBERTa", "Roberta", "byte-level", "mean", {"pad_token_id": 1}),
    Family("bge-m3", "XLMRoberta", "unigram", "cls", {"pad_token_id": 1}, ("Normalize",)),
    Family("multilingual e5", "XLMRoberta", "unigram", "mean", {"pad_token_id": 1},
           ("Normalize",)),
    Family("MPNet", "MPNet", "wordpiece", "mean", {"pad_token_id": 1}, ("Normalize",)),
    Family("ALBERT", "Albert", "unigram", "mean", {"embedding_size": 16}),
    Family("DeBERTa", "DebertaV2", "unigram", "mean",
           {"relative_attention": True, "position_buckets": 8}),
    Family("nomic", "NomicBert", "wordpiece", "mean"),
    Family("jina v3", "JinaEmbeddingsV3", "unigram", "mean", {"pad_token_id": 1}, ("Normalize",)),
    Family("gte", "Gte", "wordpiece", "cls"),
    Family("ModernBERT", "ModernBert", "byte-level", "cls",
           {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0}),
    Family("EuroBERT", "EuroBert", "byte-level", "mean", _ROTARY),
    Family("Qwen2 (gte-Qwen2)", "Qwen2", "qwen", "last", _ROTARY, ("Normalize",)),
    Family("Qwen3", "Qwen3", "qwen", "last", _ROTARY, ("Normalize",)),
    Family("Gemma embeddings", "Gemma3Text", "bpe", "mean",
           _ROTARY | {"use_bidirectional_attention": True, "sliding_window": 16},
           ("Dense Identity", "Dense Identity", "Normalize"), model="Model"),
    Family("Mistral (e5-mistral)", "Mistral", "bpe", "last", _ROTARY, ("Normalize",)),
    Family("T5 (sentence-t5, gtr)", "T5", "unigram", "mean", _T5,
           ("Dense Identity", "Normalize"), model="EncoderModel"),
    Family("T5 with its decoder", "T5", "unigram", "mean", _T5,
           model="ForConditionalGeneration"),
    Family("mT5", "MT5", "unigram", "mean", _T5, model="EncoderModel"),
    Family("GPT-2 (SGPT)", "GPT2", "byte-level", "weightedmean", _GPT),
    Family("LoRA on BERT", "Bert", "wordpiece", "cls", steps=("Normalize",), has_adapter=True),
    Family("LoRA on Qwen3", "Qwen3", "qwen", "last", _ROTARY, ("Normalize",),
           has_adapter=True),
)  # fmt: skip


def save_family(family: Family, folder: Path) -> Path:
    """Write the checkpoint, and return the folder that it is loaded by."""
    import torch

    torch.manual_seed(len(family.name))
    tokenizer = train_tokenizer(family.tokenizer)
    model = _make_model(family, tokenizer.get_vocab_size())
    base = folder / "base" if family.has_adapter else folder
    base.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(base)
    options = {"model_max_length": 100, "tokenizer_class": "PreTrainedTokenizerFast",
               "pad_token": "[PAD]", "unk_token": "[UNK]"}  # fmt: skip
    for place in {base, folder}:
        tokenizer.save(str(place / "tokenizer.json"))
        (place / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
    if family.has_adapter:
        save_adapter(model, base, folder)
    _save_modules(family, folder)
    return folder


def _make_model(family: Family, vocab_size: int) -> Untyped:
    import torch
    import transformers

    sizes: dict[str, object] = {
        "vocab_size": vocab_size, "hidden_size": WIDTH, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 128,
        "bos_token_id": 2, "eos_token_id": 3,
    }  # fmt: skip
    config = getattr(transformers, f"{family.architecture}Config")(**sizes | family.changes)
    model = getattr(transformers, f"{family.architecture}{family.model}")(config).eval()
    with torch.no_grad():  # as large as trained ones, so that a wrong layer shows
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "embed" not in name:
                parameter.mul_(4)
    return model


def train_tokenizer(kind: str) -> Tokenizer:
    """A tokenizer of this kind with some hundred tokens of `TEXTS`; [CLS] text [SEP]."""
    from tokenizers import Tokenizer, models, processors

    raw = Tokenizer({
        "wordpiece": lambda: models.WordPiece(unk_token="[UNK]"),  # noqa: S106 - a token of text
        "unigram": models.Unigram,
        "byte-level": models.BPE,
        "qwen": models.BPE,
        "bpe": lambda: models.BPE(unk_token="[UNK]", byte_fallback=True),  # noqa: S106
    }[kind]())  # fmt: skip
    dress(raw, kind)
    raw.train_from_iterator(TEXTS, trainer(kind, _N_TOKENS))
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return raw


def dress(raw: Tokenizer, kind: str) -> None:
    """The normalizer and the pre-tokenizer of BERT, XLM-R, GPT-2, Qwen or Gemma."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    if kind == "wordpiece":
        raw.normalizer = normalizers.BertNormalizer()
        raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    elif kind == "unigram":
        raw.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
        raw.pre_tokenizer = pre_tokenizers.Metaspace()
    elif kind == "byte-level":
        raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif kind == "qwen":
        raw.normalizer = normalizers.NFC()
        split = pre_tokenizers.Split(Regex(_QWEN_WORDS), "isolated")
        raw.pre_tokenizer = pre_tokenizers.Sequence(
            [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    else:
        raw.normalizer = normalizers.Replace(" ", "▁")


def trainer(kind: str, n_tokens: int) -> Untyped:
    """Of a tokenizer of this kind, for so many tokens."""
    from tokenizers import pre_tokenizers, trainers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    options: Untyped = {"vocab_size": n_tokens, "special_tokens": special, "show_progress": False}
    if kind == "wordpiece":
        return trainers.WordPieceTrainer(**options)
    if kind == "unigram":
        return trainers.UnigramTrainer(**options, unk_token="[UNK]")  # noqa: S106
    if kind != "bpe":
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    return trainers.BpeTrainer(**options)


def save_adapter(model: Untyped, base: Path, folder: Path, **changes: object) -> None:
    """A LoRA adapter for every query and value matrix, as PEFT writes it."""
    import torch
    from safetensors.torch import save_file

    config = {
        "peft_type": "LORA", "base_model_name_or_path": str(base), "r": 4, "lora_alpha": 16,
        "bias": "none", "fan_in_fan_out": False, "use_rslora": False, "use_dora": False,
        "target_modules": ["query", "value", "q_proj", "v_proj"], "modules_to_save": None,
        "task_type": "FEATURE_EXTRACTION", "inference_mode": True,
    } | changes  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")
    chance = torch.Generator().manual_seed(3)
    pairs = {}
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in {"query", "value", "q_proj", "v_proj"}:
            out, into = module.weight.shape
            for letter, shape in (("A", (4, into)), ("B", (out, 4))):
                pairs[f"base_model.model.{name}.lora_{letter}.weight"] = (
                    torch.randn(shape, generator=chance) / 4
                )
    save_file(pairs, folder / "adapter_model.safetensors")


def _save_modules(family: Family, folder: Path) -> None:
    """``modules.json`` and its folders, as sentence-transformers writes them."""
    import torch
    from safetensors.torch import save_file

    kinds = ["Transformer", "Pooling", *(step.split()[0] for step in family.steps)]
    modules = []
    for number, kind in enumerate(kinds):
        path = "" if number == 0 else f"{number}_{kind}"
        modules.append({"idx": number, "name": str(number), "path": path,
                        "type": f"sentence_transformers.models.{kind}"})  # fmt: skip
        (folder / path).mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    names = {"last": "lasttoken"}
    pooling = {"word_embedding_dimension": WIDTH,
               "pooling_mode": names.get(family.pooling, family.pooling)}  # fmt: skip
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), "utf-8")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 100}', "utf-8")
    for number, step in enumerate(family.steps, 2):
        if step.startswith("Dense"):
            place = folder / f"{number}_Dense"
            config = {"in_features": WIDTH, "out_features": WIDTH, "bias": True,
                      "activation_function": _ACTIVATIONS[step.split()[1]]}  # fmt: skip
            (place / "config.json").write_text(json.dumps(config), "utf-8")
            linear = torch.nn.Linear(WIDTH, WIDTH)
            tensors = {f"linear.{k}": v.detach() for k, v in linear.state_dict().items()}
            save_file(tensors, place / "model.safetensors")


_ACTIVATIONS = {
    "Tanh": "torch.nn.modules.activation.Tanh",
    "GELU": "torch.nn.modules.activation.GELU",
    "Identity": "torch.nn.modules.linear.Identity",
}


def read_by_transformers(family: Family, folder: Path) -> Callable[[str], Untyped]:
    """One text to its vector by transformers, and pooling and steps as their names say."""
    import torch
    import transformers

    base = folder / "base" if family.has_adapter else folder
    names = {"EncoderModel": "AutoModelForTextEncoding",
             "ForConditionalGeneration": "AutoModelForTextEncoding"}  # fmt: skip
    model = getattr(transformers, names.get(family.model, "AutoModel")).from_pretrained(base)
    model.eval()
    if family.has_adapter:
        _add_adapter(model, folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    layers = [_read_dense(folder / f"{number}_Dense", step) if step != "Normalize"
              else lambda x: torch.nn.functional.normalize(x, dim=0)
              for number, step in enumerate(family.steps, 2)]  # fmt: skip

    def read(text: str) -> Untyped:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.inference_mode():
            found = model(input_ids=ids, attention_mask=torch.ones_like(ids))
            vector = _pool(found.last_hidden_state[0], family.pooling)
            for layer in layers:
                vector = layer(vector)
        return vector.numpy()

    return read


def _pool(states: Untyped, pooling: str) -> Untyped:
    import torch

    if pooling == "cls":
        return states[0]
    if pooling == "last":
        return states[-1]
    if pooling == "weightedmean":
        weights = torch.arange(1, len(states) + 1)[:, None]
        return (states * weights).sum(0) / weights.sum()
    return states.mean(0)


def _read_dense(folder: Path, step: str) -> Callable[[Untyped], Untyped]:
    import torch
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    activation = getattr(torch.nn, step.split()[1])()
    return lambda x: activation(weights["linear.weight"] @ x + weights["linear.bias"])


def _add_adapter(model: Untyped, folder: Path) -> None:
    """Add ``B(A(x)) * alpha / r`` to what each changed matrix gives; nothing is merged."""
    from safetensors.torch import load_file

    weights = load_file(folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    scale = config["lora_alpha"] / config["r"] ** (0.5 if config["use_rslora"] else 1)
    for name, module in model.named_modules():
        key = f"base_model.model.{name}.lora_"
        if f"{key}A.weight" in weights:
            a, b = weights[f"{key}A.weight"], weights[f"{key}B.weight"]
            module.register_forward_hook(
                lambda _, inputs, output, a=a, b=b: output + inputs[0] @ a.T @ b.T * scale
            )
