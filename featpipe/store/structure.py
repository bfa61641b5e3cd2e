"""Finds the groups and tables of a file, and holds what it reads against the checksums of layout 2.

A group whose checksum is wrong is refused by name: what it lists, and what it does not list, cannot
be believed. Files of layout 1, and what other programs added, have no checksums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError, UnreadableDictionary
from featpipe.store import hdf5_format as hdf5
from featpipe.store.checksum import ODD_64
from featpipe.store.hdf5_parse import check_root
from featpipe.store.schema import (
    COLUMNS_ATTRIBUTE,
    GENERATION_ATTRIBUTE,
    HASH_ATTRIBUTE,
    OWN_ATTRIBUTES,
    PATH_ATTRIBUTE,
    SALT_ATTRIBUTE,
    STRUCTURE_ATTRIBUTE,
    TableSpec,
    datasets_of,
)
from featpipe.store.structure_hash import DIGITS, hash_dataset, hash_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.store.hdf5_parse import Header, Structure
    from featpipe.store.views import ColumnView

_MAX_DEPTH = 64


def spec_of(header: Header) -> TableSpec | None:
    """The schema in a group's attributes; None when the group is not a table."""
    described = header.attributes.get(COLUMNS_ATTRIBUTE)
    if not isinstance(described, str) or not isinstance(header.attributes.get(SALT_ATTRIBUTE), int):
        return None
    texts = {
        name: value
        for name, value in header.attributes.items()
        if isinstance(value, str) and name not in OWN_ATTRIBUTES
    }
    try:
        return TableSpec.from_json(described, texts)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, DictionaryError):
        return None


def row_hash_of(header: Header) -> str:
    """The name of a table's row checksum."""
    return str(header.attributes.get(HASH_ATTRIBUTE, ODD_64))


def find_root(structure: Structure, name: str) -> int:
    """The address of the root group: of its two copies the one of the later generation.

    Raises UnreadableDictionary, NewerDictionary.
    """
    _, address = structure.superblock()
    copy = _root_copy(structure)
    sound: dict[int, int] = {}
    reason: UnreadableDictionary | None = None
    for root in dict.fromkeys([address, copy] if copy else [address]):
        try:
            check_root(structure.header(root), name)
            covered_links(structure, structure.header(root), "")
            sound[root] = generation_of(structure.header(root))
        except UnreadableDictionary as error:
            reason = reason or error
    if not sound:
        raise reason or structure.damage("no root group")
    return max(sound, key=sound.__getitem__)


def _root_copy(structure: Structure) -> int:
    if structure.size < hdf5.ROOT_COPY_ADDRESS + 8:
        return 0
    return int.from_bytes(structure.bytes_at(hdf5.ROOT_COPY_ADDRESS, 8), "little")


def generation_of(header: Header) -> int:
    """How often the structure had changed when this group was written; 0 in layout 1."""
    return int(header.attributes.get(GENERATION_ATTRIBUTE, 0))


def is_covered(header: Header) -> bool:
    """Whether the group has a checksum."""
    return isinstance(header.attributes.get(STRUCTURE_ATTRIBUTE), str)


def covered_links(structure: Structure, group: Header, path: str) -> frozenset[str]:
    """The names in a group that featpipe wrote, when its checksum is right.

    All of layout 1 are uncovered. Raises UnreadableDictionary.
    """
    known = structure.covered.get(group.address)
    if known is not None:
        return known
    names: frozenset[str] | None = frozenset()
    if is_covered(group):
        # The mark of a group is outside its checksum; without it, its links would not be followed.
        names = _links_that_fit(structure, group) if group.is_group else None
    if names is None:
        raise structure.damage(f"the checksum of group /{path} is wrong")
    if not is_covered(group) and _claims_cover(group):
        raise structure.damage(f"group /{path} has no checksum")
    structure.covered[group.address] = names
    return names


def _claims_cover(group: Header) -> bool:
    version = group.attributes.get("version")
    is_late = isinstance(version, int) and version >= hdf5.COVERED_VERSION
    return is_late or bool({GENERATION_ATTRIBUTE, PATH_ATTRIBUTE} & set(group.attributes))


def _links_that_fit(structure: Structure, group: Header) -> frozenset[str] | None:
    """The links that the checksum covers: all, or all but those of other programs."""
    stated = str(group.attributes[STRUCTURE_ATTRIBUTE])
    spec = spec_of(group)
    own = datasets_of(spec, row_hash_of(group)) if spec else set(group.links)
    for names in (own & set(group.links), None):
        ours = names if names is not None else _covered_children(structure, group)
        links = {name: group.links[name] for name in ours}
        if hash_group(group.attributes, links, stated[DIGITS:]) == stated[:DIGITS]:
            return frozenset(links)
        if spec:
            break
    return None


