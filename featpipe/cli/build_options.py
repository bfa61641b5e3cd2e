"""Options that say what is to be built, the same for every command that plans a build."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import click

from featpipe.cli.main import ocr_option
from featpipe.settings import LEVELS, BuildSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from featpipe.build.shards.folder_plan import Models
    from featpipe.encoders.spec import EncoderSettings, TaggerSettings

#: Workers that read documents where OCR makes reading slow, each with its own copy of the engine.
_MOST_READERS = 4

_OPTIONS = (
    click.option("--model", metavar="PATH|NAME", help="Encoder; by default the built-in zh-small."),
    click.option(
        "--ner", metavar="PATH|NAME|none", help="Entity model; by default the built-in one."
    ),
    click.option("--device", multiple=True, metavar="D", help="cpu, cuda:0 ...; repeat for more."),
    click.option("--level", multiple=True, type=click.Choice(LEVELS), help="Default: all of them."),
    click.option("--pooling", type=click.Choice(["mean", "cls", "max", "last"])),
    click.option(
        "--dtype", type=click.Choice(["float16", "float32", "bfloat16"]), default="float16"
    ),
    click.option(
        "--precision",
        type=click.Choice(["auto", "exact", "mixed", "approx"]),
        default="auto",
        help="auto: as the cache has it; else mixed where bfloat16 is 1.3 times as fast and, on "
        "your texts, within .0001 of exact. approx: int8, measured on your texts.",
    ),
    click.option("--max-length", type=click.IntRange(min=8), help="Tokens per window."),
    click.option("--prompt", metavar="TEXT", help="Put before every text, such as 'passage: '."),
    click.option("--prompt-name", metavar="NAME", help="Instead: one of the model's own prompts."),
    click.option(
        "--on-truncate",
        type=click.Choice(["window", "error", "warn"]),
        default="window",
        help="Longer texts: read in windows, refused, or cut and counted.",
    ),
    click.option("--include", multiple=True, metavar="GLOB", help="Only such files in folders."),
    click.option("--exclude", multiple=True, metavar="GLOB", help="No such files in folders."),
    ocr_option,
    click.option("--deadline", type=click.FloatRange(min=0.1), metavar="SECONDS"),
)
_OF_ENCODER = (
    "pooling",
    "dtype",
    "precision",
    "max_length",
    "prompt",
    "prompt_name",
    "on_truncate",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What these options ask for."""

    model: str | None
    ner: str | None
    devices: tuple[str, ...]
    encoder: EncoderSettings
    tagger: TaggerSettings
    levels: tuple[str, ...]
    use_ocr: bool
    deadline_s: float | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:  # Any: each option has a type of its own
        """From the options by name."""
        from featpipe.encoders.spec import EncoderSettings, TaggerSettings

        precision = given["precision"]
        return cls(
            model=given["model"],
            ner=given["ner"],
            devices=given["device"],
            encoder=EncoderSettings(**{name: given[name] for name in _OF_ENCODER}),
            tagger=TaggerSettings(precision="auto" if precision == "approx" else precision),
            levels=tuple(name for name in LEVELS if name in given["level"]),
            use_ocr=given["ocr"],
            deadline_s=given["deadline"],
            include=given["include"],
            exclude=given["exclude"],
        )

    def settings(self, wait_s: float) -> BuildSettings:
        """Of a build into one file."""
        settings = BuildSettings(
            levels=self.levels or LEVELS,
            lock_wait_s=wait_s,
            use_ocr=self.use_ocr,
            n_prepare_workers=min(os.cpu_count() or 1, _MOST_READERS) if self.use_ocr else None,
        )
        if self.deadline_s is None:
            return settings
        return replace(
            settings, document_deadline_s=self.deadline_s, ocr_deadline_s=self.deadline_s
        )

    def folder_settings(self) -> BuildSettings | None:
        """Of a build into a folder; None where it keeps its own."""
        if not (self.levels or self.use_ocr or self.deadline_s):
            return None
        return self.settings(0.0)

    def models(self) -> Models:
        """Of a folder; what is not asked for is the folder's own."""
        from featpipe.build.shards.folder_plan import Models
        from featpipe.encoders.spec import EncoderSettings, TaggerSettings

        return Models(
            self.model,
            self.ner,
            None if self.encoder == EncoderSettings() else self.encoder,
            None if self.tagger == TaggerSettings() else self.tagger,
        )


def build_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, as one argument ``asked``."""

    @wraps(command)
    def parsed(*arguments: Any, **given: Any) -> None:  # Any: passed through
        names = ("model", "ner", "device", "level", "ocr", "deadline", "include", "exclude")
        own = {name: given.pop(name) for name in (*names, *_OF_ENCODER)}
        command(*arguments, asked=Asked.of(own), **given)

    for option in reversed(_OPTIONS):
        parsed = option(parsed)
    return parsed
