import numpy as np
import pytest

from casemate.exact import Floats, Rows, System


def random_rows(rng: np.random.Generator, plain: bool) -> tuple[Rows, Floats]:
    """Up to 600 equations, some of them empty, and the same as a scaled dense matrix."""
    height, width = int(rng.integers(1, 600)), int(rng.integers(1, 40))
    choices = [0, 1] if plain else [0, 0, 1, -2, 3]
    dense = rng.choice(choices, (height, width))
    lengths = np.linalg.norm(dense, axis=1)
    scaled = dense / np.where(lengths > 0, lengths, 1)[:, None]
    return Rows.of(System.of(dense.tolist())), scaled


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("case", range(5))
def test_passes_are_products_with_the_scaled_matrix(case: int, plain: bool, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    rows, dense = random_rows(rng, plain)
    assert (rows.height, rows.width) == dense.shape
    point, weights = rng.normal(size=rows.width), rng.normal(size=rows.height)
    np.testing.assert_allclose(rows.times(point), dense @ point, atol=1e-12)
    np.testing.assert_allclose(rows.transpose_times(weights), dense.T @ weights, atol=1e-11)


def test_coefficients_that_are_all_one_are_not_stored() -> None:
    assert Rows.of(System.of([[1, 0, 1]])).values is None
    assert Rows.of(System.of([[1, 0, 2]])).values is not None
