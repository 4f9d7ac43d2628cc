import numpy as np
import pytest

from casemate.attack.solvers.laws import EquationsByUnknown, plain_sums
from casemate.exact import Floats, Rows, System


@pytest.mark.parametrize("choices", [[0, 1], [0, 0, 1, -2, 3]], ids=["plain", "weighted"])
@pytest.mark.parametrize("case", range(10))
def test_turning_keeps_every_entry(choices: list[int], case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    dense = rng.choice(choices, (int(rng.integers(1, 40)), int(rng.integers(1, 20))))
    equations = Rows.of(System.of(dense.tolist()))
    columns = EquationsByUnknown.of(equations)
    again = np.zeros(dense.shape)
    for unknown in range(dense.shape[1]):
        own = slice(*columns.starts[unknown : unknown + 2])
        again[columns.rows[own], unknown] = 1 if columns.values is None else columns.values[own]
        assert (np.diff(columns.rows[own].astype(np.int64)) > 0).all()
    assert (again == dense).all()
    point: Floats = rng.normal(size=equations.width)
    np.testing.assert_allclose(plain_sums(equations, point), dense @ point, atol=1e-12)
