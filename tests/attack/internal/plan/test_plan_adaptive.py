"""Plans that stop early: always right, and never much longer than the fixed plan."""

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from attack.bit_tables import written

from casemate.attack.plan import AdaptivePlan
from casemate.attack.plan.adaptive import AdaptiveFindings, costs
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import sums_needed
from casemate.errors import Misconfigured
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.table import Table


class Exact:
    """The table itself answers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def ask(self, sql: str) -> Fraction | None:
        (found,) = answers(parse(sql, self._table.policy), self._table.source)
        return None if found[()] is None else Fraction(str(found[()]))


def learned(
    table: Table, least: int = 1, private: str | None = None
) -> tuple[AdaptiveFindings, int]:
    plan = AdaptivePlan(Planner(table, private, min_count=least), "all")
    return plan.run(Exact(table)), len(plan.fixed.queries)


# Bits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [1, 3, 20])
@pytest.mark.parametrize("ones", [0, 1, 3, 20, 39, 40])
def test_all_bits_are_right_with_at_most_one_query_more(
    ones: int, least: int, tmp_path: Path, rng: Random
) -> None:
    bits = [1] * ones + [0] * (40 - ones)
    rng.shuffle(bits)
    with Table.open(written(tmp_path, bits, "number")) as table:
        found, fixed = learned(table, least)
        assert list(found.values.values()) == bits
        assert len(found.queries) <= fixed + 1
        assert ones not in (0, 40) or len(found.queries) == 1
        assert ones not in (1, 39) or len(found.queries) <= 7


@pytest.mark.parametrize("kind", ["category", "boolean"])
def test_values_of_a_category_are_shown_as_they_are(kind: str, tmp_path: Path) -> None:
    with Table.open(written(tmp_path, [0, 1, 1, 0, 0, 0], kind)) as table:
        found, _ = learned(table)
        no, yes = ("no", "yes") if kind == "category" else (False, True)
        assert list(found.values.values()) == [no, yes, yes, no, no, no]


def test_no_set_is_ever_dearer_than_a_detecting_matrix() -> None:
    for size in (*range(2, 70), 256, 1000):
        found = costs(size)
        assert found.max() <= sums_needed(size)
        assert found[0] == found[-1] == 0 and len(found) == size + 1
        assert (found == found[::-1]).all() or size % 2


@pytest.mark.parametrize("ones", [1, 2, 4, 8])
def test_few_ones_are_found_by_halving(ones: int) -> None:
    """About d log2(n / d): never above d (log2(n / d) + 1)."""
    assert costs(1024)[ones] <= ones * (10 - ones.bit_length() + 1 + 1)


def test_costs_are_the_worst_of_all_ways_to_fall(rng: Random) -> None:
    """Against a run of the rule itself on every bit string of a small set."""

    def asked(bits: tuple[int, ...]) -> int:
        size, ones = len(bits), sum(bits)
        if size < 2 or ones in (0, size):
            return 0
        if costs(size)[ones] >= sums_needed(size):
            return sums_needed(size)
        return 1 + asked(bits[: size // 2]) + asked(bits[size // 2 :])

    for size in range(1, 11):
        for ones in range(size + 1):
            strings = [
                tuple(i >> k & 1 for k in range(size))
                for i in range(2**size)
                if i.bit_count() == ones
            ]
            assert max(map(asked, strings)) == costs(size)[ones]


# Numbers ----------------------------------------------------------------------------------------


def numbers(folder: Path, values: list[int], unique: bool) -> Path:
    rows = "".join(f"{i if unique else i // 2},{i % 2},{value}\n" for i, value in enumerate(values))
    (folder / "t.csv").write_text("a,b,s\n" + rows)
    path = folder / "t.toml"
    path.write_text(
        '[table]\nsource = "t.csv"\n[columns.a]\nrole = "public"\n[columns.b]\nrole = "public"\n'
        '[columns.s]\nrole = "private"\nmin = 0\nmax = 9\n'
    )
    return path


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("choices", [(0,), (0, 0, 0, 9, 4), (4,)])
def test_numbers_within_bounds_are_right_and_stop_early(
    choices: tuple[int, ...], unique: bool, tmp_path: Path, rng: Random
) -> None:
    values = [rng.choice(choices) for _ in range(16)]
    with Table.open(numbers(tmp_path, values, unique)) as table:
        for least in (1, 3):
            found, fixed = learned(table, least)
            assert found.values == {i + 1: value for i, value in enumerate(values)}
            assert len(found.queries) <= fixed + 1
            assert any(values) or not unique or len(found.queries) == 1


@pytest.mark.parametrize(
    ("values", "queries"),
    [([0, 0, 0, 0, 0, 0], 1), ([9, 9, 9, 9, 9, 9], 1), ([0, 0, 0, 5, 0, 9], 2)],
)
def test_one_record_is_settled_by_a_sum_at_an_end(
    values: list[int], queries: int, tmp_path: Path
) -> None:
    with Table.open(numbers(tmp_path, values, True)) as table:
        planner = Planner(table, min_count=2)
        for record in range(1, 7):
            plan = AdaptivePlan(planner, record)
            found = plan.run(Exact(table))
            assert found.values == {record: values[record - 1]}
            assert len(found.queries) <= queries <= len(plan.fixed.queries) < plan.most


def test_a_category_of_many_values_is_settled_value_by_value() -> None:
    with Table.open("population:40") as table:
        frame = table.source.read(f"SELECT * FROM {table.source.relation()} AS t")
        plan = AdaptivePlan(Planner(table, "diagnosis", min_count=2), "all")
        found = plan.run(Exact(table))
        truth = frame["diagnosis"].values
        assert all(value == truth[int(str(r)) - 1] for r, value in found.values.items())
        assert len(found.values) == len(plan.fixed.determined)
        assert len(found.queries) < len(plan.fixed.queries) / 2


def test_random_tables_are_read_right_whatever_their_values(tmp_path: Path, rng: Random) -> None:
    for _ in range(8):
        values = [rng.choice([0, 0, 9, rng.randrange(10)]) for _ in range(14)]
        with Table.open(numbers(tmp_path, values, rng.random() < 0.5)) as table:
            found, fixed = learned(table, rng.randint(1, 4))
            assert all(values[int(str(r)) - 1] == value for r, value in found.values.items())
            assert len(found.queries) <= fixed + 1


def test_nothing_to_ask_is_said() -> None:
    with Table.open("hospital") as table, pytest.raises(Misconfigured, match="nothing to ask"):
        AdaptivePlan(Planner(table, min_count=6), 1)
