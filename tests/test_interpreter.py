"""No file of a documents folder is ever imported, by whichever way the package is started."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from waiting import HANG_S

from featpipe import interpreter

REPOSITORY = Path(__file__).parents[1]

#: Modules of the standard library, of our dependencies, and those Python imports by itself.
NAMES = (
    *("pickle", "os", "json", "typing", "socket", "struct", "subprocess", "tempfile", "inspect"),
    *("sitecustomize", "usercustomize", "conftest"),
    *("numpy", "torch", "h5py", "click", "transformers", "numba", "jieba", "yaml", "triton"),
)
COMMAND = "import sys; from featpipe.cli.main import main; main()"


@pytest.fixture
def received(tmp_path: Path) -> Path:
    """A folder of documents with Python files among them, each of which tells when it runs."""
    folder = tmp_path / "received"
    folder.mkdir()
    (folder / "notice.txt").write_text("关于签订重大合同的公告。合同金额为1,200万元。", "utf-8")
    for name in (*NAMES, "featpipe"):
        text = f"import io; io.open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + '\\n')\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def what_ran(received: Path) -> str:
    trace = received.parent / "ran"
    return trace.read_text() if trace.exists() else ""


@pytest.fixture
def console_script(tmp_path: Path) -> Path:
    """As an installer writes it."""
    script = tmp_path / "bin" / "featpipe"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n{COMMAND}\n")
    script.chmod(0o755)
    return script


def run(
    command: list[str], folder: Path, *, python_path: str = str(REPOSITORY)
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def test_the_command_runs_no_file_of_the_folder_it_is_started_in(
    received: Path, console_script: Path
) -> None:
    cache = str(received.parent / "c.h5")
    for arguments in (
        ["build-cache", ".", "--cache", cache],
        ["verify", "--deep", cache],
        ["search", cache, "合同金额"],
        ["doctor", "--torch"],
    ):
        done = run([str(console_script), *arguments], received)
        assert done.returncode == 0, done.stdout + done.stderr
        assert what_ran(received) == ""


def test_python_m_featpipe_drops_the_folder_before_it_imports_anything(received: Path) -> None:
    (received / "featpipe.py").unlink()  # Python finds it before us
    for arguments in (["build-cache", ".", "--cache", "../c.h5"], ["verify", "--deep", "../c.h5"]):
        done = run([sys.executable, "-m", "featpipe", *arguments], received)
        assert done.returncode == 0, done.stdout + done.stderr
        assert what_ran(received) == ""


def test_python_m_featpipe_works_where_the_package_itself_lies() -> None:
    done = run([sys.executable, "-m", "featpipe", "--version"], REPOSITORY, python_path="")
    assert done.returncode == 0, done.stderr


PROGRAM = """
import os, sys
import home_roles
from featpipe.pool import Pool, Role
os.chdir({folder!r})
roles = [
    Role("fresh", "home_roles:Dump"),
    Role("forked", "home_roles:Dump", preload=("decimal",)),
]
with Pool(roles) as pool:
    print(pool.call("fresh", [1]), pool.call("forked", home_roles.Two()))
"""
ROLES = """
import json
class Two:
    pass
class Dump:
    def run(self, value):
        return json.dumps(value) if isinstance(value, list) else type(value).__name__
