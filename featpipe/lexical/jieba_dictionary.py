"""Which jieba, which dictionary, which words of the user's: the identity of a way to cut."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from featpipe.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


#: jieba's own expressions: a line of a user dictionary, and what cannot be part of a word. They
#: are compiled when first used: most processes have no such dictionary.
_LINE = r"^(.+?)( [0-9]+)?( [a-z]+)?$"
_OUTSIDE = r"[^\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]"


def hash_of(*parts: bytes) -> str:
    """32 hex digits over the parts and their boundaries."""
    digest = blake2b(digest_size=16, person=b"featpipe-words")
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


class InstalledJieba(NamedTuple):
    """The jieba this interpreter would import, described without importing it.

    ``dictionary`` and ``model`` are hashes of its word list and of its hidden Markov tables.
    """

    folder: Path
    version: str
    dictionary: str
    model: str

    @property
    def dictionary_path(self) -> Path:
        """Jieba's own word list: word, frequency, tag."""
        return self.folder / "dict.txt"


@cache
def find_jieba() -> InstalledJieba:
    """Locate and hash jieba.

    Raises:
        MissingExtra: jieba is not installed, or lacks its data files.
    """
    found = importlib.util.find_spec("jieba")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("jieba is not installed", hint="pip install jieba")
    folder = Path(found.submodule_search_locations[0])
    try:
        source = (folder / "__init__.py").read_text("utf-8")
        words = (folder / "dict.txt").read_bytes()
        model = [
            (folder / "finalseg" / name).read_bytes()
            for name in ("prob_start.py", "prob_trans.py", "prob_emit.py")
        ]
    except OSError as error:
        raise MissingExtra(
            f"jieba in {folder} is incomplete: {error}", hint="reinstall jieba"
        ) from error
    version = re.search(r"__version__ = '([^']+)'", source)
    return InstalledJieba(
        folder, version[1] if version else "unknown", hash_of(words), hash_of(*model)
    )


class UserDictionary(NamedTuple):
    """A file of the user's own words, in jieba's format, known by what it holds.

    Travels to other processes as path and hash. A file that has changed in between is an error
    there, never a silently different way to cut.

    ``unmatchable`` lists words with a character at which jieba cuts before it looks words up.
    """

    path: Path
    content: str
    unmatchable: tuple[str, ...] = ()

    @classmethod
    def from_path(cls, path: Path | str) -> UserDictionary:
        """Raises UsageError when the file cannot be read, or is not UTF-8."""
        absolute = Path(path).absolute()
        data = read_user_words(absolute)
        try:
            lines = data.decode("utf-8").lstrip("\ufeff").split("\n")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"the user dictionary {path} is not UTF-8",
                hint="one word a line: word, optional frequency, optional tag",
            ) from error
        matches = [re.match(_LINE, line.strip()) for line in lines]
        words = [match[1] for match in matches if match]
        return cls(
            absolute, hash_of(data), tuple(word for word in words if re.search(_OUTSIDE, word))
        )

    def read(self) -> bytes:
        """The file's bytes, proved to be those that were hashed.

        Raises:
            UsageError: it is gone, or has changed.
        """
        data = read_user_words(self.path)
        if hash_of(data) != self.content:
            raise UsageError(
                f"the user dictionary {self.path} has changed since it was opened",
                hint="make a new Words object; terms counted with the old one stay as they are",
            )
        return data


def read_user_words(path: Path) -> bytes:
    """The bytes of a user dictionary; UsageError when there are none to be had."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the user dictionary {path}: {error.strerror}") from error


def as_user_dictionaries(
    given: Path | str | Iterable[Path | str] | None,
) -> tuple[UserDictionary, ...]:
    """Dictionaries in the order they are loaded, which matters: later words win."""
    if given is None:
        return ()
    paths = [given] if isinstance(given, (str, Path)) else list(given)
    return tuple(UserDictionary.from_path(path) for path in paths)
