from fractions import Fraction
from itertools import combinations
from random import Random

import exact_rank
import pytest
from exact.regions import Form
from exact_rank import Matrix, generated

from casemate.audit.region.coalition import kin
from casemate.exact import System, exposure
from casemate.exact.unknowns import blocked, incremental


def unit(size: int, *columns: int) -> list[int]:
    return [int(j in columns) for j in range(size)]


def learns(matrix: Matrix, known: tuple[int, ...], column: int) -> bool:
    """Whether somebody who knows these values knows the column's too."""
    size = len(matrix[0])
    return column in exact_rank.determined([*matrix, *(unit(size, j) for j in known)])


@pytest.mark.parametrize("form", [incremental, blocked])
@pytest.mark.parametrize("batch", range(2))
def test_kin_are_those_who_learn_each_other(form: Form, batch: int) -> None:
    rng = Random(batch)
    for _ in range(40):
        matrix = generated(rng)
        size = len(matrix[0])
        families = kin(form(System.of(matrix), rng.randbytes))
        found = {pair for family in families for pair in combinations(family.columns, 2)}
        secret = [j for j in range(size) if j not in exact_rank.determined(matrix)]
        assert found == {(i, j) for i, j in combinations(secret, 2) if learns(matrix, (i,), j)}


def test_a_ratio_other_than_one_is_read_off() -> None:
    (family,) = kin(exposure(System.of([[2, 3, 0]])))
    assert (str(family.ratio(1, 0)), str(family.ratio(0, 1))) == ("-2/3", "-3/2")


def test_a_ratio_that_is_too_large_is_not_read() -> None:
    huge = 10**40
    (family,) = kin(exposure(System.of([[huge + 1, huge, 0], [0, 1, 1]])))
    assert family.ratio(1, 0) != Fraction(-huge - 1, huge)
    assert family.ratio(2, 1) == -1
