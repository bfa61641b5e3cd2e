"""A check for generated requests, loaded by the program that makes them."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection


@schemathesis.check
def what_breaks_the_schema_is_refused(ctx: Any, response: Any, case: Any) -> None:  # noqa: ANN401  # schemathesis' own
    """Not in forms: a number there is a text like any other, and breaks nothing."""
    if case.media_type != "multipart/form-data":
        negative_data_rejection(ctx, response, case)
