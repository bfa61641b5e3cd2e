"""Values looked up in ascending ones: as ``np.isin`` has it, for few and many of both."""

from __future__ import annotations

import numpy as np
import pytest

from featpipe.store.sorted_values import is_in, places_in


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("n_values", [0, 1, 1000, 5000])
@pytest.mark.parametrize("n_wanted", [0, 1, 2, 8, 9, 40])
def test_values_are_found_as_numpy_finds_them(
    dtype: type[np.uint64], n_values: int, n_wanted: int
) -> None:
    chance = np.random.default_rng(n_values + n_wanted)
    values = chance.integers(0, 60, n_values).astype(dtype)
    wanted = np.sort(chance.choice(60, n_wanted, replace=False)).astype(dtype)
    found, places = is_in(values, wanted), places_in(values, wanted)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, np.isin(values, wanted))
    np.testing.assert_array_equal(places >= 0, found)
    np.testing.assert_array_equal(wanted[places[found]], values[found])
