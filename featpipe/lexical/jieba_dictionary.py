"""jieba, its dictionary and the user's: the identity of a way to cut, and jieba itself.

The only file that imports jieba, and only when a :class:`Jieba` is made.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import re
import warnings
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.errors import MissingExtra, UsageError
from featpipe.fork_lock import make_rlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    Offsets = NDArray[np.int64]

#: jieba's own expressions: a line of a user dictionary, and a character that no word can hold.
#: They are compiled when first used: most processes have no user dictionary.
_LINE = r"^(.+?)( [0-9]+)?( [a-z]+)?$"
_OUTSIDE = r"[^\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]"


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


#: Tables of the hidden Markov model, in the order in which they are hashed.
_MODEL = ("start", "trans", "emit")


@cache
def find_jieba() -> InstalledJieba:
    """Locate and hash jieba.

    Raises:
        MissingExtra: jieba is not installed, or lacks its data files.
    """
    spec = importlib.util.find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("jieba is not installed", hint="pip install jieba")
    folder = Path(spec.submodule_search_locations[0])
    try:
        source = (folder / "__init__.py").read_text("utf-8")
        words = (folder / "dict.txt").read_bytes()
        model = [(folder / "finalseg" / f"prob_{name}.py").read_bytes() for name in _MODEL]
    except OSError as error:
        raise MissingExtra(
            f"jieba in {folder} is incomplete: {error}", hint="reinstall jieba"
        ) from error
    found = re.search(r"__version__ = '([^']+)'", source)
    version = found[1] if found else "unknown"
    return InstalledJieba(folder, version, hash_of(words), hash_of(*model))


def hash_of(*parts: bytes) -> str:
    """32 hex digits over the parts and their boundaries."""
    digest = blake2b(digest_size=16, person=b"featpipe-words")
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


class UserDictionary(NamedTuple):
    """A file of the user's own words, in jieba's format, identified by its content.

    Pickles as path and hash: a file that changes in between raises an error in the other process.

    ``unmatchable`` lists words with a character at which jieba cuts before it looks words up.
    """

    path: Path
    content: str
    unmatchable: tuple[str, ...] = ()

    @classmethod
    def from_path(cls, path: Path | str) -> UserDictionary:
        """Raises UsageError when the file cannot be read, or is not UTF-8."""
        absolute = Path(path).absolute()
        data = _read_user_words(absolute)
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
        """The file's bytes; UsageError when their hash is not :attr:`content` any more."""
        data = _read_user_words(self.path)
        if hash_of(data) != self.content:
            raise UsageError(
                f"the user dictionary {self.path} has changed since it was opened",
                hint="make a new Words object; terms counted with the old one stay as they are",
            )
        return data


def as_user_dictionaries(
    given: Path | str | Iterable[Path | str] | None,
) -> tuple[UserDictionary, ...]:
    """Dictionaries in the order they are loaded: of two entries for a word the later one counts."""
    if given is None:
        return ()
    paths = [given] if isinstance(given, (str, Path)) else list(given)
    return tuple(UserDictionary.from_path(path) for path in paths)


def _read_user_words(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the user dictionary {path}: {error.strerror}") from error


class Jieba:
    """jieba itself, cutting with a private ``jieba.Tokenizer``: the reference, at jieba's speed.

    Guarantees:
    - ``jieba.dt`` is never touched and jieba's cache file is neither read nor written.
    - A word that a user dictionary deletes (frequency 0) stays in all other tokenizers. jieba
      keeps deleted words in one module-wide set; this object's set replaces it during a cut,
      under a lock.
    - Importing jieba shows no warning, also under ``-W error`` and on Python 3.12 and later.

    Attributes:
        frequencies: every word and every prefix of one; a mere prefix has frequency 0.
        total: the sum of frequencies as jieba counts it, repeats and replaced words included.
        force_split: the deleted words.
    """

    def __init__(
        self, installed: InstalledJieba, user_dictionaries: Sequence[UserDictionary]
    ) -> None:
        jieba = _import_jieba()
        self._finalseg = jieba.finalseg
        self._tokenizer = jieba.Tokenizer()
        # What Tokenizer.initialize() does, without jieba.cache: that file has one fixed name for
        # every user and every version, and reading it is no faster than building.
        words = io.BytesIO(installed.dictionary_path.read_bytes())
        self._tokenizer.FREQ, self._tokenizer.total = self._tokenizer.gen_pfdict(words)
        self._tokenizer.initialized = True
        self.force_split: set[str] = set()
        for dictionary in user_dictionaries:
            self._load(dictionary)
        self.frequencies: dict[str, int] = self._tokenizer.FREQ
        self.total: int = self._tokenizer.total

    @property
    def model(
        self,
    ) -> tuple[dict[str, float], dict[str, dict[str, float]], dict[str, dict[str, float]]]:
        """The hidden Markov model: start, transition and emission logarithms by state BMES."""
        return self._finalseg.start_P, self._finalseg.trans_P, self._finalseg.emit_P

    def cut_coded(
        self, texts: Sequence[str], bounds: Offsets, *, hmm: bool, search: bool = False
    ) -> tuple[Offsets, Offsets]:
        """Starts and ends (n_words,) int64 over all texts laid end to end, texts in order.

        ``bounds`` (n_texts + 1,) holds where each text starts.
        """
        mode = "search" if search else "default"
        spans: list[tuple[int, int]] = []
        with self._own_force_split():
            for text, base in zip(texts, bounds.tolist(), strict=False):
                found = self._tokenizer.tokenize(text, mode=mode, HMM=hmm)
                spans.extend((base + start, base + end) for _, start, end in found)
        both = np.array(spans, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _load(self, dictionary: UserDictionary) -> None:
        data = io.BytesIO(dictionary.read())
        with self._own_force_split():
            try:
                self._tokenizer.load_userdict(data)
            except ValueError as error:
                raise UsageError(
                    f"the user dictionary {dictionary.path} cannot be loaded: {error}",
                    hint="one word a line in UTF-8: word, optional frequency, optional tag",
                ) from error

    @contextmanager
    def _own_force_split(self) -> Iterator[None]:
        with _force_split_lock:
            others = self._finalseg.Force_Split_Words
            self._finalseg.Force_Split_Words = self.force_split
            try:
                yield
            finally:
                self._finalseg.Force_Split_Words = others


#: Held while jieba's module-wide set of deleted words is replaced.
_force_split_lock = make_rlock()


def _import_jieba() -> ModuleType:
    with warnings.catch_warnings():
        # pkg_resources is deprecated, and jieba's regular expressions are SyntaxWarnings from
        # Python 3.12 on; neither concerns the user's program.
        warnings.simplefilter("ignore")
        try:
            import jieba
        except ImportError as error:
            raise MissingExtra("jieba cannot be imported", hint="pip install jieba") from error
    logging.getLogger("jieba").setLevel(logging.WARNING)
    module: ModuleType = jieba
    return module
