"""Small groups and insiders, against ranks in fractions; and what is said of the rest."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path
from random import Random
from typing import Any

import exact_rank
import pytest
from audit.matrices import categories, sums, weighted
from exact_rank import Matrix, generated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.audit import Audit, AuditOptions
from casemate.audit.checks import insiders as insiders_module
from casemate.audit.result import Audited
from casemate.exact import certificate
from casemate.table import Table

seeds = st.integers(0, 2**32).map(Random)
shared_folder = settings(
    max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def unit(size: int, *columns: int) -> list[int]:
    return [int(j in columns) for j in range(size)]


def small(rng: Random) -> Matrix:
    """A generated system of coefficients that SQL adds up exactly."""
    matrix = generated(rng)
    return [[value if abs(value) < 100 else 1 for value in row] for row in matrix]


def slow_insiders(matrix: Matrix, most: int) -> set[tuple[int, tuple[int, ...]]]:
    """Who learns whom: one rank in fractions for each coalition, the smallest ones only."""
    size = len(matrix[0])
    determined = set(exact_rank.determined(matrix))
    found: set[tuple[int, tuple[int, ...]]] = set()
    for count in range(1, most + 1):
        for knows in combinations(sorted(set(range(size)) - determined), count):
            own = [unit(size, j) for j in knows]
            learned = set(exact_rank.determined([*matrix, *own])) - determined - set(knows)
            for j in learned:
                if not any(j == k and set(some) < set(knows) for k, some in found):
                    found.add((j, knows))
    return {(j + 1, tuple(k + 1 for k in knows)) for j, knows in found}


def slow_groups(matrix: Matrix, most: int, values: list[int]) -> set[tuple[Any, Fraction]]:
    """The smallest groups of undetermined records with a determined total, and the totals."""
    size = len(matrix[0])
    secret = [j for j in range(size) if j not in exact_rank.determined(matrix)]
    found: list[tuple[int, ...]] = []
    for count in range(2, most + 1):
        for group in combinations(secret, count):
            smaller = any(set(each) < set(group) for each in found)
            if not smaller and exact_rank.follows(matrix, unit(size, *group)):
                found.append(group)
    return {
        (tuple(j + 1 for j in group), Fraction(sum(values[j] for j in group))) for group in found
    }


def audited(
    matrix: Matrix, values: Sequence[object], folder: Path, options: AuditOptions
) -> Audited:
    with weighted(matrix, values, folder) as table:
        return Audit.of(sums(matrix), table, options=options)


@given(seeds, st.integers(0, 3))
@shared_folder
def test_insiders_learn_exactly_what_a_rank_for_each_coalition_says(
    tmp_path: Path, rng: Random, most: int
) -> None:
    matrix = small(rng)
    values = [rng.randint(-9, 9) for _ in matrix[0]]
    found = audited(matrix, values, tmp_path, AuditOptions(insiders=most))
    asked = [j for j in range(len(matrix[0])) if any(row[j] for row in matrix)]
    expected = {
        (j, knows)
        for j, knows in slow_insiders(matrix, most)
        if {j - 1, *(k - 1 for k in knows)} <= set(asked)
    }
    shown = [(each.record, each.knows) for each in found.insider_exposed]
    assert len(shown) == len(set(shown)) and set(shown) <= expected
    for record in {record for record, _ in expected}:
        listed = {each for each in shown if each[0] == record}
        every = {each for each in expected if each[0] == record}
        assert listed == every or len(listed) == insiders_module.MAX_INSIDERS_LISTED


@given(seeds, st.integers(1, 5))
@shared_folder
def test_groups_are_the_smallest_with_a_determined_total(
    tmp_path: Path, rng: Random, most: int
) -> None:
    matrix = small(rng)
    values = [rng.randint(-9, 9) for _ in matrix[0]]
    found = audited(matrix, values, tmp_path, AuditOptions(group_size=most))
    shown = {(each.records, each.total) for each in found.groups}
    assert shown == slow_groups(matrix, most, values)
    assert {each.column for each in found.groups} <= {"x"}


# Categories -----------------------------------------------------------------------------------


DECLARED = ("flu", "gout", "none")


def category_rows(
    matrix: Matrix, asked: list[tuple[int, str]], declared: tuple[str, ...]
) -> Matrix:
    """The equations in the columns (record, value but the last); the last is 1 less the others."""
    size, width = len(matrix[0]), len(declared) - 1
    rows = []
    for i, value in asked:
        row = [0] * (size * width)
        for record in range(size):
            if matrix[i][record] and value == declared[-1]:
                row[record * width : (record + 1) * width] = [-1] * width
            elif matrix[i][record]:
                row[record * width + declared.index(value)] = 1
        rows.append(row)
    return rows


def value_follows(rows: Matrix, record: int, true: str, declared: tuple[str, ...]) -> bool:
    """Whether the equations say which value, or that it is none of the others."""
    width = len(declared) - 1
    size = len(rows[0])
    known = []
    for place, value in enumerate(declared):
        own = range(record * width, (record + 1) * width)
        chosen = own if value == declared[-1] else [record * width + place]
        if exact_rank.follows(rows, unit(size, *chosen)):
            known.append(value)
    return true in known or len(known) >= width


def slow_category_insiders(
    rows: Matrix, values: list[str], most: int, declared: tuple[str, ...]
) -> set[tuple[int, tuple[int, ...]]]:
    width, size = len(declared) - 1, len(rows[0])
    found: set[tuple[int, tuple[int, ...]]] = set()
    for count in range(most + 1):
        for knows in combinations(range(len(values)), count):
            own = [unit(size, k * width + v) for k in knows for v in range(width)]
            for record, true in enumerate(values):
                if record in knows or any(j == record and set(s) < set(knows) for j, s in found):
                    continue
                if value_follows([*rows, *own], record, true, declared):
                    found.add((record, knows))
    return {(j + 1, tuple(k + 1 for k in knows)) for j, knows in found if knows}


@given(seeds, st.sampled_from([DECLARED, DECLARED[:2]]))
@shared_folder
def test_insiders_of_a_category_are_those_from_whom_its_value_follows(
    tmp_path: Path, rng: Random, declared: tuple[str, ...]
) -> None:
    """Counts of single values, some of them of the last one, so that kinds of secrets mix."""
    size = rng.randint(2, 5)
    matrix = [[rng.choice([0, 1, 1]) for _ in range(size)] for _ in range(rng.randint(1, 4))]
    values = [rng.choice(declared) for _ in range(size)]
    asked = [
        (i, rng.choice(declared)) for i in range(len(matrix)) for _ in range(rng.randint(1, 3))
    ]
    log = [f"SELECT COUNT(*) FROM t WHERE w{i} = 1 AND d = '{value}'" for i, value in asked]
    with categories(matrix, values, declared, tmp_path) as table:
        found = Audit.of(log, table)
    rows = category_rows(matrix, asked, declared)
    exposed = {each.record for each in found.exposed}
    by_rank = slow_category_insiders(rows, values, 1, declared)
    shown = {(each.record, each.knows) for each in found.insider_exposed}
    assert {(j, knows) for j, knows in by_rank if j not in exposed} <= shown
    assert shown <= insiders_in_every_table(matrix, asked, values, declared)
    assert not {j for j, _ in shown} & exposed
    assert not any("searched" in note for note in found.assumptions)


def insiders_in_every_table(
    matrix: Matrix, asked: list[tuple[int, str]], values: list[str], declared: tuple[str, ...]
) -> set[tuple[Any, Any]]:
    """Who learns whom when types count too: over all tables with the same counts."""

    def counts(table: Sequence[str]) -> list[int]:
        return [
            sum(d == value and w == 1 for d, w in zip(table, matrix[i], strict=True))
            for i, value in asked
        ]

    true = counts(values)
    same = [table for table in product(declared, repeat=len(values)) if counts(table) == true]
    return {
        (j + 1, (i + 1,))
        for i, j in permutations(range(len(values)), 2)
        if len({table[j] for table in same if table[i] == values[i]}) == 1
    }


def test_two_who_share_the_last_value_of_a_category_are_a_group(tmp_path: Path) -> None:
    with categories([[1, 1, 0]], ["none", "flu", "gout"], DECLARED, tmp_path) as table:
        found = Audit.of(["SELECT COUNT(*) FROM t WHERE w0 = 1 AND d = 'none'"], table)
    (group,) = found.groups
    assert (group.records, group.column) == ((1, 2), "d")
    assert (group.category, group.total) == ("none", Fraction(1))


# What is left out -----------------------------------------------------------------------------


def test_what_was_not_searched_is_said(tmp_path: Path) -> None:
    """Nine hundred pairs differ in weight, so triples of records are too many to look at.

    No value is whole: whole numbers would be looked for first, until the time is over.
    """
    rng = Random(3)
    matrix = [[rng.randint(1, 10**6) for _ in range(1500)] for _ in range(3)]
    found = audited(matrix, [0.5] * 1500, tmp_path, AuditOptions(insiders=2, seconds=100))
    assert set(found.assumptions) >= {
        "known totals of x over 3 or more records were not all searched: only records that no "
        "published number tells apart, and pairs of such",
        "what 2 insiders learn together was not searched in full",
    }


def test_a_value_with_many_insiders_lists_some_of_them(tmp_path: Path) -> None:
    """A chain of sums of two: each value gives away all of the others."""
    size = insiders_module.MAX_INSIDERS_LISTED + 5
    matrix = [[int(j in (i, i + 1)) for j in range(size)] for i in range(size - 1)]
    found = audited(matrix, list(range(size)), tmp_path, AuditOptions())
    counts = [sum(each.record == j for each in found.insider_exposed) for j in range(1, size + 1)]
    assert counts == [insiders_module.MAX_INSIDERS_LISTED] * size
    assert "of the insiders who learn one value at most 20 are listed" in found.assumptions


def unreadable(extra: Matrix, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Audited:
    """Ninety equations whose inverse has numbers of 18 digits, where only 15 are lifted.

    The first column stands for two records; `extra` has coefficients of these two, and a third.
    """
    monkeypatch.setattr(certificate, "MOST_DIGITS", 1)
    matrix = [[row[0], row[0], 0, *row[1:]] for row in exact_rank.anti_hadamard(90)]
    matrix += [[*row, *[0] * 89] for row in extra]
    return audited(matrix, [1] * 92, folder, AuditOptions(certificates=0))


def test_totals_without_a_readable_certificate_are_proved_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = unreadable([], monkeypatch, tmp_path)
    assert [(each.records, each.total) for each in found.groups] == [((1, 2), Fraction(2))]
    shown = {(each.record, each.knows) for each in found.insider_exposed}
    assert shown == {(1, (2,)), (2, (1,))}


def test_what_cannot_be_proved_is_counted_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two are told apart now, so that no group's total is what they add up to."""
    found = unreadable([[1, 0, 1]], monkeypatch, tmp_path)
    shown = {(each.record, each.knows) for each in found.insider_exposed}
    assert shown == {(1, (3,)), (3, (1,))}
    (note,) = (each for each in found.assumptions if "left out" in each)
    assert note.startswith("values that insiders may learn") and note.endswith(": 1")


