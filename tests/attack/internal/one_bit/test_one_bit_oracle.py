"""A table as a threshold oracle: the reduction is exact, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

from casemate.attack.one_bit import OneBitKalman, TableOracle
from casemate.attack.one_bit.laws import Gaussian
from casemate.attack.one_bit.oracle import GroupTotals, play
from casemate.errors import Misconfigured
from casemate.table import Table

AGES, PAY = [20, 20, 30, 30, 30, 40], [100, 300, 50, 250, 600, 900]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{age},{pay},x" for age, pay in zip(AGES, PAY, strict=True)]
    path.write_text("\n".join(["age,pay,word", *rows, ""]))
    return path


def totals(
    people: Path, dimensions: int = 3, bounds: tuple[float, float] = (0, 1000)
) -> GroupTotals:
    return TableOracle.of(people, private="pay", dimensions=dimensions, bounds=bounds).totals


def test_a_weighted_total_is_a_product_with_the_groups_means(people: Path) -> None:
    """SUM(weight * pay), with one weight for each age, from w . q and public numbers alone."""
    for bounds in ((0.0, 1000.0), (50.0, 900.0), (-100.0, 2000.0)):
        oracle = TableOracle.of(people, private="pay", dimensions=3, bounds=bounds)
        weights = np.array([0.25, 1.0, 0.5])
        by_age = dict(zip((20, 30, 40), weights.tolist(), strict=True))
        truth = sum(by_age[age] * pay for age, pay in zip(AGES, PAY, strict=True))
        q = oracle.query(weights)
        assert oracle.totals.total(q, float(q @ oracle.totals.means)) == pytest.approx(truth)
        assert np.all((oracle.totals.means >= 0) & (oracle.totals.means <= 1))
        assert oracle.totals.value(oracle.totals.means[0]) == pytest.approx(200)


def test_without_noise_the_bit_is_the_statements_own_answer(people: Path) -> None:
    oracle = TableOracle.of(people, private="pay", dimensions=3, bounds=(0, 1000))
    q = oracle.query([1, 1, 0])
    assert oracle.above(q, 1299.5) and not oracle.above(q, 1300.5)
    assert oracle.bits(np.array([q, q]), np.array([1299.5, 1300.5])).tolist() == [True, False]


def test_a_stream_without_noise_recovers_every_groups_mean(people: Path, seed: int) -> None:
    oracle = TableOracle.of(people, private="pay", dimensions=3, bounds=(0, 1000))
    learner = OneBitKalman(oracle.dimension, np.eye(3), scale=0)
    random = np.random.default_rng(seed)
    play(learner, oracle, np.array([oracle.query(random.random(3)) for _ in range(600)]))
    means = [oracle.totals.value(each) for each in learner.vector]
    assert means == pytest.approx([200, 300, 900], abs=1e-4)


def test_noise_is_on_the_total_in_the_columns_unit(people: Path, seed: int) -> None:
    oracle = TableOracle(totals(people), Gaussian(5.0), np.random.default_rng(seed))
    q = oracle.query([1, 0, 0])
    noise = oracle.noisy(np.tile(q, (4_000, 1))) - 400
    assert abs(noise.mean()) < 6 * 5 / np.sqrt(4_000) and 4.4 < noise.std() < 5.6


def test_numbers_outside_the_bounds_are_moved_and_missing_ones_count_as_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("age,pay\n1,-50\n2,500\n3,\n4,60\n")
    assert totals(tmp_path / "t.csv", 4, (0, 100)).means.tolist() == [0, 1, 0, 0.6]
    assert totals(tmp_path / "t.csv", 4, (50, 150)).means.tolist() == [0, 1, 0, 0.1]


def test_bounds_come_from_the_policy(tmp_path: Path, people: Path) -> None:
    policy = tmp_path / "people.toml"
    start = f'[table]\nsource = "{people.name}"\n[columns.age]\n[columns.pay]\nrole = "private"\n'
    policy.write_text(f"{start}min = 0\nmax = 2000\n")
    assert TableOracle.of(policy, dimensions=3).totals.bounds == (0, 2000)
    policy.write_text(f"{start}values = [50, 100, 250, 300, 600, 900]\n")
    assert TableOracle.of(policy, dimensions=3).totals.bounds == (50, 900)


def test_an_open_table_stays_open(people: Path) -> None:
    with Table.open(people, private=["pay"]) as table:
        assert TableOracle.of(table, dimensions=2, bounds=(0, 1000)).dimension == 2
        assert TableOracle.of(table, private="pay", dimensions=2, bounds=(0, 1)).dimension == 2


@pytest.mark.parametrize(
    ("private", "options", "why"),
    [
        ("word", {"bounds": (0, 1)}, "'word' is not numeric"),
        ("pay", {}, "nothing says between which numbers 'pay' lies"),
        ("pay", {"bounds": (5, 5)}, "5:5 leave no range"),
        ("pay", {"bounds": (0, float("inf"))}, "leave no range"),
        ("pay", {"bounds": (0, 1), "dimensions": 7}, "6 records, fewer than the 7 groups"),
        ("pay", {"bounds": (0, 1), "dimensions": 0}, "0 is no number of groups"),
        (None, {"bounds": (0, 1)}, "no column is private"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    people: Path, private: str | None, options: dict[str, object], why: str
) -> None:
    with pytest.raises(Misconfigured, match=why):
        TableOracle.of(people, private=private, **{"dimensions": 3, **options})  # type: ignore[arg-type]  # wrong on purpose


def test_several_private_columns_need_a_name(people: Path) -> None:
    with Table.open(people, private=["pay", "age"]) as table:
        with pytest.raises(Misconfigured, match=r"several columns are private \(age, pay\)"):
            TableOracle.of(table, dimensions=1, bounds=(0, 1))
        with pytest.raises(Misconfigured, match="'word' is not private"):
            TableOracle.of(table, private="word", dimensions=1, bounds=(0, 1))


@pytest.mark.parametrize("weights", [[1, 1], [1, 1, 1.5], [1, 1, -0.1], [1, 1, float("nan")]])
def test_weights_are_between_0_and_1_one_for_each_group(people: Path, weights: list[float]) -> None:
    oracle = TableOracle.of(people, private="pay", dimensions=3, bounds=(0, 1000))
    with pytest.raises(ValueError, match="need 3 weights between 0 and 1"):
        oracle.query(weights)


def test_nothing_of_the_secret_is_in_a_repr(people: Path) -> None:
    found = totals(people)
    assert repr(found) == "<GroupTotals: 3 groups of 6 records>"
    assert repr(found.groups) == "<Groups: 3 of 6 records>"
