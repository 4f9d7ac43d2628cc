"""From SQL to a problem: the same equations for the custodian and for an outsider."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from casemate.attack import Attack
from casemate.attack.attack import Attacked, AttackOptions
from casemate.attack.problem_from_queries import Evidence
from casemate.attack.reconstruct.answers_file import Given, read_answers
from casemate.attack.reconstruct.problem import NoiseLaw
from casemate.errors import Misconfigured
from casemate.exact import Floats
from casemate.published import Knowledge, plain_sums
from casemate.table import Table
from casemate.table.sources import Frame, Series, Source
from casemate.table.sources.source import SourceView

FULL = "id,area,pay,status\n1,5,10,C\n2,5,20,D\n3,7,40,C\n4,7,80,\n"
SEEN = "id,area\n1,5\n2,5\n3,7\n4,7\n"
SUMS = [
    "SELECT SUM(pay) FROM t",
    "SELECT SUM(pay) FROM t WHERE area = 5",
    "SELECT AVG(pay) FROM t WHERE id < 4",
]
CATEGORIES = [
    "SELECT COUNT(*) FROM t WHERE status = 'C' AND area = 5",
    "SELECT COUNT(DISTINCT id) FROM t WHERE area = 7 AND status = 'C'",
    "SELECT COUNT(*) FROM t WHERE status IN ('C', 'D')",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full.csv").write_text(FULL)
    (tmp_path / "seen.csv").write_text(SEEN)
    return tmp_path


def evidence(
    statements: Sequence[str],
    source: str = "full.csv",
    answers: Sequence[Given] | None = None,
    *,
    noise: NoiseLaw | None = None,
    knowledge: Knowledge | None = None,
    private: str = "pay",
) -> Evidence:
    texts = [private] if private == "status" else []
    with Table.open(source, private=[private], outsider=True, texts=texts) as table:
        found = Evidence.of(
            statements,
            table,
            answers=answers,
            noise=noise,
            knowledge=knowledge,
            random=np.random.default_rng(0),
        )
        found.truth  # while the table is open
    return found


def added_up(found: Evidence, values: Floats) -> Floats:
    equations = found.problem.equations
    return equations.lengths * equations.times(values)


def given(folder: Path, *numbers: object) -> list[Given]:
    lines = [f"{query},,{number}" for query, number in enumerate(numbers, start=1)]
    (folder / "a.csv").write_text("\n".join(["query,cell,answer", *lines, ""]))
    return read_answers(folder / "a.csv")


# The equations --------------------------------------------------------------------------------


@pytest.mark.parametrize(("private", "statements"), [("pay", SUMS), ("status", CATEGORIES)])
def test_the_truth_satisfies_the_equations(private: str, statements: list[str]) -> None:
    found = evidence(statements, private=private)
    assert found.truth is not None and found.own and not found.outside
    assert added_up(found, found.truth) == pytest.approx(found.problem.answers)


def test_an_outsider_with_the_published_numbers_has_the_same_equations(folder: Path) -> None:
    """As far as they go: whether a whole number is meant only the table tells."""
    inside = evidence(SUMS)
    outside = evidence(SUMS, "seen.csv", given(folder, 150, 30, "23.3333333333333333"))
    assert outside.truth is None and outside.outside and not outside.own
    assert outside.problem.answers == pytest.approx(inside.problem.answers)
    point = np.random.default_rng(1).normal(size=4)
    assert added_up(outside, point) == pytest.approx(added_up(inside, point))


def test_categories_that_only_queries_name_are_the_outsiders_unknowns(folder: Path) -> None:
    inside = evidence(CATEGORIES, private="status")
    outside = evidence(CATEGORIES, "seen.csv", given(folder, 1, 1, 3), private="status")
    assert inside.truth is not None
    assert outside.problem.whole.all() and outside.problem.equations.width == len(inside.truth)
    assert added_up(outside, inside.truth) == pytest.approx(outside.problem.answers)


def test_extremes_and_medians_are_named_as_not_used() -> None:
    extremes = ["SELECT MAX(pay) FROM t", "SELECT MEDIAN(pay) FROM t WHERE area = 5"]
    found = evidence([extremes[0], *SUMS, extremes[1]])
    refused = found.publication.refused
    assert [(each.query, each.text) for each in refused] == [(1, extremes[0]), (5, extremes[1])]
    assert all("no equation" in each.reason for each in refused)
    assert found.problem.equations.height == 3


# Answers and noise ----------------------------------------------------------------------------


def test_noise_is_laid_over_the_numbers_that_were_published() -> None:
    """An average of three people is published as such, and its equation is three times it."""
    law = NoiseLaw("round", 7.0)
    exact, rounded = evidence(SUMS).problem, evidence(SUMS, noise=law).problem
    assert exact.spread.tolist() == [1, 1, 3]
    assert exact.answers == pytest.approx([150, 30, 70])
    assert rounded.answers == pytest.approx([147, 28, 63])  # 23.33 becomes 21
    assert rounded.noise == law


def test_a_log_may_bring_its_answers_itself(folder: Path) -> None:
    (folder / "log.csv").write_text(f'sql,answer\n"{SUMS[0]}",150.25\n"{SUMS[1]}",30\n')
    with Table.open("seen.csv", private=["pay"], outsider=True) as table:
        found = Evidence.of(folder / "log.csv", table)
    assert found.problem.answers.tolist() == [150.25, 30] and not found.own


def test_rounding_in_sql_is_noise_within_half_a_unit() -> None:
    found = evidence(["SELECT ROUND(SUM(pay) / 7.0) FROM t", SUMS[1]])
    assert found.truth is not None and found.problem.noise is not None
    off = np.abs(added_up(found, found.truth) - found.problem.answers)
    limit = found.problem.noise.bounded
    assert limit is not None and (off <= limit * found.problem.spread + 1e-9).all()


# What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "statements", "sentence"),
    [
        ("seen.csv", SUMS, "query 1 has no answer; give the published numbers"),
        (
            "full.csv",
            ["SELECT COUNT(*) FROM t", "SELECT SUM(area) FROM t"],
            "none of the queries is about a private column",
        ),
        (
            "full.csv",
            ["SELECT MAX(pay) FROM t", "SELECT SUM(pay * pay) FROM t"],
            "none of the queries can be used.*no equation",
        ),
    ],
)
def test_a_log_that_tells_nothing_is_refused(
    source: str, statements: list[str], sentence: str
) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        evidence(statements, source)


# Without stored equations ---------------------------------------------------------------------


QUERIES = [
    *(f"SELECT SUM(visits) FROM t WHERE age BETWEEN {a} AND {a + 9}" for a in range(0, 90, 7)),
    *(f"SELECT SUM(visits) FROM t WHERE age >= {a} AND sex = 'female'" for a in range(5, 80, 11)),
    "SELECT region, AVG(visits) FROM t GROUP BY region",
    "SELECT SUM(visits) FROM t WHERE age > 1000",
]


T = TypeVar("T")


def long_and_short(work: Callable[[], T]) -> tuple[T, T]:
    """What comes of it without stored equations, and with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_sums, "MAX_STORED_ENTRIES", 0)
        long = work()
    return long, work()


