"""The recipes of scripts/deploy can be read by their programs, and name commands that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from featpipe.cli.main import featpipe

FOLDER = Path(__file__).resolve().parent.parent / "scripts" / "deploy"
RECIPES = sorted(path for path in FOLDER.iterdir() if path.is_file())
COMMAND = re.compile(r"featpipe (shard [a-z-]+|build-cache)((?:\\\n|[^\n])*)")


def by_suffix(suffix: str) -> list[Path]:
    return [path for path in RECIPES if path.suffix == suffix]


@pytest.mark.parametrize("path", by_suffix(".sh"), ids=lambda path: path.name)
def test_shell_recipes_parse(path: Path) -> None:
    done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", by_suffix(".py"), ids=lambda path: path.name)
def test_python_recipes_compile(path: Path) -> None:
    compile(path.read_text("utf-8"), path.name, "exec")


@pytest.mark.parametrize("path", by_suffix(".yaml"), ids=lambda path: path.name)
def test_manifests_parse(path: Path) -> None:
    objects = list(yaml.safe_load_all(path.read_text("utf-8")))
    assert objects
    for thing in objects:
        assert {"apiVersion", "kind", "metadata", "spec"} <= thing.keys()


def test_an_indexed_job_takes_every_share() -> None:
    for job in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8")):
        spec = job["spec"]
        [container] = spec["template"]["spec"]["containers"]
        assert spec["completionMode"] == "Indexed"
        assert f"--job $JOB_COMPLETION_INDEX/{spec['completions']} " in container["args"][0]


def words_of(path: Path) -> list[tuple[str, str]]:
    text = re.sub(r"\n\s{10,}", " ", path.read_text("utf-8"))  # folded lines of a manifest
    return [match.groups() for match in COMMAND.finditer(text)]  # type: ignore[misc]  # two groups


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_commands_and_options_exist(path: Path) -> None:
    for name, rest in words_of(path):
        command: click.Command = featpipe
        for word in name.split():
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), word)
            assert found is not None, f"{path.name}: featpipe {name}"
            command = found
        known = {option for parameter in command.params for option in parameter.opts}
        asked = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
        assert asked <= known, f"{path.name}: featpipe {name} has no {asked - known}"


def test_the_recipes_name_commands() -> None:
    assert sum(len(words_of(path)) for path in RECIPES) >= 6
