"""``featpipe doctor``: checks everything that a run needs, and names a cure for each problem.

Guarantees: it writes small files only and removes them at once; it imports no torch (a child does
with ``--torch`` or ``--model``); a check that raises an error is itself a finding.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from featpipe import user_cache
from featpipe.cli.main import EXIT_LEFT_OUT
from featpipe.cli.terminal import echo
from featpipe.encoders.builtin import find_builtin_model
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.errors import FeatpipeError
from featpipe.interpreter import run_python
from featpipe.pool.devices import count_cards, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

State = Literal["ok", "warning", "problem"]

_ON_LINUX = "use Python 3.11 or later on Linux"
_GIB = 1 << 30
#: A smaller shared memory file system cannot hold a batch of vectors.
_LITTLE_SHM = 64 << 20
_LITTLE_DISK = _GIB
#: For a child that imports torch.
_CHILD_S = 60.0
_EXTRAS = {
    "numba": "fast", "pypdfium2": "docs", "rapidocr": "ocr", "fastapi": "serve", "kombu": "amqp",
    "opentelemetry-sdk": "otel", "pyarrow": "arrow", "xlsxwriter": "xlsx", "faiss-cpu": "ann",
    "sqlalchemy": "sql", "langchain-core": "langchain", "llama-index-core": "llamaindex",
    "scikit-learn": "sklearn", "datasets": "datasets", "ray": "ray", "s3fs": "objectstore",
}  # fmt: skip
#: Packages whose versions are told.
_NAMED = ("torch", "transformers", "h5py", "numpy", "jieba")
#: Also before featpipe is on an index: it is installed, and pip fetches what it declares.
_INSTALL = "pip install featpipe"
_REPORT = "report it with the whole output"
_MARKS = {"ok": "ok  ", "warning": "warn", "problem": "BAD "}


@click.command("doctor")
@click.option("--cache", type=click.Path(path_type=Path), metavar="CACHE",
              help="Look at this cache and its file system.")  # fmt: skip
@click.option("--model", metavar="PATH|NAME",
              help="Load this model, and measure its speed and precision.")  # fmt: skip
@click.option("--for", "documents", metavar="DOCS",
              help="With --model: how long these documents would take.")  # fmt: skip
@click.option("--torch", "with_torch", is_flag=True, help="Import torch in a child and use cards.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object.")
@click.pass_context
def doctor(
    ctx: click.Context,
    *,
    cache: Path | None,
    model: str | None,
    documents: str | None,
    with_torch: bool,
    is_json: bool,
) -> None:
    """Check Python, packages, devices, memory, file system, model and workers.

    Exit code 1 when something would stop a run; each finding says what to do.
    """
    if documents is not None and model is None:
        raise click.UsageError("--for estimates by a model; name it with --model")
    findings = examine(cache, model, documents, with_torch=with_torch)
    if is_json:
        echo(as_json(findings))
    for finding in () if is_json else findings:
        echo(f"{_MARKS[finding.state]}  {finding.check:14}  {finding.message}")
        if finding.cure:
            echo(f"{'':22}-> {finding.cure}")
    ctx.exit(0 if is_well(findings) else EXIT_LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Finding:
    """A result. A ``problem`` stops runs; a ``warning`` makes them slow or partial."""

    check: str
    state: State
    message: str
    cure: str = ""
    """The next step; never empty for a warning or a problem."""


def examine(
    cache: Path | None = None,
    model: str | None = None,
    documents: str | None = None,
    *,
    with_torch: bool = False,
) -> list[Finding]:
    """Every finding, in a fixed order.

    Args:
        cache: the file to write; by default one in the working directory.
        model: checkpoint to check instead of the built-in one.
        documents: a folder or file; how long ``model`` would take for them.
        with_torch: start a child that imports torch and computes on every card.

    """
    place = cache or Path("featpipe.h5")
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", _check_python),
        ("packages", _check_packages),
        ("cores", _check_cores),
        ("devices", _check_devices),
        ("memory", _check_memory),
        ("shared memory", _check_shm),
        ("file system", lambda: _check_file_system(place.absolute().parent)),
        ("kept files", _check_kept_files),
        ("cache", lambda: _check_cache(place) if cache else iter(())),
        ("model", lambda: _check_model(model, documents)),
        ("workers", _check_workers),
        ("torch", lambda: _check_torch() if with_torch else iter(())),
    ]
    return [finding for name, check in checks for finding in _guarded(name, check)]


def as_json(findings: list[Finding]) -> str:
    """A JSON object with ``is_well`` and the findings."""
    content = {"is_well": is_well(findings), "findings": [asdict(one) for one in findings]}
    return json.dumps(content, ensure_ascii=False)


def is_well(findings: list[Finding]) -> bool:
    """Whether a run would work."""
    return not any(finding.state == "problem" for finding in findings)


def _guarded(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(check())
    except Exception as error:  # it is a finding, and the other checks go on
        if str(sys.platform) != "linux":
            words = f"needs Linux: {error}".splitlines()[0]
            return [Finding(name, "problem", words, _ON_LINUX)]
        if isinstance(error, ModuleNotFoundError):
            return [Finding(name, "problem", f"needs {error.name}, not installed", _INSTALL)]
        if isinstance(error, FeatpipeError):
            return [Finding(name, "problem", error.message, error.hint or _REPORT)]
        words = f"cannot be looked at: {type(error).__name__}: {error}".splitlines()[0]
        return [Finding(name, "problem", words, _REPORT)]


def _check_python() -> Iterator[Finding]:
    name = f"Python {platform.python_version()} ({platform.machine()}, {platform.system()})"
    if sys.version_info >= (3, 11) and str(sys.platform) == "linux":
        yield Finding("python", "ok", name)
        return
    yield Finding("python", "problem", f"{name}: not supported", _ON_LINUX)


def _check_packages() -> Iterator[Finding]:
    found, missing = [], []
    for name in _list_required():
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        words = f"not installed: {', '.join(missing)}"
        yield Finding("packages", "problem", words, _INSTALL)
    if "h5py" not in missing:
        import h5py

        found.append(f"HDF5 {h5py.version.hdf5_version}")
    if shown := [words for words in found if words.split()[0] in {*_NAMED, "HDF5"}]:
        yield Finding("packages", "ok", ", ".join(shown))
    yield from _check_extras()


def _list_required() -> list[str]:
    """What the installed featpipe declares; of a bare source tree, what is named here."""
    try:
        declared = requires("featpipe") or []
    except PackageNotFoundError:
        return list(_NAMED)
    return [re.split(r"[^\w-]", line)[0] for line in declared if "extra ==" not in line]


def _check_extras() -> Iterator[Finding]:
    absent = [extra for name, extra in _EXTRAS.items() if not _is_installed(name)]
    if "fast" in absent:
        yield Finding(
            "numba", "warning", "numba is not installed: words and BM25 run many times slower",
            "pip install 'featpipe[fast]'",
        )  # fmt: skip
    listed = ", ".join(absent) or "none"
    yield Finding("extras", "ok", f"extras that are not installed: {listed}")


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _check_cores() -> Iterator[Finding]:
    usable, there = usable_cores(), os.cpu_count() or 1
    text = f"{usable} of {there} cores may be used"
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > usable:
        yield Finding(
            "cores", "warning", f"{text}, and OMP_NUM_THREADS is {asked}",
            f"unset OMP_NUM_THREADS, or set it to {usable}",
        )  # fmt: skip
        return
    yield Finding("cores", "ok", text)


def _check_devices() -> Iterator[Finding]:
    n_cards = count_cards()
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if n_cards:
        yield Finding("devices", "ok", f"{n_cards} CUDA devices; --torch looks at their memory")
    elif Path("/proc/driver/nvidia/version").exists() and mask is None:
        yield Finding(
            "devices", "warning", "a driver, and no card that this process may use",
            "give the container the devices (docker run --gpus all)",
        )  # fmt: skip
    else:
        hidden = f" (CUDA_VISIBLE_DEVICES is {mask!r})" if mask is not None else ""
        yield Finding("devices", "ok", f"no CUDA device{hidden}; the processor is used")


def _check_memory() -> Iterator[Finding]:
    import psutil

    free = psutil.virtual_memory().available
    text = f"{free / _GIB:.1f} GiB of memory are free"
    if free < _GIB:
        yield Finding("memory", "warning", text, "use fewer workers (--workers 1)")
    else:
        yield Finding("memory", "ok", text)


def _check_shm() -> Iterator[Finding]:
    try:
        descriptor = os.memfd_create("featpipe-doctor")
    except (AttributeError, OSError) as error:
        yield Finding(
            "shared memory", "warning", f"memfd is not to be had ({error}): files stand in for it",
            "allow memfd_create in the container's seccomp profile",
        )  # fmt: skip
    else:
        os.close(descriptor)
        yield Finding("shared memory", "ok", "memfd works; arrays travel without copies")
    yield from _check_shared_files()


def _check_shared_files() -> Iterator[Finding]:
    try:
        size = shutil.disk_usage("/dev/shm").total  # noqa: S108  # measured, never written
    except OSError:
        return
    text = f"it holds {size >> 20} MiB, and is used only where memfd is not to be had"
    yield Finding("shared files", "ok" if size >= _LITTLE_SHM else "warning", text,
                  "" if size >= _LITTLE_SHM else "docker run --shm-size=1g")  # fmt: skip


def _check_file_system(folder: Path) -> Iterator[Finding]:
    """Locks, syncs and sparse files, tried in the folder of the cache."""
    if not folder.is_dir():
        cure = f"mkdir -p {folder}"
        yield Finding("file system", "problem", f"{folder} does not exist", cure)
        return
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".featpipe-doctor-") as file:
            yield from _try_file(file.fileno(), folder)
    except OSError as error:
        yield Finding(
            "file system", "problem", f"{folder} cannot be written: {error.strerror}",
            "choose another folder for --cache, or get the permission",
        )  # fmt: skip
        return
    yield from _check_free_space(folder)


def _check_free_space(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    text = f"{free / _GIB:.1f} GiB are free in {folder}"
    if free < _LITTLE_DISK:
        yield Finding(
            "disk", "warning", text, "make room: 10^6 vectors of 384 numbers take 0.8 GiB"
        )
    else:
        yield Finding("disk", "ok", text)


def _try_file(descriptor: int, folder: Path) -> Iterator[Finding]:
    problem = _find_lock_problem(descriptor)
    if problem:
        cure = "keep the cache on a local disk, or mount the share with locks"
        yield Finding("locks", "problem", f"{folder} has no {problem}", cure)
        return
    yield Finding("locks", "ok", "two writers would keep each other out")
    yield from _try_holes(descriptor, folder)


def _find_lock_problem(descriptor: int) -> str:
    """The kind of lock that cannot be taken, with the reason; "" if both kinds can."""
    import fcntl

    for name, lock in (("flock", fcntl.flock), ("byte-range locks", fcntl.lockf)):
        try:
            lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return f"{name}: {error.strerror}"
    return ""


def _try_holes(descriptor: int, folder: Path) -> Iterator[Finding]:
    os.truncate(descriptor, 64 << 20)
    os.pwrite(descriptor, b"x", (64 << 20) - 1)
    os.fdatasync(descriptor)
    blocks = os.fstat(descriptor).st_blocks * 512
    if blocks > 32 << 20:
        yield Finding(
            "sparse files", "warning", f"{folder} fills holes: caches take room ahead of use",
            "keep the cache on ext4, xfs or btrfs, or run featpipe compact after builds",
        )  # fmt: skip
    else:
        yield Finding("sparse files", "ok", "holes take no room, and writes can be made durable")


def _check_kept_files() -> Iterator[Finding]:
    """The folder of compiled words and fitted templates; no file is left there."""
    folder = user_cache.root()
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        yield Finding(
            "kept files", "warning",
            f"{folder} cannot be written ({error.strerror}): every start compiles words and fits "
            "templates anew", "set FEATPIPE_CACHE_DIR to a folder that can be written",
        )  # fmt: skip
        return
    yield Finding("kept files", "ok", f"words and fitted templates are kept in {folder}")


def _check_cache(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding("cache", "ok", f"{path} does not exist yet; build-cache makes it")
        return
    from featpipe.cache.cache import Cache

    try:
        with Cache.open(path) as cache:
            spaces = ", ".join(cache.spaces()) or "no vectors"
            n_documents = sum(1 for _ in cache.documents())
    except FeatpipeError as error:
        cure = error.hint or f"featpipe verify {path}"
        yield Finding("cache", "problem", error.message, cure)
        return
    yield Finding("cache", "ok", f"{path}: {n_documents} documents; {spaces}")


def _check_model(model: str | None, documents: str | None) -> Iterator[Finding]:
    named = [("model", str(find_builtin_model()) if model is None else model)]
    if model is None:
        named.append(("entity model", str(find_builtin_model())))
    for check, name in named:
        try:
            found = describe_checkpoint(name)
            tried = [] if model is None else list(_try_model(name, documents))
        except (FeatpipeError, TimeoutError) as error:
            words = str(getattr(error, "message", error)).splitlines()[0]
            cure = getattr(error, "hint", None)
            cure = cure or "name a folder with config.json, weights and a tokenizer"
            yield Finding(check, "problem", words, cure)
            continue
        what = f"{found.path.name}: {found.architecture}, {found.dim} dimensions"
        yield Finding(check, "ok", what)
        yield from tried


def _try_model(name: str, documents: str | None) -> Iterator[Finding]:
    """What a child finds out that loads the model and encodes texts.

    Raises:
        FeatpipeError, TimeoutError: as of a worker of a build.
    """
    from featpipe.cli.speed import describe_rate, describe_time, sample_documents, try_model

    sample = None if documents is None else sample_documents(documents)
    trial = try_model(name, () if sample is None else sample.texts)
    if trial.same:
        yield Finding(
            "model", "warning",
            f"{' and '.join(trial.same)} have the same vector: it does not know their characters",
            "choose a model for the language of the documents",
        )  # fmt: skip
    for note in trial.notes:
        yield Finding("model", "ok", note)
    yield Finding("speed", "ok", describe_rate(trial))
    if sample is not None and documents is not None:
        yield Finding("time", "ok", describe_time(trial, sample, documents))


def _check_workers() -> Iterator[Finding]:
    """Start a child of this program, as every command does."""
    from featpipe.pool import Pool, Role

    try:
        with Pool([Role("probe", "featpipe.cli.doctor:double", threads=1)]) as pool:
            answer = pool.call("probe", 21, timeout=_CHILD_S)
    except (FeatpipeError, OSError, TimeoutError) as error:
        words = str(getattr(error, "message", error)).splitlines()[0]
        cure = "check ulimit -u and -n, and that the interpreter can be started again"
        yield Finding(
            "workers", "problem", f"a worker cannot be started from here: {words}",
            getattr(error, "hint", None) or cure,
        )  # fmt: skip
        return
    state: State = "ok" if answer == 42 else "problem"
    cure = "" if answer == 42 else "report it with the whole output"
    yield Finding("workers", state, "workers start and answer from this program", cure)


def double() -> Callable[[int], int]:
    """The role of the probe: a function that doubles."""
    return lambda number: 2 * number


_PROBE = """
import json, torch
cards = []
for number in range(torch.cuda.device_count()):
    free, total = torch.cuda.mem_get_info(number)
    torch.ones(8, device=f"cuda:{number}").sum().item()
    cards.append([torch.cuda.get_device_name(number), free, total])
print(json.dumps([torch.__version__, torch.get_num_threads(), cards]))
"""


def _check_torch() -> Iterator[Finding]:
    try:
        ended = run_python(_PROBE, timeout_s=_CHILD_S)
    except subprocess.TimeoutExpired:
        yield Finding("torch", "problem", "importing torch does not end", "reinstall torch")
        return
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        yield Finding(
            "torch", "problem", f"torch cannot be used: {last}",
            "install the torch that fits the driver (https://pytorch.org)",
        )  # fmt: skip
        return
    name, threads, cards = json.loads(ended.stdout.splitlines()[-1])
    yield Finding("torch", "ok", f"torch {name}, {threads} threads, {len(cards)} CUDA devices")
    yield from _check_cards(cards)


def _check_cards(cards: Sequence[tuple[str, int, int]]) -> Iterator[Finding]:
    """Free memory of each card; ``cards`` are (name, free bytes, all bytes)."""
    for number, (card, free, total) in enumerate(cards):
        text = f"cuda:{number} {card}: {free / _GIB:.1f} of {total / _GIB:.1f} GiB free"
        if free < _GIB:
            yield Finding(f"cuda:{number}", "warning", text, "end what else uses the card")
        else:
            yield Finding(f"cuda:{number}", "ok", text)
