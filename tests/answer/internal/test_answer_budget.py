"""Where a budget stands: words, `casemate.budget/1`, a page with a bar."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from answer.answers import HOSTILE, NOTHING, PURE, STANDING
from answer.parity_policy import write_policy

from casemate import Session
from casemate.answer.budget_report import as_html, as_json, as_text
from casemate.privacy import Cost, Currency, price
from casemate.privacy.cost import Unbounded


def test_a_budget_is_lines_to_read() -> None:
    assert as_text(STANDING).splitlines() == [
        "people.csv: spent epsilon 0.3 of 0.9 at delta 1e-06 (neighbours add-remove, protects "
        "person)",
        "all answers together are about as likely, within a factor of e to the epsilon, but for a "
        "chance of 1e-06, for any two tables that differ in one person being in it or not",
        "",
        "budget     rho 0.02 (epsilon 0.9)",
        "spent      rho 0.0025 (epsilon 0.3), 12.5 %",
        "left       rho 0.0175 (epsilon 0.8)",
        "strategy   warm",
        "questions  1,200 that the gate was asked",
        "surprises  3 found, 22 left to find",
        "",
        "surprises by who asked:",
        "  (unnamed)  1",
        "  alice      2",
    ]


@pytest.mark.parametrize(
    ("neighbours", "protects", "apart"),
    [
        ("add-remove", "person", "one person being in it or not"),
        ("replace", "person", "one person's record being another"),
        ("replace", "private-columns", "the private values of one person"),
    ],
)
def test_the_promise_names_what_it_is_about(neighbours: str, protects: str, apart: str) -> None:
    told = as_text(replace(STANDING, neighbours=neighbours, protects=protects, delta=Fraction(0)))
    assert told.splitlines()[1] == (
        "all answers together are about as likely, within a factor of e to the epsilon, for any "
        f"two tables that differ in {apart}"
    )


def test_nobody_who_found_a_surprise_is_no_list() -> None:
    told = as_text(replace(STANDING, principals={}, notes=("nothing was asked yet",)))
    assert "by who asked" not in told and told.endswith("note: nothing was asked yet")


def test_the_object_has_exactly_these_fields() -> None:
    assert as_json(STANDING) == {
        "schema": "casemate.budget/1",
        "dataset": "people.csv",
        "budget": {"rho": 0.02, "epsilon": 0.9},
        "spent": {"rho": 0.0025, "epsilon": 0.3},
        "remaining": {"rho": 0.0175, "epsilon": 0.8},
        "delta": 1e-6,
        "neighbours": "add-remove",
        "protects": "person",
        "strategy": "warm",
        "questions": 1200,
        "surprises": 3,
        "surprises_left": 22,
        "principals": [
            {"principal": "", "surprises": 1},
            {"principal": "alice", "surprises": 2},
        ],
        "statement": STANDING.statement,
        "tighter_epsilon": None,
        "tighter_note": "",
        "notes": [],
    }


def widths(page: str) -> list[float]:
    """The parts of the bar."""
    (bar,) = ET.fromstring(page).iter("svg")
    return [float(part.attrib["width"]) for part in bar.iter("rect")]


def test_the_bar_is_as_long_as_what_is_spent_in_the_currency_that_adds_up() -> None:
    assert widths(as_html(STANDING)) == [90.0, 630.0]
    pure = replace(STANDING, budget=PURE, spent=PURE, remaining=PURE)
    assert widths(as_html(pure)) == [720.0]
    assert widths(as_html(replace(STANDING, spent=NOTHING))) == [720.0]


def test_the_page_is_escaped_and_begins_with_what_is_spent() -> None:
    hostile = replace(STANDING, dataset=HOSTILE, principals={HOSTILE: 1}, notes=(HOSTILE,))
    page = as_html(hostile)
    assert HOSTILE not in page
    assert str(ET.fromstring(page).findtext("body/main/header/h1")).startswith("Spent epsilon 0.3")


def test_a_tighter_epsilon_is_said_with_its_condition_or_why_it_is_not_known() -> None:
    known = replace(STANDING, tighter_epsilon=0.25, tighter_note="had it been fixed")
    assert "tighter    epsilon 0.25, had it been fixed" in as_text(known).splitlines()
    assert as_json(known)["tighter_epsilon"] == 0.25
    missing = replace(STANDING, tighter_note="install casemate[accounting]")
    assert "tighter    not known: install casemate[accounting]" in as_text(missing).splitlines()
    assert "not known: install casemate[accounting]" in as_html(missing)


@pytest.mark.parametrize(
    ("found", "epsilon", "note"),
    [
        (lambda: 0.125, 0.125, "had every charge been fixed before the first answer"),
        (lambda: math.inf, None, "something left without noise"),
    ],
)
def test_what_was_charged_is_given_to_the_accountant(
    found: Callable[[], float],
    epsilon: float | None,
    note: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    given: list[Cost] = []

    def tighter(costs: list[Cost], delta: Fraction) -> float:
        assert delta == Fraction(1, 10**6)
        given.extend(costs)
        return found()

    monkeypatch.setattr("casemate.answer.dataset.tighter_epsilon", tighter)
    with Session.simulated(write_policy(tmp_path), 1) as session:
        session.query("SELECT a, COUNT(*) FROM t GROUP BY a")
        standing = session.standing(tighter=True)
        assert session.standing().tighter_note == "", "only where somebody asks for it"
    assert (standing.tighter_epsilon, standing.tighter_note) == (epsilon, note)
    rho = sum(price(cost, Currency.RHO) or 0 for cost in given if not isinstance(cost, Unbounded))
    assert rho == standing.spent.rho
