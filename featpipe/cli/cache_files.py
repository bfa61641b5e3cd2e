"""Commands on whole caches: inspect, runs, verify, compact, merge, import and export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT, lock_option
from featpipe.cli.terminal import echo
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import CacheSummary
    from featpipe.html_report.results import ResultsRun
    from featpipe.report import RunReport
    from featpipe.store.import_vectors import Import

#: Quarantined documents and notes of a run printed one by one; ``--json`` gives all of them.
_MOST_LISTED = 100


@click.command("inspect")
@click.argument("cache", metavar="CACHE")
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
@click.option(
    "--explain",
    nargs=2,
    metavar="A B",
    help="Say in which parts two spaces, or two tables of entities, differ.",
)
def inspect(cache: str, as_json: bool, explain: tuple[str, str] | None) -> None:
    """Say what CACHE holds: documents, units, spaces with the parts of their fingerprints."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import summarise

    with Cache.open(cache) as opened:
        if explain:
            _explain(opened, *explain)
            return
        summary = summarise(opened)
    if as_json:
        echo(json.dumps(summary.as_dict(), ensure_ascii=False, indent=2))
    else:
        _print_summary(summary)


def _explain(cache: Cache, first: str, second: str) -> None:
    from featpipe.encoders.spec import explain_difference

    lines = list(explain_difference(cache.spec_of(first), cache.spec_of(second)))
    echo("\n".join(lines) or "the same in every part")


def _print_summary(summary: CacheSummary) -> None:
    echo(f"{summary.path}: {summary.file_bytes / 2**20:.1f} MiB, {summary.runs} runs")
    echo(f"documents {summary.documents}, of {summary.contents} distinct contents")
    for level, count in summary.units_by_level.items():
        echo(f"  {level:<10} {count:>10,} units, {summary.unique_by_level[level]:>9,} unique")
    echo(f"  {'texts':<10} {summary.texts:>10,} distinct over all levels")
    for space in summary.spaces:
        echo(f"space {space.name}: {space.n_vectors:,} vectors, {space.dim} x {space.dtype}")
        for part, value in space.spec.items():
            echo(f"  {part:<13} {value}")
    for name, count in summary.entities.items():
        echo(f"entities {name}: {count:,}")
    for name, count in summary.terms.items():
        echo(f"terms {name}: {count:,} in the vocabulary")


@click.group("runs")
def runs() -> None:
    """List the runs of a cache, or show one."""


