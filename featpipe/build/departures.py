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

from featpipe.cache.places import last_places
from featpipe.documents.find import absolute, longer_ids, real_path
from featpipe.documents.source import GivenText
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.documents import Source
    from featpipe.store import Reader

    #: Address -> (id, key of the content).
    Places = Mapping[str, tuple[str, bytes]]

_PART = re.compile(r"(.+)[!@]\d+", re.DOTALL)


class Names:
    """The ids of a run's sources in a cache.

    Args:
        places: of the cache.
        given: addresses of all sources of the run.

    """

    def __init__(self, places: Places, given: frozenset[str]) -> None:
        self._places, self._given = places, given
        self._holders = {id_: address for address, (id_, _) in places.items()}

    def name(self, source: Source, key: bytes | None) -> Source:
        """The source with its id in the cache; ``key`` is that of its content, if known."""
        known = self._places.get(source.address)
        if known is not None and _end_alike(known[0], source.id):
            return replace(source, id=known[0])
        if isinstance(source.part, GivenText):
            return source
        for id_ in (source.id, *longer_ids(source)):
            if self._is_free(id_, source, key):
                self._holders[id_] = source.address
                return replace(source, id=id_)
        return source

    def _is_free(self, id_: str, source: Source, key: bytes | None) -> bool:
        holder = self._holders.get(id_)
        if holder is None or holder == source.address:
            return True
        file = _file_of(holder)
        if file == str(source.path):  # a record that has moved: within a file, ids are distinct
            return True
        if holder in self._given:
            return False
        if real_path(Path(file)) == real_path(source.path):
            return True
        return self._places[holder][1] == key and _is_gone(file)


def find_departed(
    reader: Reader, sources: Sequence[Source], roots: Sequence[str] | None
) -> dict[str, str]:
    """Address -> id of the places that leave, after a run over ``sources``.

    ``roots`` are the folders and files that were given, where the cache is to follow them; else
    None.
    """
    places = last_places(reader)
    given = {source.address for source in sources}
    seen: dict[bytes, list[tuple[str, str]]] = {}
    for address in given & places.keys():
        seen.setdefault(places[address][1], []).append((address, places[address][0]))
    expanded = {str(source.path) for source in sources if source.part is not None}
    ids_seen = {(_file_of(a), places[a][0]) for a in given & places.keys()} if expanded else set()
    departed = {}
    for address, (id_, key) in places.items():
        if address in given or _is_text(address):
            continue
        file = _file_of(address)
        if (
            (file in expanded and (roots is not None or (file, id_) in ids_seen))
            or _has_moved(file, address, id_, seen.get(key, ()), is_any=roots is not None)
            or (roots is not None and _is_under(file, roots) and _is_gone(file))
        ):
            departed[address] = id_
    return departed


def refuse_empty_roots(reader: Reader, sources: Sequence[Source], roots: Sequence[str]) -> None:
    """Refuse to follow a folder that holds nothing, if the cache has documents from there.

    Raises:
        UsageError: it is empty, perhaps because it is not mounted.

    """
    files = [str(absolute(source.path)) for source in sources]
    addresses = [_file_of(address) for address in last_places(reader)]
    for root in roots:
        if Path(root).is_dir() and not any(_is_under(file, [root]) for file in files):
            n_held = sum(_is_under(file, [root]) for file in addresses)
            if n_held:
                raise UsageError(
                    f"{root} holds no document now, and the cache has {n_held} from there",
                    hint="is it mounted? featpipe documents forget removes them for good",
                )


def _has_moved(
    file: str, address: str, id_: str, same: Sequence[tuple[str, str]], *, is_any: bool
) -> bool:
    """Whether a place not seen has the content of one that was, and is that document."""
    if not same:
        return False
    if _is_gone(file):
        return is_any or any(_end_alike(id_, other) for _, other in same)
    part = address[len(file) :]
    real = real_path(Path(file))
    return any(
        real == real_path(Path(_file_of(other))) and part == other[len(_file_of(other)) :]
        for other, _ in same
    )


def _file_of(address: str) -> str:
    """The file of a document, its own or the one that holds it as a member or record."""
    match = _PART.fullmatch(address)
    return address if match is None or os.path.lexists(address) else match[1]


def _is_text(address: str) -> bool:
    """Whether the document was given as a text."""
    name = address.rpartition("/")[2]
    return name.startswith("<") and name.endswith(">")


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
