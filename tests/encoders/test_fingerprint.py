"""Never a wrong vector: whatever changes a vector changes the fingerprint, and nothing else does.

The store is stood in for by a dict of (fingerprint, text) -> bytes, filled before each change.
After it, whatever the dict gives for the new fingerprint must be what the encoder computes afresh.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import nan
from pathlib import Path

import pytest
from tiny_checkpoints import save_encoder, save_tagger

from featpipe.encoders import fingerprint
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import (
    EncoderSettings,
    TaggerSettings,
    encoder_spec,
    explain_difference,
    fingerprint_of,
    tagger_spec,
)
from featpipe.encoders.tokenizer import load_raw
from featpipe.errors import CheckpointError, UsageError

TEXTS = ["合同金额", "the contract", "", "公司于二年间与政府订约", "一" * 150, "[SEP]", "ab 12"]
BASE = EncoderSettings(precision="exact", dtype="float32")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    fingerprint.forget_digests()
    yield
    fingerprint.forget_digests()


@pytest.fixture
def folder(tmp_path: Path, encoder_folder: Path) -> Path:
    return Path(shutil.copytree(encoder_folder, tmp_path / "model"))


def identify(folder: Path, settings: EncoderSettings = BASE) -> str:
    return fingerprint_of(encoder_spec(describe_checkpoint(folder), settings))


def vectors_of(folder: Path, settings: EncoderSettings = BASE) -> dict[tuple[str, str], bytes]:
    encoder = Encoder.load(folder, settings)
    rows = encoder.encode(TEXTS).vectors
    return {(encoder.fingerprint, t): row.tobytes() for t, row in zip(TEXTS, rows, strict=True)}


# --- changes of the files, each in place, behind the same path ------------------------------------


def edit_json(name: str, **changes: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        content = json.loads((folder / name).read_text("utf-8"))
        content.update(changes)
        (folder / name).write_text(json.dumps(content), "utf-8")

    return edit


def edit_weights(change: Callable[[dict[str, object]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        weights = {k: v.clone() for k, v in load_file(folder / "model.safetensors").items()}
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return edit


def nudge(weights: dict[str, object]) -> None:
    weights["encoder.layer.1.output.dense.weight"][0, 0] += 1e-3  # type: ignore[index]


def fine_tune(weights: dict[str, object]) -> None:
    import torch

    torch.manual_seed(5)
    for name, tensor in weights.items():
        if "encoder" in name:
            tensor.add_(torch.randn_like(tensor), alpha=1e-3)  # type: ignore[attr-defined, call-overload]


def swap_layers(weights: dict[str, object]) -> None:
    """The same numbers, the same sizes, in another order."""
    for name in [name for name in weights if "layer.0." in name]:
        other = name.replace("layer.0.", "layer.1.")
        weights[name], weights[other] = weights[other], weights[name]


def halve(weights: dict[str, object]) -> None:
    import torch

    for name in list(weights):
        weights[name] = weights[name].to(torch.float16)  # type: ignore[attr-defined]


def other_seed(folder: Path) -> None:
    save_encoder(folder, seed=1)


def swap_words(folder: Path) -> None:
    lines = (folder / "vocab.txt").read_text("utf-8").split("\n")
    first, second = lines.index("合"), lines.index("公")
    lines[first], lines[second] = lines[second], lines[first]
    (folder / "vocab.txt").write_text("\n".join(lines), "utf-8")


def rebuild_as_tokenizer_json(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = (folder / "vocab.txt").read_text("utf-8").split("\n")
    vocabulary = {word: number for number, word in enumerate(words) if word}
    raw = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of text
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    raw.save(str(folder / "tokenizer.json"))


def write_recipe(
    pooling: str = "mean_tokens", *, normalise: bool = False, length: int = 64, prompt: str = ""
) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        names = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
        modules = [
            {"idx": n, "name": str(n), "path": f"{n}_{name}" if n else "", "type": f"models.{name}"}
            for n, name in enumerate(names)
        ]
        (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
        (folder / "1_Pooling").mkdir(exist_ok=True)
        modes = {
            f"pooling_mode_{m}": m == pooling for m in ("cls_token", "mean_tokens", "max_tokens")
        }
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes), "utf-8")
        limits = {"max_seq_length": length}
        (folder / "sentence_bert_config.json").write_text(json.dumps(limits), "utf-8")
        prompts = {"prompts": {"query": prompt}, "default_prompt_name": "query"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts), "utf-8")

    return write


CHANGES: dict[str, Callable[[Path], None]] = {
    "other weights of the same sizes": other_seed,
    "one weight nudged": edit_weights(nudge),
    "a fine-tuned copy": edit_weights(fine_tune),
    "two layers swapped": edit_weights(swap_layers),
    "weights rounded to float16": edit_weights(halve),
    "two words of the vocabulary swapped": swap_words,
    "another tokenizer beside the vocabulary": rebuild_as_tokenizer_json,
    "lower-casing switched on": edit_json("tokenizer_config.json", do_lower_case=True),
    "Chinese characters no longer split": edit_json(
        "tokenizer_config.json", tokenize_chinese_chars=False
    ),
    "another number of heads": edit_json("config.json", num_attention_heads=8),
    "another activation": edit_json("config.json", hidden_act="relu"),
    "another epsilon": edit_json("config.json", layer_norm_eps=1e-2),
    "saved again with fewer layers": lambda folder: (
        save_encoder(folder, num_hidden_layers=1) and None
    ),
    "a shorter limit in the tokenizer": edit_json("tokenizer_config.json", model_max_length=32),
    "a recipe that pools the first token": write_recipe("cls_token"),
    "a recipe that pools the maximum": write_recipe("max_tokens"),
    "a recipe that normalises": write_recipe(normalise=True),
    "a recipe with shorter windows": write_recipe(length=32),
    "a recipe with a default prompt": write_recipe(prompt="the "),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_behind_the_same_path_never_meets_old_vectors(
    folder: Path, change: Callable[[Path], None]
) -> None:
    store = vectors_of(folder)
    before = identify(folder)
    change(folder)
    assert identify(folder) != before
    for key, row in vectors_of(folder).items():
        assert store.get(key, row) == row


SETTINGS: dict[str, EncoderSettings] = {
    "pooling cls": replace(BASE, pooling="cls"),
    "pooling max": replace(BASE, pooling="max"),
    "pooling last": replace(BASE, pooling="last"),
    "the layer before": replace(BASE, layer=-2),
    "the embeddings": replace(BASE, layer=0),
    "normalised": replace(BASE, normalise=True),
    "shorter windows": replace(BASE, max_length=32),
    "another stride": replace(BASE, stride=20),
    "a prompt": replace(BASE, prompt="the "),
    "another prompt": replace(BASE, prompt="and "),
    "stored as float16": replace(BASE, dtype="float16"),
    "stored as bfloat16": replace(BASE, dtype="bfloat16"),
    "mixed precision": replace(BASE, precision="mixed"),
}


def test_no_two_settings_share_a_fingerprint(folder: Path) -> None:
    found = {name: identify(folder, settings) for name, settings in SETTINGS.items()}
    assert len({identify(folder), *found.values()}) == len(SETTINGS) + 1
    assert all(len(value) >= 32 for value in found.values())


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_never_meets_vectors_of_the_defaults(
    folder: Path, settings: EncoderSettings
) -> None:
    store = vectors_of(folder)
    for key, row in vectors_of(folder, settings).items():
        assert store.get(key, row) == row
        assert key not in store


NEUTRAL: dict[str, Callable[[Path], EncoderSettings]] = {
    "the last layer by its number": lambda _: replace(BASE, layer=2),
    "the default pooling by name": lambda _: replace(BASE, pooling="mean"),
    "the default length by number": lambda _: replace(BASE, max_length=64),
    "no prompt, said so": lambda _: replace(BASE, prompt=""),
    "a touched file": lambda folder: (folder / "vocab.txt").touch() or BASE,  # type: ignore[func-returns-value]
    "another origin in the config": lambda folder: (
        edit_json("config.json", _name_or_path="x")(folder) or BASE
    ),  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("change", NEUTRAL.values(), ids=NEUTRAL)
def test_what_changes_no_vector_keeps_the_fingerprint(
    folder: Path, change: Callable[[Path], EncoderSettings]
) -> None:
    before = vectors_of(folder)
    assert vectors_of(folder, change(folder)) == before


def test_neither_path_nor_name_is_identity(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "another name"))
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert vectors_of(copy) == vectors_of(folder) == vectors_of(link)


def test_the_same_path_may_point_elsewhere_tomorrow(folder: Path, tmp_path: Path) -> None:
    other = save_encoder(tmp_path / "other", seed=9)
    link = tmp_path / "current"
    link.symlink_to(folder)
    store = vectors_of(link)
    link.unlink()
    link.symlink_to(other)
    assert not store.keys() & vectors_of(link).keys()


def test_inserted_duplicated_and_reordered_texts_keep_their_vectors(folder: Path) -> None:
    store = vectors_of(folder)
    encoder = Encoder.load(folder, BASE)
    texts = [*reversed(TEXTS), "新文本", *TEXTS, "新文本", *TEXTS[::2]]
    for text, row in zip(texts, encoder.encode(texts).vectors, strict=True):
        key = (encoder.fingerprint, text)
        assert store.setdefault(key, row.tobytes()) == row.tobytes()


def test_concurrent_processes_agree(folder: Path) -> None:
    code = (
        "import sys, hashlib; from featpipe.encoders.encoder import Encoder\n"
        "from featpipe.encoders.spec import EncoderSettings\n"
        "e = Encoder.load(sys.argv[1], EncoderSettings(precision='exact', dtype='float32'))\n"
        f"print(e.fingerprint, hashlib.md5(e.encode({TEXTS!r}).vectors.tobytes()).hexdigest())"
    )
    command = [sys.executable, "-c", code, str(folder)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = {run.communicate()[0] for run in runs}
    assert len(answers) == 1
    assert identify(folder) in answers.pop()


# --- the memory of digests ------------------------------------------------------------------------


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all files had been written long ago, so that their digests are remembered."""
    import time

    now = time.time_ns
    monkeypatch.setattr(fingerprint, "now_ns", lambda: now() + 10_000_000_000)


