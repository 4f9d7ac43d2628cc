"""SQL to one private question and back: exact cells give SQL's answers, bounds hold the truth."""

import re
from dataclasses import replace
from typing import Any

import pytest
from grid.compiled_world import (
    INTEGER,
    POLICY,
    ask,
    cells_of,
    exactly,
    plain,
    truth,
)

from casemate.errors import Unsupported
from casemate.grid import Relation
from casemate.grid.compile import MAX_NUMBERS_PER_AGGREGATE, MAX_RANKED_STEPS
from casemate.table import Column, ColumnType, Policy, Provenance, Table

# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        "COUNT(*)",
        "COUNT(weight), COUNT(*)",
        "SUM(weight), SUM(weight * 2 - 3)",
        "AVG(weight)",
        "MEDIAN(weight), MIN(weight), MAX(weight)",
        "percentile_cont(0.3) WITHIN GROUP (ORDER BY weight)",
        "percentile_disc(0.3) WITHIN GROUP (ORDER BY weight)",
        "MIN(diagnosis), MAX(area)",
        "SUM(CASE WHEN sex = 'f' THEN weight ELSE 0 END)",
        "COUNT(*) FILTER (WHERE member), AVG(weight) FILTER (WHERE NOT member)",
        "COUNT(*) * 2 + 1, SUM(weight) / COUNT(*), SUM(weight) % 7",
        "ROUND(AVG(weight), 1), CASE WHEN COUNT(*) > 20 THEN 'many' ELSE 'few' END",
        "1 AS one, COALESCE(SUM(weight), 0) - COUNT(weight)",
    ],
)
@pytest.mark.parametrize(
    "rest",
    [
        "FROM people",
        "FROM people WHERE age >= 20 AND (sex = 'f' OR weight > 6)",
    ],
)
def test_exact_cells_give_the_answers_of_sql(people: Table, shown: str, rest: str) -> None:
    question = ask(f"SELECT {shown} {rest}")
    (ours,) = plain(question.rows(exactly(question, cells_of(people.source))))
    (theirs,) = truth(f"SELECT {shown} {rest}", people.source)
    assert question.exact
    for mine, true in zip(ours, theirs, strict=True):
        assert mine == (true if isinstance(true, str) else pytest.approx(float(true), rel=1e-12))


def by_key(rows: list[tuple[Any, ...]], keys: int) -> dict[Any, tuple[Any, ...]]:
    return {row[:keys]: row[keys:] for row in rows}


def test_groups_have_the_answers_of_sql_and_every_declared_key_is_there(people: Table) -> None:
    sql = "SELECT area, sex, COUNT(*), AVG(weight) FROM people WHERE weight < 4 GROUP BY area, sex"
    question = ask(sql)
    ours = plain(question.rows(exactly(question, cells_of(people.source))))
    assert [row[:2] for row in ours] == [
        (area, sex) for area in (4, 2, 1, None) for sex in ("m", "f", None)
    ]
    theirs = by_key(truth(sql, people.source), 2)
    for key, found in by_key(ours, 2).items():
        count, mean = theirs.get(key, (0, None))
        assert found == (count, None if mean is None else pytest.approx(float(mean)))


def test_branches_and_grouping_sets_are_parts_of_one_question(people: Table) -> None:
    sql = (
        "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) "
        "UNION ALL SELECT diagnosis, SUM(weight) FROM people GROUP BY diagnosis"
    )
    question = ask(sql)
    ours = plain(question.rows(exactly(question, cells_of(people.source))))
    assert len(ours) == 3 + 1 + 4
    assert len(question.asked.parts) == 3
    assert {row for row in ours if row[1]} == set(truth(sql, people.source))


def test_an_aggregate_that_only_stands_in_having_or_order_by_is_asked_too() -> None:
    plainly = ask("SELECT sex, COUNT(*) FROM people GROUP BY sex").asked
    having = ask("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING SUM(weight) > 3").asked
    order = ask("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY SUM(weight)").asked
    assert len(plainly.parts) == 1 and len(having.parts) == 2
    assert having.text == order.text


@pytest.mark.parametrize(
    ("sql", "cells"),
    [
        ("COUNT(*)", 1),
        ("SUM(weight)", 1),
        ("SUM(age)", 2),
        ("AVG(weight)", 2),
        ("AVG(age)", 3),
        ("AVG(age) / COUNT(age)", 3),
        ("MEDIAN(weight)", 10),
        ("MEDIAN(weight) - MIN(weight)", 10),
        ("COUNT(*) - COUNT(weight), 1", 2),
    ],
)
def test_it_is_known_of_how_many_cells_one_number_is_made(sql: str, cells: int) -> None:
    assert ask(f"SELECT {sql} FROM people").asked.together == cells


def test_the_centred_sum_of_a_mean_moves_by_half_of_the_range() -> None:
    parts = ask("SELECT AVG(weight) FROM people").asked.parts
    assert sorted(part.unit * part.sensitivity(Relation()) for part in parts) == [1, 4.5]


