"""The recipes of scripts/deploy can be read by their programs, and name commands that exist.

Images, compose files and manifests are parsed, not run: no test has a container engine.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from featpipe.cli.main import featpipe

ROOT = Path(__file__).resolve().parent.parent
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


MANIFESTS = [path for path in by_suffix(".yaml") if path.name != "compose.yaml"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
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


def check_options(recipe: str, name: str, asked: set[str]) -> None:
    command: click.Command = featpipe
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"{recipe}: featpipe {name}"
        command = found
    known = {option for parameter in command.params for option in parameter.opts}
    assert asked <= known, f"{recipe}: featpipe {name} has no {asked - known}"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_commands_and_options_exist(path: Path) -> None:
    for name, rest in words_of(path):
        check_options(path.name, name, set(re.findall(r"(?<!\S)--[a-z-]+", rest)))


def test_the_recipes_name_commands() -> None:
    assert sum(len(words_of(path)) for path in RECIPES) >= 6


# ---- images


def instructions(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in whole.splitlines() if line.strip()]  # type: ignore[misc]  # two words each


@pytest.mark.parametrize("path", by_suffix(".Dockerfile"), ids=lambda path: path.name)
def test_images_have_two_stages_no_root_and_a_health_check(path: Path) -> None:
    found = instructions(path)
    known = {"FROM", "WORKDIR", "RUN", "COPY", "ENV", "USER", "EXPOSE", "HEALTHCHECK",
             "ENTRYPOINT", "CMD"}  # fmt: skip
    assert {name for name, _ in found} == known
    assert [rest.split(" AS ")[1:] for name, rest in found if name == "FROM"] == [["build"], []]
    last = dict(found)
    assert last["USER"] == "10001:10001"
    assert "/readyz" in last["HEALTHCHECK"]
    assert last["ENTRYPOINT"] == '["featpipe"]'
    compile(re.findall(r'"-c", "(.*)"\]', last["HEALTHCHECK"])[0], "health", "exec")


@pytest.mark.parametrize("path", by_suffix(".Dockerfile"), ids=lambda path: path.name)
def test_images_copy_what_is_there_and_install_extras_that_exist(path: Path) -> None:
    copied = [shlex.split(rest)[:-1] for name, rest in instructions(path) if name == "COPY"]
    sources = {one for words in copied if not words[0].startswith("--from") for one in words}
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert sources == set(kept)
    assert all((ROOT / one).exists() for one in sources)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = {project["project"]["readme"], "pyproject.toml", "featpipe", "data/models"}
    needed |= set(project["project"]["license-files"])
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])
    assert needed <= sources
    extras = project["project"]["optional-dependencies"]
    for names in re.findall(r"'\.\[([a-z,]+)\]'", path.read_text("utf-8")):
        assert set(names.split(",")) <= set(extras)


# ---- compose, the service on Kubernetes, systemd


def test_the_compose_file_runs_commands_that_exist_without_rights() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    whole = yaml.safe_load(text)
    assert set(whole["services"]) == {"service", "consumer", "rabbitmq"}
    for name in ("service", "consumer"):
        program = whole["services"][name]
        command, *options = program["command"]
        check_options("compose.yaml", command, {option.partition("=")[0] for option in options})
        assert program["read_only"]
        assert program["cap_drop"] == ["ALL"]
        for volume in program["volumes"]:
            source = re.sub(r"\$\{.*?\}", "./", volume).partition(":")[0]
            assert source.startswith(".") or source in whole["volumes"]
    head, _, body = text.partition("name: featpipe")
    for variable in re.findall(r"\$\{([A-Z_]+):\?", body):
        assert variable in head, f"{variable} must be set, and nothing says so"


def test_the_service_on_kubernetes_has_probes_that_exist_and_no_rights() -> None:
    from featpipe.service.routes import health

    objects = list(yaml.safe_load_all((FOLDER / "kubernetes_service.yaml").read_text("utf-8")))
    deployment, service, budget = objects
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    command, *options = container["args"]
    check_options("kubernetes_service.yaml", command, {one.partition("=")[0] for one in options})
    routes = {route.path for route in health.router.routes}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in routes
    given = dict(one.split("=") for one in options if "=" in one)
    waits = int(given["--notice"]) + int(given["--drain"])
    assert waits < pod["terminationGracePeriodSeconds"]
    assert {one["name"] for one in container["volumeMounts"]} == {
        one["name"] for one in pod["volumes"]
    }
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"],
                 budget["spec"]["selector"]["matchLabels"]]  # fmt: skip
    assert selectors == [labels] * 3


@pytest.mark.parametrize("path", by_suffix(".service"), ids=lambda path: path.name)
def test_units_start_commands_that_exist(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, name, *words = shlex.split(command)
    check_options(path.name, name, {word for word in words if word.startswith("--")})
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze to check the rest")
    copy = tmp_path / path.name
    copy.write_text(text.replace(program, "/bin/true"), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- continuous integration


def test_the_workflow_runs_what_the_checkout_has() -> None:
    whole = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert set(whole) == {"name", True, "permissions", "concurrency", "jobs"}  # YAML 1.1: on
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if "3." in line]
    assert whole["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    for job in whole["jobs"].values():
        for step in job["steps"]:
            for script in re.findall(r"\bscripts/[\w.-]+", step.get("run", "")):
                assert (ROOT / script).is_file(), script