def overwrite(file: Path, content: bytes) -> None:
    """In place, same size, old modification time restored; as hidden as a change can be."""
    before = file.stat()
    assert len(content) == before.st_size
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # until the file system's clock ticks
        with file.open("r+b") as stream:
            stream.write(content)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.usefixtures("later")
def test_a_remembered_digest_is_dropped_when_bytes_change_behind_the_old_time(
    tmp_path: Path,
) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"a" * 64)
    before = fingerprint.digest_file(file)
    assert fingerprint.digest_file(file) == before
    overwrite(file, b"b" * 64)
    assert fingerprint.digest_file(file) != before


@pytest.mark.usefixtures("later")
def test_a_file_renamed_over_another_is_another(tmp_path: Path) -> None:
    file, other = tmp_path / "weights", tmp_path / "other"
    file.write_bytes(b"a" * 64)
    other.write_bytes(b"b" * 64)
    stat = file.stat()
    before = fingerprint.digest_file(file)
    other.replace(file)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert fingerprint.digest_file(file) != before


@pytest.mark.usefixtures("later")
def test_an_unchanged_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"a" * 64)
    digest = fingerprint.digest_file(file)
    monkeypatch.setattr(fingerprint, "_read_and_digest", lambda _: pytest.fail("read again"))
    assert fingerprint.digest_file(file) == digest
    fingerprint.forget_digests()  # as in another process
    assert fingerprint.digest_file(file) == digest


