from itertools import combinations, product

import numpy as np
import pytest

from casemate.attack.solvers.laws import AnswerLaw
from casemate.attack.solvers.whole_decoding import whole_decoding
from casemate.exact import Floats, Rows, System


def loss(law: AnswerLaw, rest: Floats) -> float:
    """The loss of residuals in spreads, written out."""
    size = np.abs(rest)
    each = {
        AnswerLaw.GAUSSIAN: rest**2 / 2,
        AnswerLaw.LAPLACE: size,
        AnswerLaw.UNIFORM: np.maximum(0, size - 1 - 1e-9),
    }
    return float(each[law].sum())


def small_case(rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    height, width = int(rng.integers(1, 30)), int(rng.integers(2, 8))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    low = rng.integers(-2, 2, width)
    high = low + rng.integers(0, 4, width)
    right = dense @ rng.integers(low, high + 1) + rng.normal(size=height) * rng.choice([0, 2])
    ends = low.astype(np.float64), high.astype(np.float64)
    return dense, right, *ends, rng.choice([0.5, 1.0, 3.0], height)


@pytest.mark.parametrize("law", AnswerLaw)
@pytest.mark.parametrize("case", range(25))
def test_no_change_of_one_value_or_two_is_better(law: AnswerLaw, case: int, seed: int) -> None:
    """Against trying every single change and every pair of changes by one."""
    rng = np.random.default_rng([seed, case])
    dense, right, low, high, spread = small_case(rng)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = whole_decoding(
        rows, right, start=rng.normal(size=len(low)), low=low, high=high, law=law, spread=spread
    )
    assert found.converged
    values = found.values
    assert (low <= values).all() and (values <= high).all() and (values == values.round()).all()
    reached = loss(law, (right - dense @ values) / spread)
    for one, two in combinations(range(len(low)), 2):
        for steps in product((-1, 0, 1), repeat=2):
            other = values.copy()
            other[[one, two]] += steps
            if (low <= other).all() and (other <= high).all():
                assert loss(law, (right - dense @ other) / spread) >= reached - 1e-6


def test_a_pair_is_changed_where_no_value_can_change_alone() -> None:
    """x1 + x2 and x2 + x3 are known well, x1 badly: the start keeps the first two."""
    rows = Rows.of(System.of([[1, 1], [1, 0]]))
    right, spread = np.array([1.0, 1.0]), np.array([0.1, 1.0])
    start = np.array([0.0, 1.0])
    found = whole_decoding(rows, right, start=start, low=0, high=1, spread=spread)
    assert found.values.tolist() == [1, 0]
    alone = whole_decoding(rows, right, start=start, low=0, high=1, spread=spread, near=0)
    assert alone.values.tolist() == [0, 1]


def test_exact_sums_of_random_halves_are_decoded_from_nearby(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (120, 60))
    truth = rng.integers(0, 2, 60).astype(np.float64)
    wrong = truth.copy()
    wrong[:3] = 1 - wrong[:3]
    seen: list[int] = []
    found = whole_decoding(
        Rows.of(System.of(dense.tolist())),
        dense @ truth,
        start=wrong,
        low=0,
        high=1,
        progress=lambda steps, *_: seen.append(steps),
    )
    assert (found.values == truth).all() and found.residual == 0
    assert seen == list(range(1, found.iterations + 1))


def test_ranges_without_whole_numbers_or_ends_are_refused() -> None:
    rows, right = Rows.of(System.of([[1]])), np.ones(1)
    with pytest.raises(ValueError, match="without a whole number"):
        whole_decoding(rows, right, start=right, low=0.2, high=0.8)
    with pytest.raises(ValueError, match="finite range"):
        whole_decoding(rows, right, start=right, low=0, high=np.inf)