"""


@pytest.mark.parametrize("way", ["-c", "stdin", "script", "-m"])
@pytest.mark.parametrize("goes", ["nowhere", "into the folder"])
def test_a_programs_own_modules_are_found_and_no_received_ones(
    received: Path, tmp_path: Path, way: str, goes: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    text = PROGRAM.format(folder=str(received if goes == "into the folder" else home))
    (home / "home_roles.py").write_text(ROLES)
    (home / "program.py").write_text(text)
    options = {
        "-c": ["-c", text],
        "stdin": ["-"],
        "script": ["program.py"],
        "-m": ["-m", "program"],
    }
    done = subprocess.run(
        [sys.executable, *options[way]],
        input=text,
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[1] Two\n", "")
    assert what_ran(received) == ""


def test_a_role_in_the_working_folder_is_found_though_nothing_of_it_was_imported(
    tmp_path: Path,
) -> None:
    (tmp_path / "home_roles.py").write_text(ROLES)
    program = PROGRAM.format(folder=str(tmp_path)).replace("import home_roles\n", "")
    done = run([sys.executable, "-c", program.replace("home_roles.Two()", "[2]")], tmp_path)
    assert (done.stdout, done.stderr) == ("[1] [2]\n", "")


@pytest.mark.parametrize("is_imported", [True, False])
def test_a_role_in_a_package_without_init_is_found_and_no_folder_of_its_name_counts(
    tmp_path: Path, *, is_imported: bool
) -> None:
    package = tmp_path / "home" / "own" / "roles"
    package.mkdir(parents=True)
    (package / "dump.py").write_text(ROLES)
    program = PROGRAM.format(folder=str(tmp_path / "home"))
    program = program.replace("import home_roles", "import own.roles.dump" if is_imported else "")
    program = program.replace("home_roles:Dump", "own.roles.dump:Dump")
    program = program.replace("home_roles.Two()", "[2]")
    done = run([sys.executable, "-c", program], tmp_path / "home")
    assert (done.stdout, done.stderr) == ("[1] [2]\n", "")


def test_a_received_folder_named_like_a_package_is_no_part_of_it(
    received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package without an __init__.py consists of all folders of its name, received ones too."""
    home = tmp_path / "home"
    (home / "own_of_test").mkdir(parents=True)
    (home / "own_of_test" / "dump.py").write_text(ROLES)
    (received / "own_of_test").mkdir()
    monkeypatch.setattr(interpreter, "_own_folders", {})  # what is added stays
    monkeypatch.chdir(received)
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(home)])
    path = interpreter.module_path(["own_of_test.dump:Dump"])
    assert str(home) in path
    assert str(received) not in path
    (received / "own_of_test" / "dump.py").write_text(ROLES)
    assert str(received) in interpreter.module_path(["own_of_test.dump:Dump"])


SHOW_PATHS = """
from featpipe import interpreter
code = "import json, os, sys; print(json.dumps([sys.path, os.environ.get('PYTHONPATH')]))"
done = interpreter.run_python(code, timeout_s=60)
print(done.stdout, done.stderr)
"""


@pytest.mark.parametrize(("entry", "expected"), [("", []), (".", []), ("inner", ["inner"])])
def test_an_entry_of_pythonpath_that_means_the_working_folder_does_not_reach_children(
    tmp_path: Path, entry: str, expected: list[str]
) -> None:
    (tmp_path / "inner").mkdir()
    command = [sys.executable, "-c", SHOW_PATHS]
    done = run(command, tmp_path, python_path=f"{entry}:{REPOSITORY}")
    path, python_path = json.loads(done.stdout)
    folders = [str(tmp_path / name) for name in expected]
    assert [folder for folder in path if folder.startswith(str(tmp_path))] == folders
    assert python_path == ":".join([*folders, str(REPOSITORY)])


STARTS = re.compile(
    r"\b(subprocess\.(run|Popen|call|check_\w+)|os\.(exec\w+|spawn\w+|posix_spawnp?|system|popen)"
    r"|create_subprocess_\w+|pty\.(fork|spawn))\("
)


def test_every_program_is_started_in_a_known_place() -> None:
    """Each of these keeps the working folder off its child's path."""
    package = Path(interpreter.__file__).parent
    found = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if STARTS.search(file.read_text("utf-8"))
    }
    assert found == {"documents/formats/doc.py", "interpreter.py", "pool/spawn.py"}


def test_a_removed_working_folder_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.syspath_prepend("")
    assert all(Path(entry).is_absolute() for entry in interpreter.module_path())


def test_a_module_in_the_root_folder_does_not_stand_for_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("in_the_root")
    module.__file__ = "/in_the_root.py"
    monkeypatch.setitem(sys.modules, "in_the_root", module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert str(tmp_path) not in interpreter.module_path()


def test_numba_takes_no_settings_from_the_working_folder(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    pytest.importorskip("yaml")
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: here\n")
    before = (
        "import os, sys, warnings\n"
        "from featpipe.lexical.backend import numba_runs\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    assert not numba_runs()\n"
        "assert '.numba_config.yaml' in str(said[0].message)\n"
        "assert 'numba' not in sys.modules\n"
    )
    after = (
        "import os\n"
        "os.chdir('/')\n"
        "from featpipe.lexical.backend import numba_runs\n"
        "assert numba_runs()\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "import numba\n"
        "numba.core.config.reload_config()\n"
        "assert numba.config.CACHE_DIR == '', numba.config.CACHE_DIR\n"
    )
    for program in (before, after):
        done = run([sys.executable, "-P", "-c", program], tmp_path)
        assert done.returncode == 0, done.stderr
