"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from waiting import HANG_S

from featpipe.build.progress import Progress
from featpipe.cli.progress import describe, draw

AT_WORK = Progress(
    n_sources=20,
    n_sources_done=20,
    n_quarantined=1,
    n_units=5000,
    n_unique=900,
    n_hits=300,
    n_encoded=200,
    n_waiting=400,
    n_waiting_others=12,
    seconds=8.0,
    seconds_left=None,
)


def test_a_line_counts_everything_and_guesses_no_time() -> None:
    assert describe(AT_WORK) == (
        "documents 20/20, 1 quarantined; units 5000, unique 900, hits 300, encoded 200, "
        "waiting 400; entities and terms of 12 texts to come"
    )


@pytest.mark.parametrize(
    ("seconds", "said"), [(7.4, ", 7 s left"), (60.0, ", 1 min 0 s left"), (0.0, "waiting 400;")]
)
def test_time_left_is_said_once_it_is_known(seconds: float, said: str) -> None:
    assert said in describe(replace(AT_WORK, seconds_left=seconds))


SHOWN = replace(AT_WORK, n_others=40, seconds=3725.0, seconds_left=65.0)


def test_bars_count_documents_vectors_and_entities_apart() -> None:
    assert draw(SHOWN, 80) == [
        "documents  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  20/20",
        "  vectors  ━━━━━━━━━━━━━━━━━━━━━━┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  500/900",
        " entities  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━┄┄┄┄┄┄┄┄┄┄┄┄  28/40",
        "  1:02:05 elapsed · about 1:05 left · 1 quarantined · 88% of 5,000 units known",
    ]
    assert draw(SHOWN, 60)[3] == "  1:02:05 elapsed · about 1:05 left · 1 quarantined"
    assert draw(SHOWN, 40, is_ascii=True)[1] == "  vectors  ###########.........  500/900"
    assert draw(SHOWN, 24)[:3] == ["documents  20/20", "  vectors  500/900", " entities  28/40"]


@pytest.mark.parametrize("width", [30, 60, 80, 120, 300])
@pytest.mark.parametrize("factor", [1, 1000, 10**7])
def test_no_line_is_too_long_and_no_number_is_cut(width: int, factor: int) -> None:
    counts = {
        name: getattr(SHOWN, name) * factor
        for name in ("n_sources", "n_sources_done", "n_units", "n_unique", "n_hits", "n_encoded",
                     "n_waiting", "n_others", "n_waiting_others")
    }  # fmt: skip
    lines = draw(replace(SHOWN, **counts), width)
    vectors = f"  {500 * factor:,}/{900 * factor:,}"
    assert max(map(len, lines)) <= max(width, len("documents") + len(vectors))
    assert lines[0].endswith(f"  {20 * factor:,}/{20 * factor:,}")
    assert lines[1].endswith(vectors)


@dataclass(frozen=True, slots=True)
class Session:
    """What a command wrote to its terminal, and how it ended."""

    code: int
    written: str

    def lines(self) -> list[str]:
        """Every line that was drawn, without commands to the terminal and its echo of Ctrl-C.

        The terminal puts that wherever the cursor is when the key comes.
        """
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\^C", "", self.written)
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def on_a_terminal(
    folder: Path, columns: int, *arguments: str, keys: dict[str, bytes] | None = None, **env: str
) -> Session:
    """Run the command on a terminal of its own; ``keys`` are typed once their text was drawn."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {n: v for n, v in os.environ.items() if n not in {"COLUMNS", "NO_COLOR"}}
    waiting = dict(keys or {})
    written = b""
    with subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *arguments], cwd=folder, stdin=end, stdout=end,
        stderr=end, env={**environment, "TERM": "xterm-256color", **env}, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(end)
        try:
            while piece := os.read(terminal, 1 << 16):
                written += piece
                for text in [text for text in waiting if text.encode() in written]:
                    os.write(terminal, waiting.pop(text))
        except OSError:  # how a terminal says that nobody writes to it any more
            pass
        finally:
            os.close(terminal)
            code = process.wait(HANG_S)
    return Session(code, written.decode())


#: Ctrl-C reaches the processes of the session whose terminal it is.
TAKE_TERMINAL = (
    "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "from featpipe.cli.main import main; main()"
)


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}], ids=["colour", "plain"])
def test_a_terminal_gets_bars_and_then_the_summary(
    tmp_path: Path, columns: int, env: dict[str, str]
) -> None:
    (tmp_path / "a.txt").write_text("甲方与乙方签订合同。合同金额为三万元。", "utf-8")
    done = on_a_terminal(tmp_path, columns, "build-cache", "a.txt", "--cache", "c.h5", **env)
    assert done.code == 0, done.written
    lines = done.lines()
    bars = [line for line in lines if "━" in line or "┄" in line]
    assert {line.split()[0] for line in bars} == {"documents", "vectors", "entities"}
    assert all(len(line) < columns for line in bars)
    assert all(re.fullmatch(r" *[a-z]+  [━┄]{6,}  [\d,]+/[\d,]+", line) for line in bars), bars
    assert "documents  " + "━" * 40 + "  1/1" in bars
    assert lines[-1].startswith("documents 1 loaded, 0 quarantined") or columns < 80
    assert "Traceback" not in done.written


def test_a_terminal_that_cannot_move_its_cursor_gets_no_bars(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("甲方与乙方签订合同。", "utf-8")
    done = on_a_terminal(tmp_path, 80, "build-cache", "a.txt", "--cache", "c.h5", TERM="dumb")
    assert done.code == 0
    assert "\x1b" not in done.written
    assert "━" not in done.written


def test_ctrl_c_twice_leaves_bars_whole_and_no_word_of_dying_workers(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(300):
        lines = [f"第{number}号文件第{line}条，金额为{number * line}元。\n" for line in range(40)]
        (tmp_path / "docs" / f"{number}.txt").write_text("".join(lines), "utf-8")
    done = on_a_terminal(
        tmp_path, 80, "build-cache", "docs", "--cache", "c.h5", "--workers", "2",
        keys={"vectors": b"\x03", "once more to stop at once": b"\x03"},
    )  # fmt: skip
    lines = done.lines()
    assert done.code == 130, done.written
    assert lines[-1] == "interrupted; what was finished is kept"
    known = r" *(documents|vectors|entities)  [━┄]{6,}  [\d,]+/[\d,]+|.* elapsed.*"
    said = "SIGINT: finishing what is in flight; once more to stop at once"
    assert [line for line in lines[:-1] if not re.fullmatch(known, line)] == [said]