def _covered_children(structure: Structure, group: Header) -> set[str]:
    found = set()
    for name, address in group.links.items():
        try:
            if is_covered(structure.header(address)):
                found.add(name)
        except UnreadableDictionary:
            continue
    return found


def child_of(structure: Structure, group: Header, path: str, name: str) -> Header | None:
    """The object ``name`` of a group; None when there is none. Raises UnreadableDictionary."""
    ours = covered_links(structure, group, path)
    if not group.is_group or name not in group.links:
        return None
    child = structure.header(group.links[name])
    if name in ours and not is_covered(child) and spec_of(group) is None:
        raise structure.damage(f"group /{path}/{name} has no checksum".replace("//", "/"))
    return child


def find_table(structure: Structure, root: int, path: str) -> Header | None:
    """The table's group at ``path``; None when there is none. Raises UnreadableDictionary."""
    header, above = structure.header(root), ""
    for name in path.strip("/").split("/"):
        if spec_of(header) is not None:
            return None
        child = child_of(structure, header, above, name)
        if child is None:
            return None
        header, above = child, f"{above}/{name}".strip("/")
    if header.is_group or is_covered(header):
        covered_links(structure, header, above)
    return header if spec_of(header) is not None else None


def walk_objects(
    structure: Structure, root: int, problems: list[str] | None = None
) -> Iterator[tuple[str, Header, TableSpec | None]]:
    """(path, header, schema) of every table, and of every object outside tables with schema None.

    Each object is visited once, so a cycle ends. Unreadable objects are skipped and described in
    ``problems``; without it those that featpipe wrote raise UnreadableDictionary.
    """
    pending: list[tuple[str, Header | None, str]] = [("", None, "")]
    seen: set[int] = set()
    while pending:
        above, group, name = pending.pop()
        path = f"{above}/{name}".strip("/")
        try:
            header = structure.header(root)
            if group is not None:
                header = child_of(structure, group, above, name) or header
            if header.address in seen or path.count("/") > _MAX_DEPTH:
                continue
            seen.add(header.address)
            if header.is_group or is_covered(header):
                covered_links(structure, header, path)
        except UnreadableDictionary as error:
            if not path or (problems is None and _is_ours(structure, group, name)):
                raise
            if problems is not None:
                problems.append(f"/{path}: {error.message}")
            continue
        spec = spec_of(header)
        yield path, header, spec
        if spec is None:
            pending.extend((path, header, child) for child in reversed(header.links))


def _is_ours(structure: Structure, group: Header | None, name: str) -> bool:
    return group is not None and name in structure.covered.get(group.address, ())


def check_datasets(
    structure: Structure,
    group: Header,
    path: str,
    headers: Mapping[str, Header],
    columns: Mapping[str, ColumnView],
) -> None:
    """Hold a table's datasets against its group's checksums. Raises UnreadableDictionary."""
    if not is_covered(group):
        return
    covered_links(structure, group, path)
    stated = str(group.attributes[STRUCTURE_ATTRIBUTE])[DIGITS:]
    found = dataset_hashes(group, headers, columns)
    for at, (name, digits) in enumerate(sorted(found.items())):
        if stated[at * DIGITS : (at + 1) * DIGITS] != digits:
            raise structure.damage(f"the checksum of /{path}/{name} is wrong")
    if len(stated) != DIGITS * len(found):
        raise structure.damage(f"/{path} has not the datasets of its checksum")


def dataset_hashes(
    group: Header, headers: Mapping[str, Header], columns: Mapping[str, ColumnView]
) -> dict[str, str]:
    """The checksum of each dataset of a table, by name."""
    spec = spec_of(group)
    names = datasets_of(spec, row_hash_of(group)) if spec else set()
    return {
        name: _hash_of(headers[name], columns.get(name)) for name in sorted(names & set(headers))
    }


def dataset_hash(structure: Structure, header: Header) -> str:
    """The checksum of one dataset. Raises UnreadableDictionary."""
    if not header.chunk_shape:
        return _hash_of(header, None)
    places = structure.chunks(header)
    return hash_dataset(header.datatype, header.shape[1:], header.chunk_shape, places)


def _hash_of(header: Header, column: ColumnView | None) -> str:
    if column is not None:
        return hash_dataset(header.datatype, header.shape[1:], header.chunk_shape, column.offsets)
    places = np.array([header.data_address, header.data_bytes], np.uint64).view(np.int64)
    return hash_dataset(header.datatype, header.shape, (), places)