def people_twice(folder: Path) -> Path:
    (folder / "visits.csv").write_text("id,who,ward,x\n1,a,1,5\n2,a,2,6\n3,b,1,7\n4,c,2,8\n")
    policy = folder / "visits.toml"
    policy.write_text(
        '[table]\nsource = "visits.csv"\nperson = "who"\nrows_per_person = 2\n'
        '[columns.who]\nrole = "identifier"\n'
        '[columns.id]\nrole = "public"\ntype = "integer"\nmin = 1\nmax = 9\n'
        '[columns.ward]\nrole = "public"\ntype = "integer"\nmin = 1\nmax = 9\n'
        '[columns.x]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 100\n'
    )
    return policy


def test_a_person_with_several_rows_is_one_insider(tmp_path: Path) -> None:
    """x1 + x2 + x3: whoever has the first two rows learns the third, and nobody else does."""
    with Table.open(people_twice(tmp_path)) as table:
        found = Audit.of(["SELECT SUM(x) FROM t WHERE id <= 3"], table)
    shown: list[tuple[Any, Any]] = [(each.record, each.knows) for each in found.insider_exposed]
    assert shown == [(3, (1, 2))]


@pytest.mark.parametrize("missing", ["secret", "public"])
def test_the_list_of_insiders_does_not_tell_who_has_no_value(missing: str, tmp_path: Path) -> None:
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.a]\nvalues = ["k", "l"]\n'
        '[columns.x]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 9\n'
        f'missing = "{missing}"\n'
    )
    lists, unless_zero = [], set[bool]()
    for values in (("4", "5"), ("4", ""), ("", "4"), ("0", "4")):
        rows = zip("kkl", (*values, "1"), strict=True)
        (tmp_path / "t.csv").write_text("a,x\n" + "".join(f"{a},{x}\n" for a, x in rows))
        found = Audit.of(["SELECT SUM(x) FROM t WHERE a = 'k'"], policy)
        lists.append([(each.record, each.knows) for each in found.insider_exposed])
        unless_zero.update(each.unless_zero for each in found.insider_exposed)
    assert unless_zero == {missing == "secret"}
    if missing == "secret":
        assert all(each == [(1, (2,)), (2, (1,))] for each in lists)
    else:
        assert lists == [lists[0], [], [], lists[0]]  # everybody knows, and one value is left


@pytest.mark.parametrize("kind", ["integer", "decimal"])
@pytest.mark.parametrize("others", [("", "0"), ("3", "1")])
def test_the_proof_of_a_value_0_that_may_be_missing_names_what_shows_that_it_is_there(
    kind: str, others: tuple[str, str], tmp_path: Path
) -> None:
    rows = "".join(f"{k},{x}\n" for k, x in enumerate(("0", *others), start=1))
    (tmp_path / "t.csv").write_text("k,x\n" + rows)
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.k]\n[columns.x]\nrole = "private"\n'
        f'type = "{kind}"\nmin = 0\nmax = 4\nmissing = "secret"\n'
    )
    sums = ["SELECT SUM(x) FROM t", "SELECT SUM(x) FROM t WHERE k > 1"]
    assert Audit.of(sums, policy).exposed == ()
    found = Audit.of([*sums, "SELECT COUNT(x) FROM t WHERE k = 1"], policy)
    (zero,) = (each for each in found.exposed if each.record == 1)
    assert (zero.value, zero.certificate, zero.by) == (0, None, 3)
    assert 3 in {step.query for step in zero.derivation}
    assert all(each.unless_zero for each in found.insider_exposed)
