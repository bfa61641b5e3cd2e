"""``featpipe merge``: several caches into one."""

from __future__ import annotations

import click

from featpipe.cli.main import EXIT_LEFT_OUT


@click.command("merge")
@click.argument("caches", nargs=-1, required=True, metavar="FILE FILE...")
@click.option("-o", "--output", required=True, metavar="FILE", help="Must not exist.")
@click.pass_context
def command(ctx: click.Context, caches: tuple[str, ...], output: str) -> None:
    """Write the union of several caches, such as those of several machines.

    Nothing is encoded; a text that several of them hold is kept once. Exit code 1 when the same
    key has different bytes in two of them (named; the first one's are kept), or rows were damaged.
    """
    from featpipe.cache.merge import merge_caches

    merged = merge_caches(caches, output)
    click.echo(str(merged))
    is_whole = not (merged.conflicts or merged.n_damaged or merged.unread)
    ctx.exit(0 if is_whole else EXIT_LEFT_OUT)
