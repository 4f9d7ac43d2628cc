"""What insiders nearly know, against plain linear programs and against all possible tables."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from random import Random

import pytest
from audit.matrices import sums, weighted
from exact.regions import Range, plain_ranges
from exact_rank import Matrix
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.audit import Audit, AuditOptions
from casemate.audit.checks.ranges import is_tight
from casemate.audit.result import Audited, RemainingInterval
from casemate.exact import Box, Region, System
from casemate.published import Knowledge

LOW, HIGH = Fraction(0), Fraction(100)
shared_folder = settings(
    max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def cells(rng: Random) -> tuple[Matrix, list[int]]:
    """A few cells of a few people, one of them with much more than the others."""
    size = rng.randint(3, 6)
    matrix = [[rng.choice([0, 1, 1]) for _ in range(size)] for _ in range(rng.randint(1, 3))]
    values = [rng.choice([0, 1, 2, 3, 5, 40, 90]) for _ in range(size)]
    return matrix, values


def audited(
    matrix: Matrix, values: list[int], folder: Path, integer: bool = False, protect: str = "0.2"
) -> Audited:
    texts = [str(value) if integer else f"{value}.5" for value in values]
    with weighted(matrix, texts, folder) as table:
        knowledge = Knowledge(LOW, HIGH, integer)
        options = AuditOptions(protect=Fraction(protect), approximate=True)
        return Audit.of(sums(matrix), table, knowledge=knowledge, options=options)


def slow_ranges(matrix: Matrix, values: list[Fraction], insider: int) -> list[Range]:
    """What is left of everybody for one insider: two linear programs each."""
    right = [sum(a * x for a, x in zip(row, values, strict=True)) for row in matrix]
    box = Box.of(len(values), LOW, HIGH)
    low, high = list(box.low), list(box.high)
    low[insider] = high[insider] = values[insider]
    fixed = replace(box, low=tuple(low), high=tuple(high))
    found = plain_ranges(Region.of(System.of(matrix, right), fixed))
    assert found is not None
    return found


@given(st.integers(0, 2**32).map(Random))
@shared_folder
def test_the_nearest_insider_is_the_one_that_linear_programs_find(
    tmp_path: Path, rng: Random
) -> None:
    matrix, whole = cells(rng)
    values = [value + Fraction(1, 2) for value in whole]
    found = audited(matrix, whole, tmp_path)
    asked = [j for j in range(len(values)) if any(row[j] for row in matrix)]
    away: dict[int, float] = {}
    for insider in asked:
        ranges = slow_ranges(matrix, values, insider)
        for j in set(asked) - {insider}:
            low, high = ranges[j].low, ranges[j].high
            assert low is not None and high is not None
            distance = max(high - float(values[j]), float(values[j]) - low)
            away[j + 1] = min(distance, away.get(j + 1, distance))
    public = {each.record for each in found.exposed} | {each.record for each in found.tight}
    learned = {each.record for each in found.insider_exposed}
    near = {j for j, d in away.items() if d <= 0.2 * float(values[j - 1]) + 1e-9}
    assert {each.record for each in found.approximate} == near - learned - public
    for each in found.approximate:
        true = values[int(str(each.record)) - 1]
        worst = max(each.high - true, true - each.low)
        assert float(worst) == pytest.approx(away[int(str(each.record))], abs=1e-6)
    assert {j for j, d in away.items() if d < 1e-9} - public <= learned


@given(st.integers(0, 2**32).map(Random))
@shared_folder
def test_what_insiders_know_holds_in_every_possible_table(tmp_path: Path, rng: Random) -> None:
    """Whole numbers up to 3, all tables with the same sums."""
    size = rng.randint(2, 5)
    matrix = [[rng.choice([0, 1]) for _ in range(size)] for _ in range(rng.randint(1, 3))]
    values = [rng.randint(0, 3) for _ in range(size)]
    with weighted(matrix, [str(value) for value in values], tmp_path) as table:
        options = AuditOptions(protect=Fraction(1, 2), approximate=True)
        knowledge = Knowledge(Fraction(0), Fraction(3), True)
        found = Audit.of(sums(matrix), table, knowledge=knowledge, options=options)

    def answers(table: tuple[int, ...]) -> list[int]:
        return [sum(a * x for a, x in zip(row, table, strict=True)) for row in matrix]

    true = answers(tuple(values))
    same = [each for each in product(range(4), repeat=size) if answers(each) == true]
    seen = {
        (i + 1, j + 1): {table[j] for table in same if table[i] == values[i]}
        for i, j in permutations(range(size), 2)
    }
    for each in found.approximate:
        possible = seen[int(str(each.knows[0])), int(str(each.record))]
        assert all(each.low <= value <= each.high for value in possible)
    for exact in found.insider_exposed:
        assert len(seen[int(str(exact.knows[0])), int(str(exact.record))]) == 1


def test_the_second_largest_of_a_cell_comes_near_the_largest(tmp_path: Path) -> None:
    """95, 3 and 2 add up to 100, and the last two records to 2: whoever has 3 finds 95 to 97."""
    found = audited([[1, 1, 1, 0], [0, 0, 1, 1]], [95, 3, 2, 0], tmp_path, True, "0.03")
    assert found.exposed == () and found.tight == ()
    (near,) = found.approximate
    assert (near.record, near.column, near.knows) == (1, "x", (2,))
    assert (near.low, near.high) == (Fraction(95), Fraction(97))


def test_of_two_who_come_near_the_nearer_is_named(tmp_path: Path) -> None:
    """Whoever has 3 finds 94 to 97, whoever has 2 finds 94 to 98."""
    matrix = [[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]
    (near,) = audited(matrix, [95, 3, 2, 1, 0], tmp_path, True, "0.04").approximate
    assert (near.record, near.knows) == (1, (2,))
    assert (near.low, near.high) == (Fraction(94), Fraction(97))


def test_people_whom_the_time_did_not_suffice_for_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casemate.audit.decide_exposure.INSIDER_SEARCH_SECONDS", 0.0)
    found = audited([[1, 1, 1]], [90, 3, 1], tmp_path)
    assert "what insiders nearly learn was searched for 0 of 3 people" in found.assumptions


# Nearly known to everybody --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "true", "tight"),
    [
        ("95", "105", "100", True),
        ("90", "110", "100", True),
        ("89", "101", "100", False),
        ("99", "111", "100", False),
        ("-110", "-90", "-100", True),
        ("100", "100", "100", False),
        ("0", "1", "0", False),
        ("0", "100", "99", False),
    ],
)
def test_tight_is_measured_from_the_true_value(low: str, high: str, true: str, tight: bool) -> None:
    ends = [Fraction(each) for each in (low, high, "-1000", "1000")]
    interval = RemainingInterval(1, "x", *ends)
    assert is_tight(interval, Fraction(true), Fraction(1, 10)) is tight
