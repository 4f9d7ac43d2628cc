import numpy as np
import pytest
from scipy.optimize import linprog

from casemate.attack.solvers.decoding import least_deviations
from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Floats, Rows, System

PEOPLE = 96


def half_subsets(rng: np.random.Generator) -> tuple[Rows, Floats, Floats]:
    """Sums of random halves of yes/no values, four for each of them."""
    dense = rng.integers(0, 2, (4 * PEOPLE, PEOPLE))
    truth = rng.integers(0, 2, PEOPLE).astype(np.float64)
    return Rows.of(System.of(dense.tolist())), dense @ truth, truth


@pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
def test_junk_answers_are_outvoted(share: float, seed: int) -> None:
    rng = np.random.default_rng([seed, round(100 * share)])
    rows, answers, truth = half_subsets(rng)
    junk = rng.random(len(answers)) < share
    answers[junk] += rng.choice([-PEOPLE / 2, PEOPLE / 2], int(junk.sum()))
    assert (least_deviations(rows, answers).values.round() == truth).all()
    plain = least_squares(rows, answers).values
    assert (plain.round() != truth).any()


@pytest.mark.parametrize("case", range(15))
def test_the_absolute_residuals_are_about_the_least(case: int, seed: int) -> None:
    """Against the linear program on the scaled rows."""
    rng = np.random.default_rng([seed, case])
    height, width = int(rng.integers(5, 30)), int(rng.integers(1, 6))
    dense = rng.choice([0, 1, 1, 2], (height, width))
    right = dense @ rng.normal(size=width) + rng.standard_t(2, height)
    rows = Rows.of(System.of(dense.tolist()))
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    eye = np.eye(height)
    theirs = linprog(
        np.r_[np.zeros(width), np.ones(height)],
        A_ub=np.block([[scaled, -eye], [-scaled, -eye]]),
        b_ub=np.r_[target, -target],
        bounds=[(None, None)] * width + [(0, None)] * height,
    ).fun
    assert theirs is not None
    found = least_deviations(rows, right, tolerance=1e-9)
    mine = float(np.abs(scaled @ found.values - target).sum())
    assert theirs - 1e-7 <= mine <= theirs * 1.01 + 1e-6


def test_exact_answers_are_left_as_they_are(seed: int) -> None:
    rows, answers, truth = half_subsets(np.random.default_rng(seed))
    np.testing.assert_allclose(least_deviations(rows, answers).values, truth, atol=1e-3)
