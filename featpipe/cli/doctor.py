"""``featpipe doctor``: what is wrong with this machine, and how it is cured."""

from __future__ import annotations

from pathlib import Path

import click

from featpipe.cli.main import EXIT_LEFT_OUT

_MARKS = {"ok": "ok  ", "warning": "warn", "problem": "BAD "}


@click.command("doctor")
@click.option("--cache", type=click.Path(path_type=Path), metavar="FILE",
              help="Look at this cache and its file system.")  # fmt: skip
@click.option("--model", metavar="PATH|NAME", help="Look at this model.")
@click.option("--torch", "with_torch", is_flag=True, help="Import torch in a child and use cards.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object.")
@click.pass_context
def command(
    ctx: click.Context, *, cache: Path | None, model: str | None, with_torch: bool, is_json: bool
) -> None:
    """Check Python, packages, devices, memory, file system, model and workers.

    Exit code 1 when something would stop a run; each finding says what to do.
    """
    from featpipe.adapters.doctor import as_json, examine, is_well

    findings = examine(cache, model, with_torch=with_torch)
    if is_json:
        click.echo(as_json(findings))
    for finding in () if is_json else findings:
        click.echo(f"{_MARKS[finding.state]}  {finding.check:14}  {finding.message}")
        if finding.cure:
            click.echo(f"{'':22}-> {finding.cure}")
    ctx.exit(0 if is_well(findings) else EXIT_LEFT_OUT)
