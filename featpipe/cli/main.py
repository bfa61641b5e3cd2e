"""The ``featpipe`` command: finds the sub-command and maps errors to exit codes.

Exit codes: 0 success; 1 some documents or units were left out (each is named); 2 wrong arguments;
3 fatal error; 130 interrupted, with all finished work kept. A reader of the output that has enough
(``| head``) ends a command that prints, with exit code 0.

Commands are imported when called, so that ``featpipe --help`` loads click only.
"""

from __future__ import annotations

import os
import select
import sys
from importlib import import_module
from typing import cast

import click

from featpipe import __version__
from featpipe.cli.terminal import echo, escape_unencodable, open_missing_streams
from featpipe.errors import FeatpipeError, UsageError
from featpipe.interpreter import module_path
from featpipe.settings import LOCK_VARIABLE, LOCKS

#: Command name -> (module in this package, attribute of it, one line for the overview).
_COMMANDS = {
    "build-cache": ("build_cache", "build_cache", "Turn documents into features, once."),
    "shard": ("shard", "shard", "Plan and do the jobs of a folder cache, on many machines."),
    "extract": ("extract", "extract", "Extract the fields of templates from documents."),
    "reprocess": ("extract", "reprocess", "Bring results up to date with changed templates."),
    "template": ("template", "template", "Draft, check, evaluate and correct templates."),
    "search": ("search", "search", "Find sentences by words and meaning."),
    "report": ("report", "report", "Write one page: what was extracted, and from where."),
    "documents": ("documents", "documents", "List, show and forget the documents of a cache."),
    "runs": ("cache_files", "runs", "List the runs of a cache, or show one."),
    "serve": ("serve", "serve", "Serve extraction, search and embeddings over HTTP."),
    "consume": ("serve", "consume", "Extract what arrives in a message queue."),
    "inspect": ("cache_files", "inspect", "Say what a cache holds."),
    "verify": ("cache_files", "verify", "Check that a cache is whole."),
    "repair": ("cache_files", "repair", "Drop damaged rows, so that they are computed again."),
    "backup": ("cache_files", "backup", "Copy a cache, also while it is written."),
    "compact": ("cache_files", "compact", "Rewrite a cache without what nothing needs."),
    "merge": ("cache_files", "merge", "Make one cache of several, without encoding."),
    "import": ("cache_files", "import_vectors", "Take over a file of one dataset per text."),
    "export": ("cache_files", "export", "Write tables as NumPy and JSON, or Parquet."),
    "models": ("models", "models", "List the models of this machine, and how each would load."),
    "doctor": ("doctor", "doctor", "Check this machine, and say what cures it."),
    "guide": ("guide", "guide", "Read and search the guide, also as an offline site."),
}

#: For every command that reads documents; as ``LoadLimits.use_ocr``.
ocr_option = click.option(
    "--ocr", is_flag=True, help="Read scans and pictures too (extra ocr; 2 s a page)."
)


def _choose_lock(_: click.Context, __: click.Parameter, lock: str | None) -> None:
    if lock:
        os.environ[LOCK_VARIABLE] = lock  # the writer's process inherits it


#: For every command that writes a cache; see :mod:`featpipe.store.lease`.
lock_option = click.option(
    "--lock",
    type=click.Choice(LOCKS),
    expose_value=False,
    callback=_choose_lock,
    help="exclusive-file: a lock file, where the file system has no locks (Lustre, some NFS).",
)

EXIT_LEFT_OUT = 1
EXIT_USAGE = 2
EXIT_FATAL = 3
EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are in modules of this package, imported when named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        return cast("click.Command", getattr(import_module(f"featpipe.cli.{module}"), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview from the table: importing every command for it would take a second."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="featpipe")
def featpipe() -> None:
    """Turn business documents into features once, and use them for ever after.

    Embeddings, entities and term statistics are computed in worker processes and kept in one
    HDF5 file. Run a command with --help for its options.
    """


def main() -> None:
    """Entry point: an error of the tree becomes one message and an exit code."""
    # What is imported from here on is not looked for in the folder of documents we may be in.
    sys.path[:] = module_path()
    open_missing_streams()
    escape_unencodable()
    try:
        code = _run()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted; what was finished is kept")
        code = EXIT_INTERRUPTED
    except FeatpipeError as error:
        _complain(f"error: {error}{_where_to_read(error)}")
        code = EXIT_USAGE if isinstance(error, UsageError) else EXIT_FATAL
    except SystemExit as stop:
        # click answers a closed pipe with exit code 1, which means something else here.
        code = 0 if stop.code == 1 and discard_closed_outputs() else stop.code
    except OSError as error:  # of the terminal, mostly: a full or vanished output
        _complain(f"error: {_describe(error)}")
        code = EXIT_FATAL
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> object:
    try:
        return featpipe.main(standalone_mode=False)
    except (ImportError, AttributeError) as error:
        if sys.platform == "linux":
            raise
        raise FeatpipeError(
            f"this needs Linux; {sys.platform} lacks what it uses: {error}",
            hint="run it on Linux, or in a Linux container; featpipe doctor tells what works here",
        ) from error


def _where_to_read(error: FeatpipeError) -> str:
    """The guide's section about errors of this class, where the error itself names no next step."""
    if error.hint:
        return ""
    named = next(kind for kind in type(error).__mro__ if kind.__module__ == "featpipe.errors")
    return f"\n  featpipe guide troubleshooting#{named.__name__.lower()}"


def _describe(error: OSError) -> str:
    """The error's words; of one that names no file, whose cause is the working folder, these."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return (
            "the working folder was removed, so a relative path leads nowhere\n"
            "  go to a folder that exists, or give the whole path"
        )
    return str(error)


def _complain(words: str) -> None:
    """Print to standard error; that nobody reads it changes no exit code."""
    try:
        echo(words, err=True)
    except OSError:
        discard_closed_outputs()


def discard_closed_outputs() -> bool:
    """Send what goes to a pipe that nobody reads any more to nowhere; whether there is one.

    Python would fail on such an output again when it ends.
    """
    closed = [number for number in (1, 2) if _has_no_reader(number)]
    for number in closed:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    return bool(closed)


def _has_no_reader(number: int) -> bool:
    asked = select.poll()
    asked.register(number, 0)
    return any(event & select.POLLERR for _, event in asked.poll(0))