@runs.command("list", short_help="One line per run, oldest first.")
@click.argument("cache", metavar="CACHE")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per run.")
def list_(cache: str, as_json: bool) -> None:
    """Print one line per run of build-cache and reprocess in CACHE, oldest first."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import read_runs
    from featpipe.html_report.results import list_runs

    with Cache.open(cache) as opened:
        builds, extractions = read_runs(opened), list_runs(opened)
    lines = [(run.run_id, _run_record(run) if as_json else _run_line(run)) for run in builds]
    lines += [
        (run.run, _results_run_record(run) if as_json else _results_run_line(run))
        for run in extractions
    ]
    for _, line in sorted(lines, key=lambda pair: pair[0]):
        echo(line)
    if not lines:
        echo("no runs", err=True)


@runs.command("show", short_help="The record of one run.")
@click.argument("cache", metavar="CACHE")
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--json", "as_json", is_flag=True, help="The whole record, as one JSON object.")
def show(cache: str, run: str, as_json: bool) -> None:
    """Show one run of build-cache or reprocess: RUN is its id, the beginning of it, or `last`."""
    from featpipe.cache.cache import Cache
    from featpipe.cache.summary import find_run, read_runs
    from featpipe.html_report.results import list_runs

    with Cache.open(cache) as opened:
        builds = {one.run_id: one for one in read_runs(opened)}
        extractions = {one.run: one for one in list_runs(opened)}
    name = find_run((*builds, *extractions), run)
    if name in builds:
        record, lines = _run_record(builds[name]), _describe_run(builds[name])
    else:
        record, lines = _results_run_record(extractions[name]), _describe_results(extractions[name])
    echo(record if as_json else "\n".join(lines))


def _run_record(run: RunReport) -> str:
    return json.dumps({"kind": "build-cache", **run.as_dict()}, ensure_ascii=False)


def _results_run_record(run: ResultsRun) -> str:
    record = {"kind": "reprocess", "run_id": run.run, "templates": run.templates}
    return json.dumps(record | {"n_documents": run.n_documents}, ensure_ascii=False)


def _run_line(run: RunReport) -> str:
    mark = " (interrupted)" if run.was_interrupted else ""
    return f"{run.run_id}  build-cache  {run.summary()}{mark}"


def _results_run_line(run: ResultsRun) -> str:
    return f"{run.run}  reprocess    documents {run.n_documents}; {', '.join(run.templates)}"


def _describe_run(run: RunReport) -> list[str]:
    speed = run.n_encoded / run.seconds if run.seconds else 0.0
    units = ", ".join(f"{level} {n:,}" for level, n in run.units_by_level.items())
    return [
        f"run         {run.run_id}{' (interrupted)' if run.was_interrupted else ''}",
        _documents_line(run),
        f"units       {run.n_units:,}: {units}",
        _texts_line(run),
        f"entities    {run.n_entities:,}",
        f"windows     {run.n_long:,} long texts in {run.n_extra_windows:,} further windows",
        f"time        {run.seconds:.1f} s, {speed:,.0f} texts/s",
        *_listed("quarantined", [f"{q.source}: {q.reason} [{q.error}]" for q in run.quarantined]),
        *_listed("failed", [f"{f.n_units} for {f.table}: {f.reason}" for f in run.failed]),
        *_listed("note", list(run.notes)),
    ]


def _describe_results(run: ResultsRun) -> list[str]:
    return [
        f"run         {run.run}",
        f"documents   {run.n_documents:,} with new results",
        f"templates   {', '.join(run.templates)}",
    ]


def _documents_line(run: RunReport) -> str:
    return (
        f"documents   {run.n_documents:,} given, {run.n_loaded:,} loaded, of them "
        f"{run.n_unchanged:,} unchanged; {len(run.quarantined):,} quarantined"
    )


def _texts_line(run: RunReport) -> str:
    rate = run.n_hits / run.n_unique if run.n_unique else 0.0
    n_failed = sum(failed.n_units for failed in run.failed)
    return (
        f"texts       {run.n_unique:,} distinct: {run.n_hits:,} in the cache ({rate:.1%}), "
        f"{run.n_encoded:,} encoded, {n_failed:,} failed"
    )


def _listed(name: str, lines: list[str]) -> list[str]:
    n_more = len(lines) - _MOST_LISTED
    more = [f"{name:<11} {n_more:,} more; see --json"] if n_more > 0 else []
    return [f"{name:<11} {line}" for line in lines[:_MOST_LISTED]] + more


@click.command("verify")
@click.argument("cache", metavar="CACHE")
@click.option("--deep", is_flag=True, help="Every row's checksum, every key, and libhdf5's word.")
@click.pass_context
def verify(ctx: click.Context, cache: str, deep: bool) -> None:
    """Check CACHE, also beside a running build. Damage is named, with what can be saved.

    With --deep, a copy that cp made of a file while it was written is called what it is: torn. Exit
    code 1 when something is wrong; `featpipe repair` keeps the good rows.
    """
    from featpipe.build.shards.lost_texts import verify_with_texts
    from featpipe.store.verify import verify_dictionary

    found = (verify_with_texts if _is_folder(cache) else verify_dictionary)(cache, is_deep=deep)
    echo(str(found))
    ctx.exit(0 if found.is_good else EXIT_LEFT_OUT)


@click.command("repair")
@click.argument("cache", metavar="CACHE")
@lock_option
@click.pass_context
def repair(ctx: click.Context, cache: str) -> None:
    """Drop the damaged rows of CACHE; the next build-cache computes them again.

    Also saves what it can of a file that was cut short or rewritten by h5repack. The damaged file
    is kept beside it as FILE.damaged. A good file is not changed. Exit code 1 when rows were lost.
    """
    from featpipe.build.shards.lost_texts import put_back_texts
    from featpipe.cache.repair import repair_cache
    from featpipe.cache.repair_folder import repair_folder

    _refuse_member(cache, "repair")
    done = put_back_texts(repair_folder(cache)) if _is_folder(cache) else repair_cache(cache)
    echo(str(done))
    ctx.exit(0 if done.is_whole else EXIT_LEFT_OUT)


@click.command("compact")
@click.argument("cache", metavar="CACHE")
@lock_option
def compact(cache: str) -> None:
    """Rewrite CACHE beside itself and put the result in its place, in one step.

    What only forgotten documents hold is freed: no byte of their texts, vectors, entities and names
    is left. Readers that have the old file open keep it until they refresh.
    """
    from featpipe.cache.compact_folder import compact_folder
    from featpipe.cache.forgotten import compact_cache

    _refuse_member(cache, "compact")
    echo(str(compact_folder(cache) if _is_folder(cache) else compact_cache(cache)))


@click.command("backup")
@click.argument("cache", metavar="SRC")
@click.argument("target", metavar="DST")
@lock_option
def backup(cache: str, target: str) -> None:
    """Make DST a whole copy of SRC as of one instant, also while SRC is written.

    An earlier backup at DST is replaced in one step. Takes no time where the file system shares
    blocks between files (Btrfs, XFS). Elsewhere a damaged SRC is refused, and repaired first.
    """
    from featpipe.store.backup import back_up_dictionary
    from featpipe.store.backup_folder import back_up_folder

    is_folder = _is_folder(cache)
    echo(str(back_up_folder(cache, target) if is_folder else back_up_dictionary(cache, target)))


@click.command("merge")
@click.argument("caches", nargs=-1, required=True, metavar="CACHE CACHE...")
@lock_option
@click.option("-o", "--output", required=True, metavar="FILE", help="Must not exist.")
@click.option("--into", type=int, metavar="N", help="Of one folder, a folder with N shards.")
@click.pass_context
def merge(ctx: click.Context, caches: tuple[str, ...], output: str, into: int | None) -> None:
    """Write the union of several caches, files or folders, such as those of several machines.

    Nothing is encoded; a text that several of them hold is kept once. With --into a folder of many
    shards becomes one of few, which is read faster. Exit code 1 when the same key has different
    bytes in two of them (named; the first one's are kept), or rows were damaged.
    """
    from featpipe.cache.merge import merge_caches

    if into is not None:
        _narrow(ctx, caches, output, into)
        return
    merged = merge_caches(caches, output)
    echo(str(merged))
    is_whole = not (merged.conflicts or merged.n_damaged or merged.unread)
    ctx.exit(0 if is_whole else EXIT_LEFT_OUT)


def _narrow(ctx: click.Context, caches: tuple[str, ...], output: str, n_shards: int) -> None:
    from featpipe.build.shards.lost_texts import require_encoded
    from featpipe.cache.merge_folder import narrow_folder

    if len(caches) != 1 or not _is_folder(caches[0]):
        raise click.UsageError("--into joins the shards of one folder; name it alone")
    require_encoded(caches[0])
    merged = narrow_folder(caches[0], output, n_shards)
    echo(str(merged))
    ctx.exit(0 if merged.is_whole else EXIT_LEFT_OUT)


@click.command("import")
@click.argument("old", metavar="OLD")
@lock_option
@click.option("--cache", required=True, metavar="FILE", help="The cache; made when missing.")
@click.option("--group", default="word_emb", show_default=True, help="Where the datasets are.")
@click.option("--name", metavar="NAME", help="Name of the space; by default that of the file.")
@click.option("--assume-model", metavar="PATH|NAME", help="The model that made OLD; checked.")
@click.pass_context
def import_vectors(
    ctx: click.Context,
    old: str,
    cache: str,
    group: str,
    name: str | None,
    assume_model: str | None,
) -> None:
    """Append every vector below a group of OLD (one dataset per text) to a space of its own.

    The file does not say which weights made its vectors, so the space's fingerprint is that of the
    file: it is never mistaken for the space of a model. Vectors with NaN or infinity are skipped
    and named.

    With --assume-model they get the fingerprint of that model, and build-cache goes on in its
    space, if 688 texts drawn at random (all, if there are fewer) and the longest ones, encoded
    anew, have the same vectors within 0.002 of their length. Another model, pooling, prompt or
    normalisation shows in any text; 1 % of foreign rows show in 688 with 99.9 % (0.99^688 = 0.001).
    Texts longer than one window are skipped. Texts of which OLD holds only hashes cannot be
    compared. If any text differs, nothing is imported.
    """
    if assume_model is not None:
        if name is not None:
            raise click.UsageError("--assume-model gives the space the model's name; leave --name")
        from featpipe.on_demand.adopt import adopt_vectors

        adoption = adopt_vectors(old, cache, assume_model, group=group)
        _print_import(ctx, adoption.done, str(adoption))
        return
    from featpipe.cache import merge as engine

    done = engine.import_vectors(old, cache, group=group, name=name)
    _print_import(ctx, done, str(done))


def _print_import(ctx: click.Context, done: Import, summary: str) -> None:
    echo(summary)
    ctx.exit(EXIT_LEFT_OUT if done.skipped else 0)


@click.command("export")
@click.argument("cache", metavar="CACHE")
@click.argument("folder", metavar="FOLDER")
@click.option("--table", multiple=True, metavar="NAME", help="Only this one; repeat for more.")
@click.option("--parquet", is_flag=True, help="One Parquet file per table (extra: arrow).")
@click.pass_context
def export(
    ctx: click.Context, cache: str, folder: str, table: tuple[str, ...], parquet: bool
) -> None:
    """Write the tables of CACHE below FOLDER: one .npy per column and rows.jsonl per table.

    Damaged rows are an error; with --parquet they are left out, and the exit code is 1.
    """
    from featpipe.cache.forgotten import without_forgotten
    from featpipe.store.export import export_npy, export_parquet

    export = export_parquet if parquet else export_npy
    with without_forgotten(cache) as source:
        done = export(source, folder, tables=table or None)
    echo(str(done))
    ctx.exit(EXIT_LEFT_OUT if done.n_damaged else 0)


def _refuse_member(cache: str, command: str) -> None:
    """Refuse a file of a folder: what is changed in it is told by other files there.

    Raises:
        UsageError: it is one.

    """
    from featpipe.store.folder_layout import cache_of

    folder = cache_of(Path(cache).absolute())
    if not Path(cache).is_dir() and folder.is_dir():
        raise UsageError(
            f"{cache} is a file of the cache {folder}", hint=f"featpipe {command} {folder}"
        )


def _is_folder(cache: str) -> bool:
    """Whether a cache is a folder, and not a file.

    Raises:
        UsageError: it is in an object store.

    """
    from featpipe.store.object_store import is_url

    if is_url(cache):
        raise UsageError(
            f"{cache} is in an object store, and this command works on local files",
            hint="copy it as a whole to a local folder, work on that, and copy it back",
        )
    return Path(cache).is_dir()