# The same question ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COUNT(*) FROM people WHERE age >= 20 AND sex = 'f'",
         "count ( * )  AS n FROM people  p WHERE 'f' = p.sex AND age > 19"),
        ("COUNT(*) FROM people WHERE age BETWEEN 20 AND 39",
         "COUNT(*) FROM people WHERE age >= 20 AND age <= 39"),
        ("COUNT(*) FROM people WHERE area IN (1, 2)",
         "COUNT(*) FROM people WHERE area = 2 OR area = 1"),
        ("COUNT(*), SUM(weight) FROM people", "SUM(weight), COUNT(1) FROM people"),
        ("sex, area, COUNT(*) FROM people GROUP BY sex, area",
         "area, sex, COUNT(*) FROM people GROUP BY 1, 2"),
        ("SUM(weight) FROM people WHERE sex = 'f'",
         "SUM(CASE WHEN sex = 'f' THEN weight END) FROM people"),
        ("COUNT(*) FROM people WHERE sex = 'f' OR weight > 3",
         "COUNT(*) FROM people WHERE weight > 3 OR (sex = 'f' AND NOT FALSE)"),
        ("sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2 DESC LIMIT 1",
         "COUNT(*), sex FROM people GROUP BY sex"),
        ("COUNT(*) FROM people", "COUNT(*) FROM (SELECT age FROM people) AS q"),
    ],
)  # fmt: skip
def test_equal_questions_have_equal_texts(one: str, other: str) -> None:
    assert ask(f"SELECT {one}").asked.text == ask(f"SELECT {other}").asked.text


@pytest.mark.parametrize(
    "other",
    [
        "COUNT(*) FROM people WHERE age >= 30 AND sex = 'f'",
        "COUNT(*) FROM people WHERE age >= 20 AND sex = 'm'",
        "COUNT(*) FROM people WHERE age >= 20 OR sex = 'f'",
        "COUNT(weight) FROM people WHERE age >= 20 AND sex = 'f'",
        "SUM(weight) FROM people WHERE age >= 20 AND sex = 'f'",
        "SUM(2 * weight) FROM people WHERE age >= 20 AND sex = 'f'",
        "AVG(weight) FROM people WHERE age >= 20 AND sex = 'f'",
        "MEDIAN(weight) FROM people WHERE age >= 20 AND sex = 'f'",
        "COUNT(*) FROM people WHERE age >= 20 AND sex = 'f' GROUP BY member",
    ],
)
def test_different_questions_have_different_texts(other: str) -> None:
    one = ask("SELECT COUNT(*) FROM people WHERE age >= 20 AND sex = 'f'")
    assert one.asked.text != ask(f"SELECT {other}").asked.text


# Notes and refusals -----------------------------------------------------------------------------


SEX_OF_THE_DATA = Column("sex", type=ColumnType.TEXT, values=("m", "f"), provenance=Provenance.DATA)
STAMPED = replace(POLICY, columns=(*POLICY.columns[:3], SEX_OF_THE_DATA, *POLICY.columns[4:]))
WITH_WHO = replace(POLICY, columns=(*POLICY.columns, Column("who", type=INTEGER)), person="who")
SEVERAL = replace(WITH_WHO, rows_per_person=3)


@pytest.mark.parametrize(
    ("sql", "policy", "notes"),
    [
        ("COUNT(*), SUM(weight) FROM people WHERE age < 20", POLICY, []),
        ("MIN(weight), MAX(weight) FROM people", POLICY, ["what is proved is a rank"]),
        ("SUM(age) FROM people", POLICY, ["middles are added up"]),
        ("COUNT(*) FROM people", STAMPED, ["guarantee conditional on the policy.* of sex was"]),
        ("COUNT(*) FROM people", SEVERAL, ["rows that count: at most 3 rows of each who"]),
    ],
)
def test_what_must_be_known_of_an_answer_is_noted(
    sql: str, policy: Policy, notes: list[str]
) -> None:
    found = ask(f"SELECT {sql}", policy)
    for note, said in zip(found.notes, notes, strict=True):
        assert re.search(said, note)
    assert found.exact
    assert found.direct(Relation()).notes == (() if "SUM(age)" in sql else found.notes)


def test_a_limit_that_was_moved_to_a_boundary_is_said() -> None:
    for sql in ("people WHERE age < 18", "people GROUP BY CASE WHEN age < 18 THEN 1 ELSE 2 END"):
        found = ask(f"SELECT COUNT(*) FROM {sql}")
        assert not found.exact and len(found.notes) == 1


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("COUNT(DISTINCT sex) FROM people", "not a sum over cells"),
        ("COUNT(DISTINCT who) FROM people", "not a sum over cells"),
        ("MEDIAN(c) FROM people GROUP BY a, b", f"more than {MAX_NUMBERS_PER_AGGREGATE:,} numbers"),
        ("MEDIAN(fine) FROM people", f"at most {MAX_RANKED_STEPS:,} can be"),
        ("SUM(weight * area) FROM people", "add up one column at a time"),
        ("COUNT(*) FROM people WHERE age > weight", "compare each of them with constants"),
        ("COUNT(*) FROM people GROUP BY age", "known by bins of several values"),
        ("MEDIAN(weight + area) FROM people", "taken of one column"),
        ("MAX(weight % 3 - CASE WHEN weight IS NULL THEN 1 END) FROM people", "always NULL"),
        ("MEDIAN(abs(age - 50)) FROM people", "do not keep their order"),
        ("AVG(CASE WHEN weight > 99 THEN weight / 0 END) FROM people", "always NULL"),
    ],
)
def test_what_is_not_a_question_on_the_grid_is_refused(sql: str, reason: str) -> None:
    wide = [Column(name, type=INTEGER, low=0, high=63) for name in "abc"]
    fine = Column("fine", type=INTEGER, low=0, high=9_999, bins=10_000)
    policy = replace(SEVERAL, columns=(*SEVERAL.columns, *wide, fine))
    with pytest.raises(Unsupported, match=reason):
        ask(f"SELECT {sql}", policy)


def test_distinct_people_of_one_row_each_are_counted() -> None:
    distinct, plainly = (
        ask(f"SELECT COUNT({what}) FROM people WHERE sex = 'f'", WITH_WHO).asked.text
        for what in ("DISTINCT who", "*")
    )
    assert distinct == plainly
