"""How far a question moves between two tables that must look alike, against all of them."""

from fractions import Fraction
from itertools import product

import pytest

from casemate.grid import Relation
from casemate.table import Budget, Neighbours, Policy, Protects

CELLS = range(3)
WEIGHTS = (-2, 0, 5)


def histories(rows: int) -> list[tuple[int, ...]]:
    """Every way in which one person's rows, at most so many, fall into cells."""
    return [each for size in range(rows + 1) for each in product(CELLS, repeat=size)]


def neighbours(relation: Relation) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of what one person has in two neighbouring tables."""
    own = histories(relation.rows)
    if not relation.exchanged:
        return [(each, ()) for each in own]
    return [(one, other) for one in own for other in own]


RELATIONS = [Relation(), Relation(rows=2), Relation(exchanged=True), Relation(True, 2)]


@pytest.mark.parametrize("relation", RELATIONS)
def test_sums_and_tables_move_by_exactly_their_sensitivities(relation: Relation) -> None:
    pairs = neighbours(relation)
    sums = [abs(sum(WEIGHTS[c] for c in one) - sum(WEIGHTS[c] for c in two)) for one, two in pairs]
    assert max(sums) == relation.of_sum(min(WEIGHTS), max(WEIGHTS))
    moved = [[one.count(cell) - two.count(cell) for cell in CELLS] for one, two in pairs]
    assert max(sum(x * x for x in move) for move in moved) == relation.squared_of_table
    assert max(sum(map(abs, move)) for move in moved) == relation.of_table


def relation_of(rows: int = 1, **settings: object) -> Relation:
    policy = Policy("t", (), person="who" if rows > 1 else None, rows_per_person=rows)
    return Relation.of(policy, Budget(Fraction(1), **settings))  # type: ignore[arg-type]  # two enums


def test_a_policy_says_which_relation_it_means() -> None:
    assert relation_of() == Relation()
    assert relation_of(3) == Relation(rows=3)
    assert relation_of(neighbours=Neighbours.REPLACE) == Relation(True, 1, counted=True)
    values_only = Protects.PRIVATE_COLUMNS
    assert relation_of(3, protects=values_only) == Relation(True, 3, counted=True)
    several = relation_of(2, neighbours=Neighbours.REPLACE)
    assert not several.counted, "who is replaced may have had another number of rows"