@pytest.mark.parametrize("noise", [None, NoiseLaw("laplace", 2.0), NoiseLaw("round", 5.0)])
def test_the_problem_is_the_same_one(noise: NoiseLaw | None) -> None:
    def work() -> Evidence:
        with Table.open("population:300") as table:
            known = Knowledge(known={7: (Fraction(2), Fraction(2))})
            random = np.random.default_rng(1)
            found = Evidence.of(QUERIES, table, noise=noise, knowledge=known, random=random)
            _ = found.truth, found.told
            return found

    long, short = long_and_short(work)
    assert not long.equations.system.rows
    assert long.truth is not None and short.truth is not None
    place = short.equations.record
    np.testing.assert_array_equal(long.truth[place], short.truth)
    np.testing.assert_array_equal(np.flatnonzero(long.told), np.sort(place[short.told]))
    for end in ("low", "high", "whole"):
        np.testing.assert_array_equal(
            getattr(long.problem, end)[place], getattr(short.problem, end)
        )
    point = np.random.default_rng(2).random(long.problem.equations.width)
    ours, theirs = (rows(each, at) for each, at in ((long, point), (short, point[place])))
    np.testing.assert_allclose(ours, theirs)


def rows(found: Evidence, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each equation says of a point beside what was published, whatever their order is.

    A database gives the groups of one statement in any order it likes.
    """
    equations, problem = found.problem.equations, found.problem
    said = equations.lengths * equations.times(point) / problem.spread
    pairs = np.column_stack([said, problem.answers / problem.spread])
    return pairs[np.argsort(said)]


class Shuffling(SourceView):
    """A source that returns its rows in whatever order it likes, another every time."""

    def __init__(self, source: Source, seed: int) -> None:
        super().__init__(source)
        self._random = np.random.default_rng(seed)

    def relation(self, public: str | None = None) -> str:
        return self._source.relation(public)

    def read(self, sql: str) -> Frame:
        frame = super().read(sql)
        order = self._random.permutation(len(next(iter(frame.values())).values))
        return {name: Series(one.values[order], one.missing[order]) for name, one in frame.items()}


def test_a_seed_lays_the_same_noise_whatever_order_an_engine_returns_groups_in() -> None:
    queries = ["SELECT sex, region, SUM(visits), COUNT(*) FROM t GROUP BY sex, region"]
    seen = []
    for seed in range(3):
        with Table.open("population:40") as table:
            shuffled = Table(table.policy, Shuffling(table.source, seed))
            noise, random = NoiseLaw("laplace", 2.0), np.random.default_rng(1)
            seen.append(Evidence.of(queries, shuffled, noise=noise, random=random))
    for other in seen[1:]:
        assert other.equations.places == seen[0].equations.places
        np.testing.assert_array_equal(other.problem.answers, seen[0].problem.answers)


def test_an_attack_on_a_long_table_comes_to_the_same() -> None:
    def attack() -> Attacked:
        random = np.random.default_rng(3)
        options = AttackOptions(targets=3)
        return Attack.of(QUERIES, "population:300", options=options, random=random)

    long, short = long_and_short(attack)
    assert long.scores["visits"].recovered == pytest.approx(short.scores["visits"].recovered)
    assert long.scores["visits"].records == short.scores["visits"].records
    assert [each.record for each in short.secrets] == [
        each.record for each in long.secrets if long.evidence.told[int(str(each.record)) - 1]
    ]


POLICY = """
[table]
source = "t.csv"
[columns.id]
role = "public"
[columns.status]
role = "private"
values = ["A", "B", "C"]
"""


def test_a_category_is_what_its_unknowns_say_or_what_they_leave(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,status\n1,A\n2,B\n3,C\n4,C\n")
    (tmp_path / "p.toml").write_text(POLICY)
    count = "SELECT COUNT(*) FROM t WHERE status = '{}' AND id = {}".format
    counts = [count(value, place) for value in "AB" for place in range(1, 5)]
    found = Attack.of(counts, tmp_path / "p.toml", random=np.random.default_rng(0))
    assert repr(found) == "<Attacked: 4 records, 8 queries>"
    assert {repr(secret) for secret in found.secrets} == {"<Secret: a value of status>"}
    assert [each.value for each in found.secrets] == ["A", "B", "C", "C"]
    assert {each.column for each in found.secrets} == {"status"}
    assert [each.record for each in found.secrets] == [1, 2, 3, 4]
    assert {(each.low, each.high) for each in found.secrets} == {(None, None)}
