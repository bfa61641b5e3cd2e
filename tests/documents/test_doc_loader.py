"""Old Word files: through LibreOffice, in a folder of its own, with an end; named when missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from waiting import HANG_S, has_ended, wait_for
from zip_writing import paragraph, write_docx

from featpipe.documents import LoadLimits, load_document
from featpipe.documents.formats import doc
from featpipe.errors import DocumentTooLarge, UnreadableDocument, UnsupportedDocument

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "WordDocument".encode("utf-16-le")


@pytest.fixture
def converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in LibreOffice's place, and the .docx that it hands out."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "made.docx").write_bytes(write_docx(paragraph("第一条 租金")))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return programs / "soffice"


def install(converter: Path, body: str) -> None:
    converter.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}", "utf-8")
    converter.chmod(0o755)
    doc.find_converter.cache_clear()


GOOD = """
    import os, pathlib, shutil, sys
    folder = pathlib.Path(sys.argv[-1]).parent
    assert pathlib.Path.cwd() == folder, "not in its own folder"
    assert os.environ["HOME"] == str(folder), "not in a home of its own"
    assert oct(folder.stat().st_mode & 0o777) == "0o700", "others can look in"
    profile = (folder / "profile" / "user" / "registrymodifications.xcu").read_text()
    assert "DisableMacrosExecution" in profile and "BlockUntrustedRefererLinks" in profile
    (folder / "made").mkdir()
    shutil.copy(pathlib.Path(__file__).parents[1] / "made.docx", folder / "made" / "document.docx")
    print(folder, file=open(pathlib.Path(__file__).parent / "used", "w"))
"""


def test_a_file_is_read_as_the_converter_hands_it_out(converter: Path) -> None:
    install(converter, GOOD)
    document = load_document(OLE, source="租赁合同.doc")
    assert document.text == "第一条 租金"
    assert (document.media_type, document.loader) == ("application/msword", "doc/5")
    assert "LibreOffice" in document.notes[0]
    assert not Path((converter.parent / "used").read_text().strip()).exists()


def test_a_missing_converter_is_named_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedDocument, match="LibreOffice, which is not installed") as caught:
        load_document(OLE, source="a.doc")
    assert "libreoffice-writer" in str(caught.value.hint)


def test_no_program_is_taken_from_where_the_documents_are(
    converter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(converter, GOOD)
    monkeypatch.chdir(converter.parent)
    monkeypatch.setenv("PATH", f".::{tmp_path / 'nowhere'}")
    with pytest.raises(UnsupportedDocument, match="not installed"):
        load_document(OLE, source="a.doc")


def test_a_file_that_cannot_be_converted_says_so(converter: Path) -> None:
    install(converter, "print('Error: source file could not be loaded')")
    with pytest.raises(UnreadableDocument, match="source file could not be loaded"):
        load_document(OLE, source="a.doc")
    install(converter, GOOD)
    with pytest.raises(DocumentTooLarge):
        load_document(OLE, source="a.doc", limits=LoadLimits(max_bytes=len(OLE)))


def test_a_new_profile_may_ask_to_be_run_again(converter: Path) -> None:
    again = """
        import os, pathlib, sys
        mark = pathlib.Path(__file__).with_name("started")
        if not mark.exists():
            mark.touch()
            os._exit(81)
    """
    install(converter, textwrap.dedent(again) + textwrap.dedent(GOOD))
    assert load_document(OLE, source="a.doc").text == "第一条 租金"


HANGING = """
    import os, pathlib, signal, subprocess, sys
    child = subprocess.Popen(["sleep", "3600"])
    pids = os.environ["HOME"] + "/../pids"
    with open(pids + ".new", "w") as file:
        print(os.getpid(), child.pid, file=file)
    os.rename(pids + ".new", pids)
    signal.pause()
"""


def test_one_that_never_ends_is_killed_with_all_it_started(
    converter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(converter, HANGING)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pids = tmp_path / "pids"
    for seconds in (1, 5, 60):  # until it had the time to start something
        monkeypatch.setattr(doc, "_MOST_SECONDS", float(seconds))
        with pytest.raises(UnreadableDocument, match=f"within {seconds} s"):
            load_document(OLE, source="a.doc")
        if pids.exists():
            break
    for pid in map(int, pids.read_text().split()):
        assert wait_for(lambda pid=pid: is_gone(pid))


def is_gone(pid: int) -> bool:
    try:
        return has_ended(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


def test_one_whose_parent_is_killed_ends_too(converter: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    install(
        converter,
        """
        import os, pathlib, signal
        # Open for as long as this process lives; the test reads until it is closed.
        held = os.open(pathlib.Path(__file__).parents[1] / "alive", os.O_WRONLY)
        os.write(held, b"started")
        signal.pause()
        """,
    )
    code = f"from featpipe.documents import load_document; load_document({OLE!r}, source='a.doc')"
    with (
        subprocess.Popen([sys.executable, "-c", code]) as parent,
        (tmp_path / "alive").open("rb") as alive,
    ):
        assert alive.read(7) == b"started"
        parent.send_signal(signal.SIGKILL)
        assert alive.read() == b""  # ends when the converter does


needs_libreoffice = pytest.mark.skipif(
    doc.find_converter(os.environ.get("PATH", "")) is None, reason="LibreOffice is not installed"
)


@needs_libreoffice
def test_libreoffice_hands_out_what_the_docx_holds(tmp_path: Path) -> None:
    """Oracle: the .docx itself, written as .doc and .rtf by LibreOffice."""
    word = pytest.importorskip("docx", reason="python-docx is not installed")
    made = word.Document()
    made.add_paragraph("采购合同 HT-2024-001")
    table = made.add_table(2, 2)
    for at, text in enumerate(("品名", "金额", "钢材", "三万元")):
        table.cell(at // 2, at % 2).text = text
    made.add_paragraph("甲方：𠮷野家")
    made.save(tmp_path / "a.docx")
    for form in ("doc:MS Word 97", "rtf:Rich Text Format"):
        subprocess.run(
            ["soffice", "--headless", f"-env:UserInstallation={(tmp_path / 'p').as_uri()}",
             "--convert-to", form, "--outdir", str(tmp_path), str(tmp_path / "a.docx")],
            check=True, capture_output=True, timeout=HANG_S,
        )  # fmt: skip
    wanted = load_document((tmp_path / "a.docx").read_bytes(), source="a.docx")
    for name in ("a.doc", "a.rtf"):
        found = load_document((tmp_path / name).read_bytes(), source=name)
        assert found.text == wanted.text
        assert [[(c.row, c.column) for c in t.cells] for t in found.tables] == [
            [(c.row, c.column) for c in t.cells] for t in wanted.tables
        ]