def test_a_file_just_written_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"a" * 64)
    digest = fingerprint.digest_file(file)
    monkeypatch.setattr(fingerprint, "_read_and_digest", lambda _: "read again")
    assert fingerprint.digest_file(file) == "read again" != digest


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("rubbish", ["", "0123", "x" * 40, "\x00" * 40])
def test_a_torn_memory_is_ignored(tmp_path: Path, rubbish: str) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"a" * 64)
    digest = fingerprint.digest_file(file)
    memory = fingerprint.remember_digests_in()
    assert memory is not None
    (memory / fingerprint.identity_of(file)).write_text(rubbish, "utf-8")
    fingerprint.forget_digests()
    assert fingerprint.digest_file(file) == digest


def test_a_home_that_cannot_be_written_costs_only_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    before = identify(folder)
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "file"))
    assert identify(folder) == before


def test_weights_swapped_while_they_are_loaded_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from featpipe.encoders import encoder

    opened = encoder.open_parts

    def swap_then_open(checkpoint: object) -> object:
        edit_weights(nudge)(folder)
        return opened(checkpoint)  # type: ignore[arg-type]

    monkeypatch.setattr(encoder, "open_parts", swap_then_open)
    with pytest.raises(CheckpointError, match="changed while it was loaded"):
        Encoder.load(folder, BASE)


