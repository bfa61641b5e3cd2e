"""Word classes are those of jieba's own dictionary, wherever a word stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.lexical.jieba_dictionary import find_jieba
from featpipe.lexical.word_classes import CLASSES, compile_classes, hash_words, open_classes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def spans(words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Code points of words laid end to end, and where each begins and ends."""
    points = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    ends = np.cumsum([len(word) for word in words])
    return points, ends - [len(word) for word in words], ends


def test_every_word_of_the_dictionary_has_its_class() -> None:
    lines = find_jieba().dictionary_path.read_text("utf-8").splitlines()
    # Where a word stands twice, its first tag counts.
    tagged = {line.split(" ")[0]: line.split(" ")[2] for line in reversed(lines)}
    names = {"nr", "ns", "nt", "nz"}
    expected = [tag[:2] if tag[:2] in names else tag[:1] for tag in tagged.values()]
    table = compile_classes(find_jieba())
    assert len(table.words) == len(tagged)
    found = table.of(*spans(list(tagged)))
    assert [CLASSES[number] for number in found.tolist()] == expected


def test_words_of_no_dictionary_have_no_class() -> None:
    words = ["质押", "邵根伙", "锤子科技", "", "𠮷", "给"]
    assert [CLASSES[n] for n in open_classes().of(*spans(words)).tolist()] == [
        "v", "", "", "", "", "p",
    ]  # fmt: skip


def test_a_word_has_one_number_wherever_it_stands_and_another_than_its_parts() -> None:
    points, starts, ends = spans(["甲乙", "丙", "甲乙丙", "丙甲", "甲乙", "\0", "\0\0"])
    numbers = hash_words(points, starts, ends).tolist()
    assert numbers[0] == numbers[4]
    assert len(set(numbers)) == len(numbers) - 1


def test_a_damaged_table_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path))
    whole = open_classes.__wrapped__()
    [file] = tmp_path.rglob("*.arrays")
    file.write_bytes(file.read_bytes()[:1000])
    again = open_classes.__wrapped__()
    mapped = open_classes.__wrapped__()
    for table in (again, mapped):
        assert table.words.tobytes() == whole.words.tobytes()
        assert table.classes.tobytes() == whole.classes.tobytes()
