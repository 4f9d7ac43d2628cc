"""Questions refused before they are answered: exactly those that would expose somebody."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.staff import EVERYTHING, PAY, PRIVATE, TEAMS, of, written
from exact_rank import determined

from casemate.audit import Audit
from casemate.audit.online import OnlineAuditor
from casemate.audit.online.auditor import MIXED, Recorded
from casemate.errors import Misconfigured, Refused
from casemate.table import Table


@pytest.fixture
def auditor(tmp_path: Path) -> Iterator[OnlineAuditor]:
    with OnlineAuditor(written(tmp_path), private=PRIVATE) as made:
        yield made


# Sums ---------------------------------------------------------------------------------------------


@pytest.mark.theorem("002: Which records are exposed? (before it is answered)")
def test_the_third_question_of_the_document_is_refused_before_it_is_answered(
    tmp_path: Path,
) -> None:
    patients = tmp_path / "hospital.csv"
    patients.write_text(
        "ZIP,Gender,Sugar\n32453,Male,4.3\n43813,Male,5.2\n43765,Female,6.1\n"
        "32187,Female,3.2\n33745,Male,7.1\n22983,Female,6.2\n"
    )
    with OnlineAuditor(patients, private="Sugar") as auditor:
        auditor.record("SELECT SUM(Sugar) FROM t")
        auditor.record("SELECT SUM(Sugar) FROM t WHERE Gender = 'Female'")
        third = "SELECT SUM(Sugar) FROM t WHERE ZIP / 1000 IN (32, 33) AND Gender = 'Male'"
        assert not auditor.would_expose(third).allowed
        with pytest.raises(Refused, match="must not be answered"):
            auditor.record(third)


@pytest.mark.parametrize("turn", range(5))
def test_sums_and_averages_are_refused_exactly_when_the_rank_in_fractions_says_so(
    turn: int, tmp_path: Path
) -> None:
    rng = Random(turn)
    size = rng.randint(3, 7)
    log: list[list[int]] = []
    refused = 0
    with OnlineAuditor(
        written(tmp_path, [1] * size, ["a"] * size), private=PRIVATE, random=rng.randbytes
    ) as auditor:
        for _ in range(14):
            who = rng.sample(range(1, size + 1), rng.randint(1, size))
            row, sql = asked(rng, who, size)
            would = bool(determined([*log, row])) if any(row) else False
            assert auditor.would_expose(sql).allowed is not would, (log, sql)
            refused += would
            if not would:
                auditor.record(sql)
                log.append(row)
    assert refused


def asked(rng: Random, who: list[int], size: int) -> tuple[list[int], str]:
    """A statement about some people, and its coefficients."""
    kind = rng.choice(["SUM(pay)", "AVG(pay)", "SUM(pay * n)", "SUM(pay + 3) / COUNT(*)"])
    weights = [n if kind == "SUM(pay * n)" else 1 for n in who]
    row = [0] * size
    for n, weight in zip(who, weights, strict=True):
        row[n - 1] = weight
    return row, of(kind, *who)


def test_what_was_answered_never_exposes_anybody_to_the_audit_that_comes_after(
    tmp_path: Path,
) -> None:
    rng = Random(7)
    size, path = 9, written(tmp_path, [5, 1, 4, 4, 2, 8, 6, 7, 3], ["a"] * 9)
    with OnlineAuditor(path, private=PRIVATE, random=rng.randbytes) as auditor:
        for _ in range(40):
            who = rng.sample(range(1, size + 1), rng.randint(1, size))
            sql = of(rng.choice(["SUM(pay)", "AVG(pay)", "MIN(bonus)", "MAX(bonus)"]), *who)
            if auditor.would_expose(sql).allowed:
                auditor.record(sql)
        answered = [each.sql for each in auditor.history]
    assert len(answered) > 7
    with Table.open(path, private=PRIVATE) as table:
        assert not Audit.of(answered, table).exposed


def test_the_cells_of_a_statement_are_decided_together(auditor: OnlineAuditor) -> None:
    """The withheld cell of one follows from the total and all the others, and from no fewer."""
    auditor.record("SELECT SUM(pay) FROM staff")
    for team in "ab":
        assert auditor.would_expose(f"SELECT SUM(pay) FROM staff WHERE team = '{team}'").allowed
    cells = "SELECT team, SUM(pay) FROM staff GROUP BY team HAVING COUNT(*) >= 3"
    assert not auditor.would_expose(cells).allowed
    assert not auditor.would_expose("SELECT team, SUM(pay) FROM staff GROUP BY team").allowed


def test_cells_that_are_answered_together_are_all_remembered(auditor: OnlineAuditor) -> None:
    auditor.record("SELECT team, AVG(pay) FROM staff GROUP BY team HAVING COUNT(*) >= 3")
    assert not auditor.would_expose("SELECT SUM(pay) FROM staff").allowed
    assert not auditor.would_expose(of("SUM(pay)", 1, 2, 3)).allowed
    assert auditor.would_expose(of("SUM(pay)", 1, 2)).allowed


def test_averages_in_one_column_are_weighted_by_their_counts(auditor: OnlineAuditor) -> None:
    """3 AVG of three less 4 AVG of four is one value; the difference of the averages is not."""
    filtered = "AVG(pay) FILTER (WHERE n <= 3)"
    assert auditor.would_expose(of(f"AVG(pay) - {filtered}", 1, 2, 3, 4)).allowed
    assert not auditor.would_expose(of(f"4 * AVG(pay) - 3 * {filtered}", 1, 2, 3, 4)).allowed


# Extremes -----------------------------------------------------------------------------------------


def test_a_minimum_beside_the_maximum_of_the_same_people_is_refused(
    auditor: OnlineAuditor,
) -> None:
    """Were they equal, everybody's value would follow."""
    auditor.record(of("MAX(pay)", 1, 2, 3))
    assert not auditor.would_expose(of("MIN(pay)", 1, 2, 3)).allowed
    assert not auditor.would_expose(of("MIN(bonus), MAX(bonus)", 4, 5, 6)).allowed
    assert auditor.would_expose(of("MIN(bonus)", 4, 5, 6)).allowed


