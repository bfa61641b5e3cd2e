"""How fast a model is here, and how long it would take for a set of documents: for ``doctor``.

Children load the model and read the documents; this process does neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, cast

from featpipe.documents.find import find_sources
from featpipe.documents.load import load_source
from featpipe.documents.segment import segment
from featpipe.encoders.trial import TrialTask
from featpipe.errors import DocumentError, TaskFailed, raise_original
from featpipe.pool import Pool, Role
from featpipe.pool.devices import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.documents import Source
    from featpipe.encoders.trial import Trial

#: For a child that loads a large model from a slow disk, and for one that reads documents.
_LOADING_S, _READING_S = 600.0, 60.0
#: Seconds of reading, and texts that the model is measured on.
_SAMPLED_S, _TRIED = 2.0, 2048


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of the documents, read. Bytes are those of files; characters those of distinct texts."""

    n_files: int
    n_bytes: int
    n_read: int
    n_bytes_read: int
    n_characters: int
    texts: tuple[str, ...]
    """Paragraphs and sentences, as many as the model is measured on."""

    @property
    def all_characters(self) -> float:
        """Of all documents, estimated by their bytes."""
        return self.n_characters * self.n_bytes / max(1, self.n_bytes_read)


def try_model(name: str, texts: Sequence[str] = ()) -> Trial:
    """Have a child load the model and encode texts, on all cores.

    Raises:
        FeatpipeError, TimeoutError: as of a worker of a build.
    """
    role = Role("trial", "featpipe.encoders.trial:make_trial", threads=usable_cores())
    return cast("Trial", _call(role, TrialTask(name, tuple(texts)), _LOADING_S))


def sample_documents(documents: str) -> Sample:
    """Have a child read some of the documents, evenly from all of them.

    Raises:
        MissingDocuments: there are none.
        FeatpipeError, TimeoutError: as of a worker of a build.
    """
    role = Role("sample", "featpipe.cli.speed:make_sampler", threads=1)
    return cast("Sample", _call(role, documents, _READING_S))


def _call(role: Role, payload: object, timeout_s: float) -> object:
    with Pool([role]) as pool:
        try:
            return pool.call(role.name, payload, timeout=timeout_s)
        except TaskFailed as error:
            raise_original(error)


def make_sampler() -> Callable[[str], Sample]:
    """The role of a child that reads documents."""
    return _sample


def _sample(documents: str) -> Sample:
    sources = find_sources([documents])
    sizes = {source.path: source.path.stat().st_size for source in sources}
    texts: dict[str, None] = {}
    n_read = n_bytes = 0
    begun = monotonic()
    for source in _spread(sources):
        if n_read and monotonic() - begun > _SAMPLED_S:
            break
        n_read += 1
        n_bytes += sizes[source.path]
        try:
            text = load_source(source).text
        except DocumentError:
            continue  # a build leaves it out
        spans = segment(text)
        for start, end in (*spans.paragraphs.tolist(), *spans.sentences.tolist()):
            texts[text[start:end]] = None
    kept = list(texts)[:: max(1, len(texts) // _TRIED)][:_TRIED]
    return Sample(
        len(sources), sum(sizes.values()), n_read, n_bytes, sum(map(len, texts)), tuple(kept)
    )


def _spread(items: Sequence[Source]) -> list[Source]:
    """The items so that any first n of them lie evenly: by the bits of their numbers, reversed."""
    bits = max(1, (len(items) - 1).bit_length())
    order = sorted(range(len(items)), key=lambda number: f"{number:0{bits}b}"[::-1])
    return [items[number] for number in order]


def describe_rate(trial: Trial) -> str:
    """Speed and precision, in words."""
    rate = f"{trial.tokens_s:,.0f} tokens a second on {usable_cores()} cores"
    if trial.least_cosine is None:
        return f"{rate}, in float32" if trial.precision == "exact" else rate
    kind = "in mixed precision" if trial.precision == "mixed" else "in float32, as in mixed"
    return f"{rate}, {kind} the least cosine to float32 is {trial.least_cosine:.5f}"


def describe_time(trial: Trial, sample: Sample, documents: str) -> str:
    """How long the documents would take, in words."""
    n_characters = sample.all_characters
    hours = n_characters / trial.characters_s / 3600
    shown = f"{hours:,.1f} hours" if hours >= 1 else f"{hours * 60:,.1f} minutes"
    n_tokens = n_characters * trial.tokens_s / trial.characters_s
    return (
        f"about {shown} for the paragraphs and sentences of {documents}: {sample.n_files:,} files,"
        f" {n_tokens:,.0f} tokens, estimated from {sample.n_read:,} of them"
    )
