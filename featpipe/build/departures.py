"""Names and departures: which id a source gets in a cache, and which documents are no longer there.

**Ids in a cache.** A document keeps the id under which its path first came in, also in caches from
before ids began with the folder given. A new one gets the id of `featpipe.documents.find`, with the
names of further folders before it where a document at another path has it already.

**Departures.** After a run, a place that it did not see leaves the cache

- when the file is gone and its content was seen under the same id elsewhere (the folder moved), or
  it is the same file under another path, or the same record at another place of its file;
- with ``--sync`` also when the file is gone from a folder that was given, the member or record from
  a file that was, or the content of a missing file was seen anywhere (the folder was renamed).

"Gone" means that the file does not exist: one that cannot be read, is excluded or was quarantined
stays. A folder that was given and holds no document at all is taken for a mistake.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache.place_index import PlaceIndex
from featpipe.cache.texts import join_keys
from featpipe.documents.find import absolute, longer_ids, real_path
from featpipe.documents.source import GivenText, printable
from featpipe.errors import UsageError
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.places import Place
    from featpipe.documents import Source
    from featpipe.store import Reader

#: A member of an archive, or a record: by its hash, in caches from before by its offset.
_PART = re.compile(r"(.+)(?:!\d+|@(?:\d+|[0-9a-f]{16}(?:\.\d+)?))", re.DOTALL)


class Addresses:
    """The addresses of a run's sources, eight bytes each. Two are mistaken once in 2^64 pairs."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._hashes = np.unique(np.fromiter(map(hash, addresses), np.int64))

    def __contains__(self, address: str) -> bool:
        return bool(self.contain([address])[0])

    def contain(self, addresses: Sequence[str]) -> NDArray[np.bool_]:
        """Which of these are among them: (n,)."""
        return is_in(np.fromiter(map(hash, addresses), np.int64), self._hashes)


class Names:
    """The ids of a run's sources in a cache.

    Args:
        places: of the cache before the run.
        given: addresses of all sources of the run.

    """

    def __init__(self, places: PlaceIndex, given: Addresses) -> None:
        self._places, self._given = places, given
        #: Of sources that are new at their place: id -> address.
        self._taken: dict[str, str] = {}

    def name(self, source: Source, known: Place | None, key: bytes | None) -> Source:
        """The source with its id in the cache.

        Args:
            source: as it was found.
            known: what the cache has at its address.
            key: of its content, if known.

        """
        if known is not None and _end_alike(known.id, source.id):
            return replace(source, id=known.id) if known.id != source.id else source
        if isinstance(source.part, GivenText):
            return source
        for id_ in (source.id, *longer_ids(source)):
            if self._is_free(id_, source, key):
                self._taken[id_] = source.address
                return replace(source, id=id_)
        return source

    def _is_free(self, id_: str, source: Source, key: bytes | None) -> bool:
        holder = self._taken.get(id_) or self._holder_of(id_)
        if holder is None or holder == source.address:
            return True
        file = _file_of(holder, id_)
        if file == str(source.path):  # a record that has moved: within a file, ids are distinct
            return True
        if holder in self._given:
            return False
        if real_path(Path(file)) == real_path(source.path):
            return True
        place = self._places.find_path(holder)
        return place is not None and place.key == key and _is_gone(file)

    def _holder_of(self, id_: str) -> str | None:
        """The address of the document that has an id in the cache."""
        held = self._places.find_id(id_)
        return held[-1].path if held else None


def find_departed(
    reader: Reader, sources: Sequence[Source], given: Addresses, roots: Sequence[str] | None
) -> dict[str, str]:
    """Address -> id of the places that leave, after a run over ``sources``.

    ``given`` are their addresses; ``roots`` the folders and files that were given, where the cache
    is to follow them, else None. Memory: eight bytes for each place, besides the result.
    """
    places = PlaceIndex(reader)
    heads, n_others = _contents_seen(places, given)
    if not n_others:
        return {}
    leaving = _Leaving(places, sources, given, roots)
    departed = {}
    for block in places.blocks():
        is_given = given.contain([place.path for place in block])
        same = is_in(_heads_of(block), heads)
        for at in np.flatnonzero(~is_given).tolist():
            if leaving.is_leaving(block[at], is_elsewhere=bool(same[at])):
                departed[block[at].path] = block[at].id
    return departed


