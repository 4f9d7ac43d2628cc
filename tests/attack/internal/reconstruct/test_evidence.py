"""From SQL to a problem: the same equations for the custodian and for an outsider."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from casemate.attack.evidence import Evidence, read_entries
from casemate.attack.reconstruct.answers_file import Given, read_answers
from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.errors import Misconfigured
from casemate.exact import Floats
from casemate.published import Knowledge
from casemate.table import Table

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


def test_a_statement_that_cannot_be_read_does_not_hide_the_categories_of_others() -> None:
    wrong = "SELECT COUNT(*) FROM t WHERE status SIMILAR TO 'C'"
    found = evidence([wrong, *CATEGORIES], private="status")
    assert [each.query for each in found.publication.refused] == [1]
    assert found.problem.equations.height == 3


def test_extremes_and_medians_are_named_as_not_used() -> None:
    extremes = ["SELECT MAX(pay) FROM t", "SELECT MEDIAN(pay) FROM t WHERE area = 5"]
    found = evidence([extremes[0], *SUMS, extremes[1]])
    refused = found.publication.refused
    assert [(each.query, each.text) for each in refused] == [(1, extremes[0]), (5, extremes[1])]
    assert all("no equation" in each.reason for each in refused)
    assert found.problem.equations.height == 3


def test_quantiles_are_named_as_not_used() -> None:
    quantiles = ["SELECT quantile_cont(pay, 0.9) FROM t", "SELECT quantile_disc(pay, 0.5) FROM t"]
    found = evidence([quantiles[0], *SUMS, quantiles[1]])
    refused = found.publication.refused
    assert [(each.query, each.text) for each in refused] == [(1, quantiles[0]), (5, quantiles[1])]
    assert all("only median(x) is read" in each.reason for each in refused)
    assert found.problem.equations.height == 3


def test_what_is_known_becomes_the_box() -> None:
    known = Knowledge(Fraction(0), Fraction(90), True, {2: (Fraction(20), Fraction(20))})
    problem = evidence(SUMS, knowledge=known).problem
    assert problem.low.tolist() == [0, 20, 0, 0] and problem.high.tolist() == [90, 20, 90, 90]
    assert problem.whole.all()


# Answers and noise ----------------------------------------------------------------------------


def test_noise_is_laid_over_the_numbers_that_were_published() -> None:
    """An average of three people is published as such, and its equation is three times it."""
    law = NoiseLaw("round", 7.0)
    exact, rounded = evidence(SUMS).problem, evidence(SUMS, noise=law).problem
    assert exact.spread.tolist() == [1, 1, 3]
    assert exact.answers == pytest.approx([150, 30, 70])
    assert rounded.answers == pytest.approx([147, 28, 63])  # 23.33 becomes 21
    assert rounded.noise == law


def test_the_same_generator_gives_the_same_noise() -> None:
    law = NoiseLaw("laplace", 2.0)
    one, other = evidence(SUMS, noise=law).problem, evidence(SUMS, noise=law).problem
    assert one.answers.tolist() == other.answers.tolist() != evidence(SUMS).problem.answers.tolist()


def test_given_answers_carry_the_noise_already(folder: Path) -> None:
    law = NoiseLaw("gaussian", 2.0)
    found = evidence(SUMS, "seen.csv", given(folder, 151.5, 29, 20), noise=law)
    assert found.problem.answers == pytest.approx([151.5, 29, 60]) and found.problem.noise == law


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


def test_an_outsider_must_bring_every_answer() -> None:
    with pytest.raises(Misconfigured, match="query 1 has no answer; give the published numbers"):
        evidence(SUMS, "seen.csv")


def test_a_log_that_is_about_nothing_private_is_refused() -> None:
    with pytest.raises(Misconfigured, match="none of the queries is about a private column"):
        evidence(["SELECT COUNT(*) FROM t", "SELECT SUM(area) FROM t"])


def test_a_log_of_which_nothing_can_be_used_is_refused_with_the_first_reason() -> None:
    with pytest.raises(Misconfigured, match=r"none of the queries can be used.*no equation"):
        evidence(["SELECT MAX(pay) FROM t", "SELECT SUM(pay * pay) FROM t"])


def test_an_answer_that_is_no_number_is_named_with_its_line(folder: Path) -> None:
    (folder / "log.csv").write_text(f'sql,answer\n"{SUMS[0]}",150\n"{SUMS[1]}",NaN\n')
    with pytest.raises(Misconfigured, match=r"log.csv, line 3: the answer is not a number"):
        read_entries(folder / "log.csv", "postgres")
