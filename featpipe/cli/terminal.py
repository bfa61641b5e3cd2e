r"""Printing: what documents, file names and errors hold never reaches a terminal as a command.

A control character in a file name may set a terminal's title, move its cursor over what stood
there, or, on some, run a program. Each is printed as JSON writes it: ``\u001b``.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys

import click

#: C0 but tab and newline, DEL, C1; marks that turn the direction of writing; lone surrogates.
_UNSAFE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with every character escaped that a terminal might obey, or cannot be encoded."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """``click.echo`` of the printable text."""
    click.echo(printable(text), err=err, nl=nl)


def open_missing_streams() -> None:
    """Put the null device in place of standard streams that this process was started without.

    Their numbers would be those of the files that are opened next, and these would get what a
    worker prints.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # as standard streams are
    os.close(number)
    for place, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(place, mode, encoding="utf-8", closefd=False))


def escape_unencodable() -> None:
    """Print what the encoding of the output lacks as JSON writes it; Python would fail there.

    So it is in locales such as ``zh_CN.GBK`` and ``en_US``.
    """
    codecs.register_error("featpipe-escape", _escape)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="featpipe-escape")


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end