def _contents_seen(places: PlaceIndex, given: Addresses) -> tuple[NDArray[np.uint64], int]:
    """The first eight bytes of the keys at given places, sorted; the number of other places."""
    found, n_others = [np.zeros(0, np.uint64)], 0
    for block in places.blocks():
        is_given = given.contain([place.path for place in block])
        found.append(_heads_of(block)[is_given])
        n_others += int((~is_given).sum())
    return np.unique(np.concatenate(found)), n_others


def _heads_of(places: Sequence[Place]) -> NDArray[np.uint64]:
    return join_keys([place.key for place in places]).view(np.uint64)[:, 0]


class _Leaving:
    """Decides on the places that a run did not see."""

    def __init__(
        self,
        places: PlaceIndex,
        sources: Sequence[Source],
        given: Addresses,
        roots: Sequence[str] | None,
    ) -> None:
        self._places, self._given, self._roots = places, given, roots
        self._expanded = {str(path) for path in {s.path for s in sources if s.part is not None}}

    def is_leaving(self, place: Place, *, is_elsewhere: bool) -> bool:
        """Whether it leaves; ``is_elsewhere``: its content may have been seen at another place."""
        if _is_text(place):
            return False
        file = _file_of(place.path, place.id)
        if file in self._expanded and (self._roots is not None or self._has_id_in(file, place)):
            return True
        same = self._seen([place.key]) if is_elsewhere else ()
        if _has_moved(file, place, same, is_any=self._roots is not None):
            return True
        return self._roots is not None and _is_under(file, self._roots) and _is_gone(file)

    def _has_id_in(self, file: str, place: Place) -> bool:
        """Whether the file gave another record with the id of this one."""
        others = self._places.find_id(place.id)
        return any(
            other.path in self._given and _file_of(other.path, other.id) == file for other in others
        )

    def _seen(self, keys: Sequence[bytes]) -> list[Place]:
        found = self._places.find_contents(keys)
        return [place for place in found if place.path in self._given]


def refuse_empty_roots(reader: Reader, sources: Sequence[Source], roots: Sequence[str]) -> None:
    """Refuse to follow a folder that holds nothing, if the cache has documents from there.

    Raises:
        UsageError: it is empty, perhaps because it is not mounted.

    """
    files = [str(absolute(path)) for path in {source.path for source in sources}]
    for root in roots:
        if Path(root).is_dir() and not any(_is_under(file, [root]) for file in files):
            n_held = sum(
                _is_under(_file_of(place.path, place.id), [root]) for place in PlaceIndex(reader)
            )
            if n_held:
                raise UsageError(
                    f"{root} holds no document now, and the cache has {n_held} from there",
                    hint="is it mounted? featpipe documents forget removes them for good",
                )


def _has_moved(file: str, place: Place, same: Sequence[Place], *, is_any: bool) -> bool:
    """Whether a place not seen has the content of one that was, and is that document."""
    if not same:
        return False
    if _is_gone(file):
        return is_any or any(_end_alike(place.id, other.id) for other in same)
    part = place.path[len(file) :]
    real = real_path(Path(file))
    files = [_file_of(other.path, other.id) for other in same]
    return any(
        real == real_path(Path(its_file)) and part == other.path[len(its_file) :]
        for other, its_file in zip(same, files, strict=True)
    )


def _file_of(address: str, id_: str) -> str:
    """The file of a document, its own or the one that holds it as a member or record.

    The id of a file ends with its name, that of a part with the name of the part.
    """
    match = _PART.fullmatch(address)
    is_whole = id_.rpartition("/")[2] == printable(address.rpartition("/")[2])
    return address if match is None or is_whole or os.path.lexists(address) else match[1]


def _is_text(place: Place) -> bool:
    """Whether the document was given as a text: its path is made of its id, as no file's is."""
    path = str(Path(f"<{place.id}>"))
    return path == place.path or place.path.endswith(f"/{path}")


def _is_gone(file: str) -> bool:
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _is_under(file: str, roots: Sequence[str]) -> bool:
    places = {file, str(absolute(Path(file)))}
    return any(
        place == root or place.startswith(f"{root.rstrip('/')}/")
        for place in places
        for root in roots
    )


def _end_alike(one: str, other: str) -> bool:
    """Whether one id is the end of the other."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
