"""Evaluations of templates, as `featpipe template evaluate --json` printed them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from featpipe.errors import UsageError
from featpipe.extraction.evaluation import TemplateEvaluation
from featpipe.html_report.page import shown

if TYPE_CHECKING:
    from pathlib import Path

#: Disagreements of one evaluation that the page lists.
_MOST_DISAGREEMENTS = 500


def read_evaluations(file: Path) -> list[TemplateEvaluation]:
    """The evaluations in a file, one a line; of one template the last.

    Raises:
        UsageError: it cannot be read, or a line holds no evaluation.

    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: cannot be read: it is not UTF-8") from error
    found: dict[str, TemplateEvaluation] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            one = _read(file, number, line)
            found[one.template] = one
    return list(found.values())


def _read(file: Path, number: int, line: str) -> TemplateEvaluation:
    try:
        return TemplateEvaluation.of(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{file}, line {number}: no evaluation of a template",
            hint="write it by: featpipe template evaluate TEMPLATE --json",
        ) from error


def describe(evaluation: TemplateEvaluation) -> dict[str, object]:
    """Plain JSON types for the page, with texts that UTF-8 can hold."""
    return {
        "template": shown(evaluation.template),
        "source": evaluation.source,
        "whole": evaluation.whole.as_dict(),
        "fields": [one.as_dict() | {"field": shown(one.field)} for one in evaluation.fields],
        "unjudged": [shown(name) for name in evaluation.unjudged],
        "n_disagreements": len(evaluation.disagreements),
        "disagreements": [
            {
                "document": shown(one.document),
                "key": one.key,
                "field": shown(one.field),
                "missed": [shown(stated.text) for stated in one.missed],
                "wrong": [[shown(value.text), value.probability] for value in one.wrong],
            }
            for one in evaluation.disagreements[:_MOST_DISAGREEMENTS]
        ],
        "left_out": [shown(str(one)) for one in evaluation.left_out],
    }
