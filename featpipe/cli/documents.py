"""``featpipe documents``: the documents of a cache, listed, shown and forgotten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import lock_option
from featpipe.cli.terminal import echo
from featpipe.errors import UsageError
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument

#: Documents that leave without a question.
_FEW = 1
#: Documents named before a question.
_NAMED = 20


@click.group("documents")
def documents() -> None:
    """List, show and forget the documents of a cache.

    NAMES are ids, paths, folders, or patterns of the shell over ids and paths.
    """


@documents.command("list", short_help="One line per document: id and path.")
@click.argument("cache", metavar="CACHE")
@click.argument("names", nargs=-1, metavar="[NAMES...]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per document.")
def list_(cache: str, names: tuple[str, ...], as_json: bool) -> None:
    """Print the id and path of every document in CACHE, or of those of NAMES."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.forget import choose_documents

    with Cache.open(cache) as opened:
        for document in choose_documents(opened.stored_documents, names):
            if as_json:
                echo(json.dumps(_record(opened, document), ensure_ascii=False))
            else:
                echo(_line(document))


@documents.command("show", short_help="What the cache holds of one document.")
@click.argument("cache", metavar="CACHE")
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def show(cache: str, name: str, as_json: bool) -> None:
    """Print where a document is, what it is, and what CACHE holds of it."""
    from featpipe.cache.cache import Cache

    with Cache.open(cache) as opened:
        record = _record(opened, opened.document(name))
    if as_json:
        echo(json.dumps(record, ensure_ascii=False, indent=2))
        return
    for key, value in record.items():
        counts = value.items() if isinstance(value, dict) else [("", value)]
        for what, count in counts:
            echo(f"{key:<10} {what}{' ' * bool(what)}{count}")


@documents.command("forget", short_help="Have documents leave the cache.")
@click.argument("cache", metavar="CACHE")
@click.argument("names", nargs=-1, required=True, metavar="NAMES...")
@lock_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say which documents would leave; write nothing.")
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
def forget(cache: str, names: tuple[str, ...], yes: bool, dry_run: bool, wait: float) -> None:
    """Have documents leave CACHE: they are found, searched, extracted and reported no more.

    `featpipe compact` then frees what only they hold. A document that a later build-cache finds is
    back. Asks before more than one leaves.
    """
    from featpipe.cache.cache import Cache
    from featpipe.cache.forget import choose_documents, forget_documents

    with Cache.open(cache) as opened:
        chosen = choose_documents(opened.stored_documents, names)
        _name(chosen)
        if dry_run:
            echo(f"{_count(chosen)} would leave {cache}")
            return
        if len(chosen) > _FEW and not yes:
            _ask(f"forget {_count(chosen)}?")
        forget_documents(opened.path, chosen, wait_s=wait)
    echo(f"{_count(chosen)} left {cache}; featpipe compact frees what only they hold")


def _ask(question: str) -> None:
    """Go on only if a person, or a program by standard input, agrees."""
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            echo(err=True)  # ends the line of the question
            raise UsageError(
                "nothing was forgotten: standard input gave no answer", hint="say --yes"
            ) from None
        raise


def _count(chosen: Sequence[CachedDocument]) -> str:
    return f"{len(chosen)} document{'s' * (len(chosen) != 1)}"


def _line(document: CachedDocument) -> str:
    from featpipe.documents.source import printable

    return f"{document.id}  {printable(document.path)}"


def _name(chosen: Sequence[CachedDocument]) -> None:
    for document in chosen[:_NAMED]:
        echo(_line(document), err=True)
    if len(chosen) > _NAMED:
        echo(f"... and {len(chosen) - _NAMED} more", err=True)


def _record(cache: Cache, document: CachedDocument) -> dict[str, object]:
    """Plain JSON types; of each space how many of the document's units have a vector."""
    units = {level: len(document.spans(level)) for level in LEVELS}
    spaces = {
        name: sum(
            int(cache.dictionary(name).lookup_keys(document.keys(level))[1].sum())
            for level in LEVELS
        )
        for name in cache.spaces()
    }
    taggers = cache.stored_documents.taggers()
    return {
        "id": document.id,
        "path": document.path,
        "hash": document.meta["bytes_hash"],
        "type": document.meta["media_type"],
        "units": units,
        "entities": {name: len(document.entities(name)) for name in taggers},
        "vectors": spaces,
    }
