import numpy as np
import pytest

from casemate.attack.solvers import posterior as module
from casemate.attack.solvers.posterior import gram
from casemate.exact import Rows, System


@pytest.mark.parametrize("advantage", [1e9, 1e-9], ids=["dense", "sparse"])
@pytest.mark.parametrize("choices", [[0, 1], [0, 0, 1, -2, 3]], ids=["plain", "weighted"])
@pytest.mark.parametrize("case", range(5))
def test_both_ways_give_the_product_of_the_matrix_with_itself(
    advantage: float,
    choices: list[int],
    case: int,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DENSE_ADVANTAGE", advantage)
    monkeypatch.setattr(module, "BATCH_ENTRIES", 64)
    rng = np.random.default_rng([seed, case])
    dense = rng.choice(choices, (int(rng.integers(1, 50)), int(rng.integers(1, 20))))
    weights = rng.random(len(dense))
    found = gram(Rows.of(System.of(dense.tolist())), weights)
    np.testing.assert_allclose(found, dense.T @ (weights[:, None] * dense), rtol=1e-5, atol=1e-5)
