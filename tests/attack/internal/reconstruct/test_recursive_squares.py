import numpy as np
import pytest

from casemate.attack.reconstruct.online import RecursiveSquares


@pytest.mark.theorem("002: Handling many queries (each seen once)")
def test_the_hospital_is_exact_after_one_pass() -> None:
    seen = RecursiveSquares(6)
    seen.see(np.arange(6), 32.1)
    seen.see(np.array([2, 3, 5]), 15.5)
    seen.see(np.array([0, 4]), 11.4)
    expected = [5.7, 5.2, 15.5 / 3, 15.5 / 3, 5.7, 15.5 / 3]
    np.testing.assert_allclose(seen.point, expected, atol=1e-12)


@pytest.mark.parametrize("case", range(30))
def test_after_every_equation_it_is_the_least_squares_of_all_so_far(case: int, seed: int) -> None:
    """Against numpy on all rows, noisy or not, of full rank or not, past several triangles."""
    rng = np.random.default_rng([seed, case])
    width = int(rng.integers(1, 9))
    dense = rng.choice([0, 0, 1, -2], (8 * width + 9, width))
    right = dense @ rng.normal(size=width) + (case % 2) * rng.normal(size=len(dense))
    seen = RecursiveSquares(width)
    for count, (line, answer) in enumerate(zip(dense, right, strict=True), start=1):
        columns = np.flatnonzero(line)
        seen.see(columns, answer, line[columns])
        if count % 5 and count < len(dense):
            continue
        lengths = np.maximum(np.linalg.norm(dense[:count], axis=1), 1)
        best = np.linalg.lstsq(dense[:count] / lengths[:, None], right[:count] / lengths)[0]
        np.testing.assert_allclose(seen.point, best, atol=1e-8)


def test_a_condition_of_a_hundred_million_leaves_eight_digits_of_sixteen() -> None:
    """Squared coefficients would leave none."""
    seen, tiny = RecursiveSquares(2), 1e-8
    for _ in range(10):
        seen.see(np.array([0, 1]), 3.0, np.array([1.0, 1.0]))
        seen.see(np.array([0, 1]), 3.0 + 2 * tiny, np.array([1.0, 1.0 + tiny]))
    np.testing.assert_allclose(seen.point, [1.0, 2.0], atol=1e-6)


def test_nothing_seen_is_zero() -> None:
    seen = RecursiveSquares(2)
    seen.see(np.zeros(0, np.int64), 5.0)
    assert seen.point.tolist() == [0.0, 0.0]
