"""``featpipe compact``: a cache without what crashes left in it."""

from __future__ import annotations

import click


@click.command("compact")
@click.argument("cache", metavar="FILE")
def command(cache: str) -> None:
    """Rewrite FILE beside itself and put the result in its place, in one step.

    Readers that have the old file open keep it until they refresh.
    """
    from featpipe.store.rewrite import compact_dictionary

    click.echo(str(compact_dictionary(cache)))