def test_weights_overwritten_in_place_do_not_reach_a_loaded_encoder(
    tmp_path: Path,
) -> None:
    folder = save_tagger(tmp_path)
    file = folder / "model.safetensors"
    encoder = Encoder.load(folder, BASE)
    expected = encoder.encode(TEXTS).vectors
    content = file.read_bytes()
    overwrite(file, content[:-30_000] + bytes(30_000))
    overwrite(file, content[:4000] + bytes(len(content) - 34_000) + content[-30_000:])
    assert encoder.encode(TEXTS).vectors.tobytes() == expected.tobytes()
    with pytest.raises(CheckpointError):
        encoder.trunk.copy_to()


# --- specs and their differences ------------------------------------------------------------------


def test_the_spec_is_plain_json_and_names_no_path(folder: Path) -> None:
    spec = encoder_spec(describe_checkpoint(folder), BASE)
    text = json.dumps(spec)
    assert json.loads(text) == spec
    assert str(folder) not in text


def test_the_difference_is_named(folder: Path) -> None:
    checkpoint = describe_checkpoint(folder)
    first = encoder_spec(checkpoint, BASE)
    second = encoder_spec(checkpoint, replace(BASE, pooling="cls", prompt="the "))
    lines = list(explain_difference(first, second))
    assert [line.split(":")[0] for line in lines] == ["pooling", "prompt", "window_rule"] or [
        line.split(":")[0] for line in lines
    ] == ["pooling", "prompt"]
    assert list(explain_difference(first, dict(first))) == []


def test_other_weights_are_named_as_such(folder: Path) -> None:
    first = encoder_spec(describe_checkpoint(folder), BASE)
    edit_weights(nudge)(folder)
    second = encoder_spec(describe_checkpoint(folder), BASE)
    assert [line.split(":")[0] for line in explain_difference(first, second)] == ["weights"]


def test_a_tagger_and_an_encoder_of_one_folder_differ(tmp_path: Path) -> None:
    checkpoint = describe_checkpoint(save_tagger(tmp_path / "tagger"))
    assert fingerprint_of(
        tagger_spec(checkpoint, TaggerSettings(precision="exact"))
    ) != fingerprint_of(encoder_spec(checkpoint, BASE))


