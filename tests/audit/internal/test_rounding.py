"""Rounded answers are intervals, and sums of whole numbers are whole."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.every_world import Shower, exposed, possible_tables, true_table
from audit.small_world import opened, random_world
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit import Audit, AuditOptions
from casemate.audit.result import Audited, Proof, Verdict
from casemate.exact import OrderQuestion
from casemate.published import Knowledge, ShownForm, whole_answer
from casemate.published.shown import half_unit, span
from casemate.query.parse import parse_statement

SUMS = (
    ('SELECT SUM("Blood sugar") FROM t', "32.1"),
    ("SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Female'", "15.5"),
    ("SELECT SUM(\"Blood sugar\") FROM t WHERE ZIP IN (32453, 33745) AND Gender = 'Male'", "11.4"),
)
ROUNDING = AuditOptions(rounding=True)


def write_log(path: Path, lines: Iterable[tuple[str, str]]) -> Path:
    quoted = ('"{}",{}\n'.format(sql.replace('"', '""'), answer) for sql, answer in lines)
    path.write_text("sql,answer\n" + "".join(quoted))
    return path


def audit(folder: Path, lines: Iterable[tuple[str, str]], **options: bool) -> Audited:
    log = write_log(folder / "log.csv", lines)
    return Audit.of(log, "hospital", options=AuditOptions(**options))  # type: ignore[arg-type]  # only flags


@given(st.decimals(-999, 999, places=3), st.integers(0, 3))
def test_what_is_printed_with_some_digits_is_within_half_a_unit(
    value: Decimal, places: int
) -> None:
    printed = round(value, places)
    found = span(ShownForm(()), Fraction(printed), half_unit(printed))
    assert found.low <= Fraction(value) <= found.high
    assert found.high - found.low == Fraction(1, 10**places)


def test_printing_loses_nothing_of_what_was_rounded_to_fewer_digits() -> None:
    tenth = ShownForm((), half_unit=Fraction(1, 20))
    assert span(tenth, Fraction("12.3"), half_unit(Decimal("12.30"))).high == Fraction("12.35")
    assert span(tenth, Fraction(12), half_unit(Decimal("12"))).high == Fraction("12.55")
    assert span(ShownForm((), cut=True), Fraction(12), half_unit(Decimal("12"))).low == 12


@pytest.mark.theorem("002: Solving with constraints (rounded answers)")
def test_a_value_that_follows_but_for_rounding_carries_its_margin(tmp_path: Path) -> None:
    """Three answers of one decimal: 5.2, give or take three times half a tenth."""
    assert [each.record for each in audit(tmp_path, SUMS).exposed] == [2]
    found = audit(tmp_path, SUMS, rounding=True)
    assert (found.verdict, found.exposed, found.consistent) == (Verdict.NONE_EXPOSED, (), True)
    (blurred,) = found.exposed_if_exact
    assert (blurred.record, blurred.value, blurred.margin) == (2, Fraction("5.2"), Fraction("0.15"))
    assert blurred.certificate is not None and blurred.by == 3
    terms = blurred.certificate.terms
    assert [(term.place.query, term.coefficient) for term in terms] == [(1, 1), (2, -1), (3, -1)]
    (left,) = (each for each in found.bounds if each.record == 2)
    assert (left.low, left.high) == (Fraction("5.05"), Fraction("5.35"))


def test_the_margin_is_the_range_where_nothing_else_is_known(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,pay\n1,5.25\n2,7.5\n")
    lines = [("SELECT SUM(pay) FROM t", "12.8"), ("SELECT SUM(pay) FROM t WHERE id = 2", "7.5")]
    log = write_log(tmp_path / "log.csv", lines)
    found = Audit.of(log, tmp_path / "t.csv", private="pay", options=ROUNDING)
    (first, second) = found.exposed_if_exact
    assert (first.value, first.margin) == (Fraction("5.3"), Fraction("0.1"))
    ranges = {each.record: (each.low, each.high) for each in found.bounds}
    assert ranges[1] == (Fraction("5.2"), Fraction("5.4"))
    assert second.margin == Fraction("0.05")


def test_bounds_that_pin_a_rounded_value_down_expose_it(tmp_path: Path) -> None:
    """A total of 40 printed as 40.0, when nobody can be above 10 and three are at most 10.05."""
    lines = [("SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Male'", "30.05")]
    log = write_log(tmp_path / "log.csv", lines)
    found = Audit.of(log, "hospital", options=ROUNDING)
    assert found.consistent is False
    lines = [("SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Male'", "30.005")]
    found = Audit.of(write_log(log, lines), "hospital", options=AuditOptions(rounding=True))
    assert found.consistent is False
    lines = [("SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Male'", "30.05")]
    wide = Knowledge(Fraction(3), Fraction("10.015"))
    found = Audit.of(write_log(log, lines), "hospital", knowledge=wide, options=ROUNDING)
    assert [(each.record, each.value, each.proof) for each in found.exposed] == [
        (record, Fraction("10.015"), Proof.BOUNDS) for record in (1, 2, 5)
    ]
    assert not found.exposed_if_exact


def test_an_average_of_whole_numbers_gives_their_sum_away(tmp_path: Path) -> None:
    """The average of three ages to one decimal has one whole sum behind it."""
    (tmp_path / "t.csv").write_text("id,age\n1,30\n2,31\n3,33\n4,52\n")
    log = [
        "SELECT ROUND(AVG(age), 1) FROM t WHERE id < 4",
        "SELECT ROUND(AVG(age), 1) FROM t WHERE id < 3",
    ]
    found = Audit.of(log, tmp_path / "t.csv", private="age")
    (exposed,) = found.exposed
    assert (exposed.record, exposed.value, exposed.proof) == (3, 33, Proof.INTEGER)
    assert exposed.certificate is not None
    assert [term.coefficient for term in exposed.certificate.terms] == [3, -2]


def test_whole_numbers_printed_in_tens_are_exposed_as_trying_everything_says(
    seed: int, tmp_path: Path
) -> None:
    """Sums and maxima printed to a multiple of ten, against all tables as near to each of them."""
    rng = Random(f"tens {seed}")
    for _ in range(8):
        world = random_world(rng, nullable=False)
        number = next((secret.name for secret in world.of("INTEGER")), None)
        if number is None:
            continue
        log = [
            f"SELECT {rng.choice(['SUM', 'SUM', 'MAX'])}({number}) FROM people WHERE {where}"
            for where in rng.sample(["TRUE", "sex = 'f'", "age > 1", "age < 3"], 3)
        ]
        unit = rng.choice([0, 1])
        with opened(world, tmp_path) as table:
            shown = [Shower(world, parse_statement(sql, table.policy)) for sql in log]
            answers = [each.of(true_table(world))[0][0] for each in shown]
            if None in answers:
                continue
            told = [Decimal(int(each)).scaleb(-unit).quantize(Decimal(1)).scaleb(unit)
                    for each in answers]  # fmt: skip
            entries = [(sql, str(each)) for sql, each in zip(log, told, strict=True)]
            found = Audit.of(write_log(tmp_path / "log.csv", entries), table, options=ROUNDING)
        near = [
            each
            for each in possible_tables(world)
            if all(
                abs(show.of(each)[0][0] - Fraction(number)) <= half_unit(number)
                for show, number in zip(shown, told, strict=True)
            )
        ]
        assert found.consistent is True and not found.undecided
        expected = {each.record for each in exposed(world, near) if each.column == number}
        assert {each.record for each in found.exposed} == expected


def test_rounded_extremes_of_whole_numbers_are_exact() -> None:
    question = OrderQuestion.of("median", [0, 1], Fraction(7, 2), within=Fraction(1, 20))
    assert whole_answer(question).exact and not question.exact
    between = OrderQuestion.of("max", [0, 1], Fraction(1, 2), within=Fraction(1, 4))
    assert whole_answer(between) is between
