"""``featpipe export``: tables as files that anything can read."""

from __future__ import annotations

import click


@click.command("export")
@click.argument("cache", metavar="FILE")
@click.argument("folder", metavar="FOLDER")
@click.option("--table", multiple=True, metavar="NAME", help="Only this one; repeat for more.")
@click.option("--parquet", is_flag=True, help="One Parquet file per table (extra: arrow).")
def command(cache: str, folder: str, table: tuple[str, ...], parquet: bool) -> None:
    """Write the tables of FILE below FOLDER: one .npy per column and rows.jsonl per table."""
    from featpipe.store.export import export_npy, export_parquet

    export = export_parquet if parquet else export_npy
    click.echo(str(export(cache, folder, tables=table or None)))
