"""``featpipe template``: draft, check and correct templates, and exchange their samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT, ocr_option
from featpipe.cli.template_quality import evaluate, suggest
from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from featpipe.extraction.check import Checked


@click.group("template")
def template() -> None:
    """Draft a template, check and evaluate it, exchange samples, learn corrections."""


template.add_command(evaluate)
template.add_command(suggest)


@template.command("new")
@click.argument("sample", metavar="SAMPLE", type=click.Path(exists=True, dir_okay=False))
@click.option("--name", help="By default the file's name.")
@ocr_option
def new(sample: str, name: str | None, ocr: bool) -> None:
    """Print a first template made from SAMPLE's labels and tables, in TOML.

    It names SAMPLE by its whole path, so that it may be kept in any folder.
    """
    from featpipe.documents import LoadLimits, Source, load_document
    from featpipe.extraction.named_documents import read_source
    from featpipe.extraction.samples import draft_template
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.page import page_of_document

    path = Path(sample)
    limits = LoadLimits(use_ocr=ocr)
    data = read_source(Source(str(path), path), limits)
    document = load_document(data, source=str(path), limits=limits)
    features = PageFeatures(page_of_document(document))
    click.echo(draft_template(features, name or path.stem, str(path.absolute())), nl=False)


@template.command("check")
@click.argument("templates", metavar="PATH")
@click.option("--cache", required=True, metavar="CACHE", help="Where the sample documents are.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.pass_context
def check(ctx: click.Context, templates: str, cache: str, space: str | None) -> None:
    """Say which sample values cannot be located in their documents, and why.

    Fields that a sample does not name are listed too: it counts only for those it names.
    """
    from featpipe.extraction.check import check_samples
    from featpipe.extraction.choose import find_unmatched
    from featpipe.extraction.extractor import Extractor

    n_lost = 0
    with Extractor(templates, cache, space=space or None, checkpoints="none") as extractor:
        for name, fitted in extractor.engine.templates.items():
            checked = check_samples(fitted)
            n_lost += len(checked.unlocated)
            _print_checked(name, checked)
        names = [document.id for document in extractor.cache.documents()]
        for line in find_unmatched(extractor.engine.templates.values(), names):
            echo(line)
    ctx.exit(EXIT_LEFT_OUT if n_lost else 0)


def _print_checked(name: str, checked: Checked) -> None:
    for lost in checked.unlocated:
        echo(str(lost))
    for field in checked.without_samples:
        known = "what is pretrained" if field in checked.pretrained else "its names"
        echo(f"{name}: no sample has a value of {field}; only {known} can find it")
    for sample, fields in checked.unread:
        echo(
            f"{name}: {sample} does not name {', '.join(fields)}: unknown there; if it has none, "
            f'write "{fields[0]}" = [], or complete = true in the sample'
        )
    kinds = ", ".join(f"{field} {kind}" for field, kind in checked.kinds.items())
    located = checked.n_values - len(checked.unlocated)
    echo(f"{name}: {located} of {checked.n_values} values located; {kinds}")


@template.command("import")
@click.argument("source", metavar="SOURCE")
@click.option(
    "--from", "form", required=True, type=click.Choice(["doccano", "label-studio", "table"])
)
@click.option("--table", default="samples", help="Name of the database table.")
@click.option("--template", "template_file", metavar="FILE", help="Leave out labels of no field.")
@click.option("--cache", metavar="CACHE", help="Leave out documents whose text is another there.")
@click.option("--partial", is_flag=True, help="A label that a text does not have is unknown there.")
@click.pass_context
def import_samples(  # one argument per option
    ctx: click.Context,
    source: str,
    form: str,
    table: str,
    template_file: str | None,
    cache: str | None,
    partial: bool,
) -> None:
    """Print samples labelled elsewhere as JSON Lines: keep them as NAME.samples.jsonl.

    SOURCE is an export of Label Studio (JSON) or doccano (JSONL), an SQLite file, or an SQLAlchemy
    URL. What `template export` wrote comes back as it was, except for what was labelled anew. In
    other texts a label of the file that is not there has no value; with --partial it is unknown.
    What cannot be used is named on standard error with its reason, and the rest is imported.
    """
    from contextlib import nullcontext

    from featpipe.cache.cache import Cache
    from featpipe.extraction.label_exchange import import_labels
    from featpipe.extraction.samples import import_table, render_samples
    from featpipe.extraction.template_file import load_uncorrected
    from featpipe.extraction.template_set import folder_of

    if form == "table":
        if template_file or cache or partial:
            raise click.UsageError("--template, --cache and --partial are for labelled texts")
        click.echo(render_samples(import_table(source, table)), nl=False)
        return
    known = None if template_file is None else load_uncorrected(template_file)
    folder = None if template_file is None else folder_of(template_file)
    with nullcontext() if cache is None else Cache.open(cache) as opened:
        found = import_labels(
            source, form, is_partial=partial, template=known, cache=opened, folder=folder
        )
    click.echo(render_samples(found.samples), nl=False)
    for left_out in found.left_out:
        echo(f"{source}: {left_out}", err=True)
    echo(f"samples {len(found.samples)} imported, {len(found.left_out)} left out", err=True)
    ctx.exit(EXIT_LEFT_OUT if found.left_out else 0)


@template.command("export")
@click.argument("template_file", metavar="TEMPLATE", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--to",
    "form",
    required=True,
    type=click.Choice(["doccano", "label-studio", "label-studio-config"]),
)
@click.option("--cache", metavar="CACHE", help="Where the sample documents are.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.pass_context
def export_samples(
    ctx: click.Context, template_file: str, form: str, cache: str | None, space: str | None
) -> None:
    """Print the samples of TEMPLATE, accepted corrections included, for a labelling tool.

    doccano takes JSONL, Label Studio JSON; label-studio-config prints the labelling configuration
    of a project. Values that a sample does not place are located. `template import` takes the
    tool's own export back without loss; without --cache, only samples that hold their texts go out.
    """
    from featpipe.extraction.doccano import write_doccano
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.label_exchange import export_cached, export_texts
    from featpipe.extraction.label_studio import labelling_config, write_label_studio
    from featpipe.extraction.template_file import load_template

    loaded = load_template(template_file)
    if form == "label-studio-config":
        click.echo(labelling_config(loaded), nl=False)
        return
    if cache is None:
        exported = export_texts(loaded)
    else:
        with Extractor(template_file, cache, space=space or None, checkpoints="none") as extractor:
            exported = export_cached(loaded, extractor.engine)
    write = write_doccano if form == "doccano" else write_label_studio
    names = [spec.name for spec in loaded.fields]
    click.echo(write(exported.samples, names), nl=False)
    for left_out in exported.left_out:
        echo(f"{template_file}: {left_out}", err=True)
    echo(f"samples {len(exported.samples)} exported, {len(exported.left_out)} left out", err=True)
    ctx.exit(EXIT_LEFT_OUT if exported.left_out else 0)


@template.command("learn")
@click.argument("template_file", metavar="TEMPLATE", type=click.Path(exists=True, dir_okay=False))
@click.argument("corrections", metavar="CORRECTIONS", type=click.Path(exists=True, dir_okay=False))
@click.option("--cache", required=True, metavar="CACHE", help="Where the documents are.")
@click.option("--dry-run", is_flag=True, help="Only say what it would change.")
@click.pass_context
def learn(
    ctx: click.Context, template_file: str, corrections: str, cache: str, dry_run: bool
) -> None:
    """Learn from CORRECTIONS, as saved by the report or the service, and say what changes.

    They are kept in NAME.corrections.jsonl beside TEMPLATE and accepted. A line that cannot be
    used is named with its reason, and the rest is learnt.
    """
    from featpipe.extraction.corrections_log import read_corrections
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.learn import Lesson, summarise
    from featpipe.extraction.survey import changes_here

    given = read_corrections(Path(corrections))
    with Extractor(template_file, cache) as extractor:
        engine = extractor.engine
        lesson = Lesson.of(Path(template_file), given, engine.cache)
        for bad in lesson.lines.refused:
            echo(f"{corrections}:{bad.line}: left out: {bad.reason}")
        before, after = (engine.prepare(one) for one in (lesson.before, lesson.after))
        changes = changes_here(engine, before, after)
        if not dry_run:
            lesson.keep()
    n_left_out = len(lesson.lines.refused)
    for change in changes:
        echo(str(change))
    taken, known = len(lesson.lines.taken), lesson.lines.n_known
    echo(f"corrections {taken} taken, {known} known before, {n_left_out} left out")
    echo(str(summarise(changes)))
    ctx.exit(EXIT_LEFT_OUT if n_left_out else 0)
