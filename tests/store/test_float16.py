"""float16 widened to float32: the oracle is numpy's own conversion, over every value there is."""

from __future__ import annotations

import numpy as np
import pytest

from featpipe.store.float16 import widen

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = EVERY[np.isfinite(EVERY)]


@pytest.mark.parametrize("values", [EVERY, FINITE, FINITE[::-1].copy(), FINITE[:0], EVERY[:7]])
def test_every_value_is_the_one_of_numpy(values: np.ndarray) -> None:
    assert widen(values).tobytes() == values.astype(np.float32).tobytes()


def test_shapes_stay_and_a_place_may_be_given() -> None:
    values = np.random.default_rng(0).standard_normal((700, 133)).astype(np.float16)
    place = np.empty((700, 133), np.float32)
    assert widen(values, place) is place
    assert place.tobytes() == values.astype(np.float32).tobytes()
    assert np.array_equal(widen(values[:, ::3]), values[:, ::3].astype(np.float32))


def test_denormal_values_stay_where_the_processor_would_drop_them() -> None:
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor keeps them")
    try:
        assert widen(FINITE).tobytes() == FINITE.astype(np.float32).tobytes()
    finally:
        torch.set_flush_denormal(False)