@pytest.mark.parametrize(
    "settings",
    [
        replace(BASE, precision="auto"),
        replace(BASE, layer=7),
        replace(BASE, layer=-4),
        replace(BASE, max_length=65),
        replace(BASE, max_length=3),
        replace(BASE, stride=63),
        replace(BASE, stride=0),
        replace(BASE, dtype="int8"),  # type: ignore[arg-type]
        replace(BASE, pooling="median"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_setting_the_checkpoint_cannot_follow_is_a_usage_error(
    folder: Path, settings: EncoderSettings
) -> None:
    with pytest.raises(UsageError):
        identify(folder, settings)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("layer", 7), ("max_length", 65), ("max_length", 3), ("stride", 63), ("dtype", "int8"),
        ("pooling", "median"), ("on_truncate", "cut"), ("precision", "auto"),
        ("prompt_name", "query"), ("overlap", 40),
    ],
)  # fmt: skip
def test_the_error_names_the_setting(tmp_path: Path, change: str, value: object) -> None:
    checkpoint = describe_checkpoint(save_tagger(tmp_path))
    settings: EncoderSettings | TaggerSettings = TaggerSettings(precision="exact")
    describe = tagger_spec if change == "overlap" else encoder_spec
    settings = replace(settings if change == "overlap" else BASE, **{change: value})
    with pytest.raises(UsageError, match=f"{change.removesuffix('_name')} "):
        describe(checkpoint, settings)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("layer", (True, 1.0, "1")),
        ("max_length", (32.0, 32.5, "32", nan)),
        ("stride", (1.5, "3", nan)),
        ("normalise", ("no", 0, 1)),
        ("trust_remote_code", ("no", 1, None)),
        ("prompt", (5, b"x", "\ud800")),
    ],
)
def test_a_setting_of_another_type_is_refused_by_name(
    name: str, values: tuple[object, ...]
) -> None:
    for value in values:
        with pytest.raises(UsageError, match=f"^{name} "):
            EncoderSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_length", "overlap"])
def test_a_tagger_s_setting_of_another_type_is_refused_by_name(name: str) -> None:
    for value in (1.5, "3", nan, True):
        with pytest.raises(UsageError, match=f"^{name} "):
            TaggerSettings(**{name: value})  # type: ignore[arg-type]


def test_settings_show_what_differs_from_the_defaults() -> None:
    assert repr(EncoderSettings()) == "EncoderSettings()"
    settings = EncoderSettings(pooling="cls", max_length=128)
    assert repr(settings) == "EncoderSettings(pooling='cls', max_length=128)"
    assert repr(TaggerSettings(overlap=0)) == "TaggerSettings(overlap=0)"


@pytest.mark.parametrize(
    "change",
    [
        {"added_tokens": []},
        {"normalizer": None},
        {"post_processor": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_rules_beside_the_words_of_berts_class_gave_other_ids_before(
    folder: Path, change: dict[str, object]
) -> None:
    def rules() -> object:
        return encoder_spec(describe_checkpoint(folder), BASE).get("tokenizer_rules")

    load_raw(describe_checkpoint(folder)).save(str(folder / "tokenizer.json"))
    assert rules() is None
    edit_json("tokenizer.json", **change)(folder)
    assert rules() == 1
    told = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told), "utf-8")
    assert rules() is None


def test_blanks_behind_words_gave_other_ids_before(folder: Path) -> None:
    (folder / "tokenizer.json").unlink(missing_ok=True)
    words = (folder / "vocab.txt").read_text("utf-8")
    (folder / "vocab.txt").write_text(words.replace("\n", " \n"), "utf-8")
    assert encoder_spec(describe_checkpoint(folder), BASE)["tokenizer_rules"] == 1


def test_describing_imports_no_torch(folder: Path) -> None:
    code = (
        "import sys; from featpipe.encoders.spec import EncoderSettings, encoder_spec\n"
        "from featpipe.encoders.checkpoint import describe_checkpoint\n"
        f"encoder_spec(describe_checkpoint({str(folder)!r}), EncoderSettings(precision='exact'))\n"
        "assert not {'torch', 'transformers', 'tokenizers', 'safetensors'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
