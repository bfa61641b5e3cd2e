"""Word files of the old binary format (.doc), through LibreOffice, where it is installed.

LibreOffice writes a .docx, which is read as any other: numbers of clauses, tables, notes.

Guarantees: it works in a private folder, with a profile of its own that runs no macro and fetches
nothing; no file of the documents' folder is opened or run, and no program is looked for there; it
is killed when its time is up, and when this process ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING

from featpipe.documents.formats import docx
from featpipe.documents.limits import LIBREOFFICE_HINT
from featpipe.errors import DocumentTooLarge, UnreadableDocument, UnsupportedDocument

if TYPE_CHECKING:
    from featpipe.documents.builder import DocumentBuilder
    from featpipe.documents.limits import LoadLimits

#: Below the deadline of a document: the file is then named as slow, and its worker goes on.
_MOST_SECONDS = 90.0
#: A new profile makes it start twice: it ends with one of these codes and waits to be run again.
_ASKS_FOR_RESTART, _MOST_STARTS = (79, 81), 3
#: Run before the converter, in its process: SIGKILL when its parent ends, however it does
#: (prctl(2), PR_SET_PDEATHSIG). A ``preexec_fn`` would run the handlers that others registered for
#: a fork of this process.
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
_NAMES = ("soffice", "libreoffice")

#: Nothing in a document runs, and nothing that it links to is fetched.
_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update">
<prop oor:name="Link" oor:op="fuse"><value>2</value></prop></item>
</oor:items>
"""


def load(data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> DocumentBuilder:
    """Read a .doc file, as a :class:`~featpipe.documents.load.LoadFunction`.

    Raises:
        UnsupportedDocument: LibreOffice is not installed.
        UnreadableDocument: damaged, locked by a password, or too slow.
    """
    program = find_converter(os.environ.get("PATH", os.defpath))
    if program is None:
        raise UnsupportedDocument(
            "a Word file of the old binary format is read through LibreOffice, which is not "
            "installed",
            hint=LIBREOFFICE_HINT,
        )
    with TemporaryDirectory(prefix="featpipe-doc-", ignore_cleanup_errors=True) as folder:
        converted = _convert(program, data, Path(folder), limits)
    builder = docx.load(converted, limits)
    builder.note("read through LibreOffice, as it converts the old Word format")
    return builder


@lru_cache(maxsize=4)
def find_converter(search_path: str) -> Path | None:
    """LibreOffice in the folders of a search path; a relative one might be that of documents."""
    folders = os.pathsep.join(p for p in search_path.split(os.pathsep) if Path(p).is_absolute())
    found = next(filter(None, (shutil.which(name, path=folders) for name in _NAMES)), None)
    if found is None:
        return None
    # The program itself rather than the script and the splash screen that start it: one process,
    # which the kernel can end with its parent.
    script = Path(found).resolve()
    program = script.with_name("soffice.bin")
    return program if program.is_file() else script


def _convert(program: Path, data: bytes, folder: Path, limits: LoadLimits) -> bytes:
    (folder / "profile" / "user").mkdir(parents=True)
    (folder / "profile" / "user" / "registrymodifications.xcu").write_text(_PROFILE, "utf-8")
    (folder / "document.doc").write_bytes(data)
    said = _run(program, folder)
    made = folder / "made" / "document.docx"
    if not made.is_file():
        raise UnreadableDocument(
            f"LibreOffice cannot read it ({said})" if said else "LibreOffice cannot read it",
            hint="it may be damaged, or locked by a password; save it as .docx",
        )
    if made.stat().st_size > limits.max_bytes:
        raise DocumentTooLarge(f"converted, it is larger than {limits.max_bytes:,} bytes")
    return made.read_bytes()


def _run(program: Path, folder: Path) -> str:
    """The converter's last words."""
    command = [
        sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()),
        str(program), "--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck",
        f"-env:UserInstallation={(folder / 'profile').as_uri()}",
        "--infilter=MS Word 97", "--convert-to", "docx:Office Open XML Text",
        "--outdir", str(folder / "made"), str(folder / "document.doc"),
    ]  # fmt: skip
    environment = {
        "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8", "SAL_USE_VCLPLUGIN": "svp",
        "PATH": os.defpath,
    }  # fmt: skip
    until = monotonic() + _MOST_SECONDS
    with (folder / "said").open("wb") as said:
        for _ in range(_MOST_STARTS):
            process = subprocess.Popen(  # noqa: S603  # LibreOffice, by its whole path
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, start_new_session=True,
            )  # fmt: skip
            if _wait(process, until) not in _ASKS_FOR_RESTART:
                break
    words = (folder / "said").read_text("utf-8", "replace").replace(f"{folder}/", "")
    lines = [line for line in words.splitlines() if "javaldx" not in line]
    return lines[-1].strip() if lines else ""


def _wait(process: subprocess.Popen[bytes], until: float) -> int:
    """Its exit code; whatever it started is in its session, and ends with it."""
    try:
        return process.wait(max(until - monotonic(), 0))
    except subprocess.TimeoutExpired as error:
        raise UnreadableDocument(
            f"LibreOffice did not convert it within {_MOST_SECONDS:.0f} s"
        ) from error
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
