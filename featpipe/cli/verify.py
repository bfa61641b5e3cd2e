"""``featpipe verify``: whether a cache is whole."""

from __future__ import annotations

import click

from featpipe.cli.main import EXIT_LEFT_OUT


@click.command("verify")
@click.argument("cache", metavar="FILE")
@click.option("--deep", is_flag=True, help="Every row's checksum, every key, and libhdf5's word.")
@click.pass_context
def command(ctx: click.Context, cache: str, deep: bool) -> None:
    """Check FILE, also beside a running build. Damage is named, with what can be saved.

    Exit code 1 when something is wrong; `featpipe compact` carries the good rows over.
    """
    from featpipe.store.verify import verify_dictionary

    found = verify_dictionary(cache, is_deep=deep)
    click.echo(str(found))
    ctx.exit(0 if found.is_good else EXIT_LEFT_OUT)