def test_linked_cells_are_decided_together(auditor: OnlineAuditor) -> None:
    """Each half's maximum can be below the whole's, and not both."""
    auditor.record(of("MAX(pay)", 1, 2, 3, 4))
    halves = "SELECT n <= 2, MAX(pay) FROM staff WHERE n <= 4 GROUP BY n <= 2"
    assert auditor.would_expose(halves).allowed
    thirds = "SELECT n <= 2, MAX(pay) FROM staff WHERE n <= 3 OR n = 5 GROUP BY n <= 2"
    assert not auditor.would_expose(thirds).allowed


# One family for each component --------------------------------------------------------------------


@pytest.mark.theorem("002: Beyond linear queries (one family for linked records)")
@pytest.mark.parametrize("order", [("SUM(pay)", "MAX(pay)"), ("MAX(pay)", "SUM(pay)")])
def test_a_sum_and_a_maximum_of_the_same_pair_are_never_both_answered(
    order: tuple[str, str], auditor: OnlineAuditor
) -> None:
    """14 and 7 say that both are 7."""
    first, second = order
    auditor.record(of(first, 1, 2))
    assert auditor.would_expose(of(second, 1, 2)).reason == MIXED
    assert auditor.would_expose(of(second, 2, 3, 4, 5)).reason == MIXED
    assert auditor.would_expose(of(second, 3, 4)).allowed
    assert auditor.would_expose(of(second.replace("pay", "bonus"), 1, 2)).allowed


def test_a_question_that_links_both_families_is_refused(auditor: OnlineAuditor) -> None:
    auditor.record(of("SUM(pay)", 1, 2))
    auditor.record(of("MAX(pay)", 3, 4))
    auditor.record(of("SUM(pay)", 2, 5, 6))
    assert auditor.would_expose(of("SUM(pay)", 6, 4)).reason == MIXED
    assert auditor.would_expose(of("MAX(pay)", 4, 6)).reason == MIXED
    assert auditor.would_expose(of("SUM(pay), MAX(bonus)", 7, 8)).reason == MIXED
    assert auditor.would_expose(of("MAX(pay)", 4, 7)).allowed is False  # 4 alone may be below 3
    assert auditor.would_expose(of("MAX(pay)", 3, 4, 7, 8)).allowed


# From one auditor to the next, and tables that change ---------------------------------------------


def test_another_auditor_goes_on_from_what_was_answered(
    auditor: OnlineAuditor, tmp_path: Path
) -> None:
    for sql in EVERYTHING:
        if auditor.would_expose(sql).allowed:
            auditor.record(sql)
    with OnlineAuditor(
        tmp_path / "staff.csv", private=PRIVATE, history=auditor.history
    ) as next_one:
        assert next_one.history == auditor.history
        for sql in EVERYTHING:
            assert next_one.would_expose(sql) == auditor.would_expose(sql)


def test_a_history_shows_no_value_when_it_is_printed(auditor: OnlineAuditor) -> None:
    auditor.record(of("MAX(pay)", 3, 4))
    assert repr(auditor.history) == f"({Recorded(of('MAX(pay)', 3, 4))!r},)"
    assert auditor.history[0].answers == (Fraction(9),)


def test_an_answer_that_contradicts_the_past_ends_the_audit(auditor: OnlineAuditor) -> None:
    auditor.record(of("MAX(pay)", 1, 2, 3), [Fraction(7)])
    with pytest.raises(Refused, match="the table has changed"):
        auditor.record(of("MAX(pay)", 1, 2, 3), [Fraction(8)])
    assert len(auditor.history) == 1


def test_as_many_answers_are_needed_as_are_shown(auditor: OnlineAuditor) -> None:
    with pytest.raises(ValueError, match="need the 1 minima and maxima"):
        auditor.record(of("MAX(pay)", 1, 2, 3), [])


def test_records_that_come_or_go_end_the_audit(tmp_path: Path) -> None:
    with (
        Table.open(written(tmp_path), private=PRIVATE) as table,
        Table.open(written(tmp_path, [*PAY, 1], [*TEAMS, "c"]), private=["pay"]) as later,
    ):
        auditor = OnlineAuditor(table)
        object.__setattr__(auditor._snapshot, "source", later.source)
        with pytest.raises(Misconfigured, match="one snapshot"):
            auditor.would_expose(of("SUM(pay)", 1, 2))
