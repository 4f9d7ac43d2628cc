"""A changed, missing, doubled or reordered row is found and named; an untouched chain passes."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import LedgerDamaged
from casemate.privacy import Concentrated, Pure
from casemate.privacy.cost import Unbounded
from casemate.privacy.ledger import Head, Ledger, Terms, answer_once
from casemate.privacy.ledger.entry import (
    FORM,
    START,
    LedgerEntry,
    Total,
    Walk,
    cost_from_text,
    cost_to_text,
)
from casemate.privacy.ledger.store import LedgerInMemory


def make(delta: Fraction = Fraction(1, 10**6)) -> tuple[list[LedgerEntry], LedgerInMemory]:
    """Ten rows of every kind, and the store they came from."""
    store = LedgerInMemory()
    terms = Terms.of(
        dataset="hospital",
        policy="a1b2",
        neighbours="replace",
        protects="person",
        epsilon=Fraction(1),
        delta=delta,
    )
    ledger = Ledger(store, terms, allow_unbounded=True)
    answer_once(ledger, Pure(Fraction(1, 10)), "q1", "count", lambda: b"7", principal="ann")
    answer_once(ledger, Concentrated(Fraction(1, 1000)), "q2", "sum", lambda: b"9")
    ledger.charge(Unbounded("exact"), key="q3", purpose="count", principal="ann")
    ledger.charge(Pure(Fraction(0)), key="q4", purpose="free")
    for number in range(3):
        ledger.charge(Concentrated(Fraction(1, 3000)), key=f"r{number}", purpose="part")
    return list(ledger.history()), store


ROWS, STORE = make()


def walk(rows: list[LedgerEntry], *expected: Head) -> Head:
    steps = Walk(expected)
    for row in rows:
        steps.add(row)
    return steps.finish(STORE.book.state)


def altered(value: Any) -> Any:
    match value:
        case int():
            return value + 1
        case bytes():
            return value[:-1] + bytes([(value[-1] if value else 0) ^ 1])
        case _:
            return value + "0"


def rechained(rows: list[LedgerEntry], start: int) -> list[LedgerEntry]:
    """The same rows with new hashes, as somebody makes them who can rewrite the store."""
    previous, result = rows[start - 1].hash if start else START, rows[:start]
    for row in rows[start:]:
        result.append(row.with_hash(previous))
        previous = result[-1].hash
    return result


def test_an_untouched_chain_passes() -> None:
    assert walk(ROWS) == ROWS[-1].head
    assert walk(ROWS, ROWS[0].head, ROWS[4].head) == ROWS[-1].head


@given(st.integers(0, len(ROWS) - 1), st.sampled_from(FORM.names))
def test_any_changed_field_of_any_row_is_found_and_its_row_named(place: int, name: str) -> None:
    row = ROWS[place]
    changed = replace(row, **{name: altered(getattr(row, name))})
    with pytest.raises(LedgerDamaged, match=f"^row {place} of the ledger is damaged"):
        walk([*ROWS[:place], changed, *ROWS[place + 1 :]])


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ([0, 1, 2, 4, 5, 6, 7, 8, 9], "row 3 of the ledger is damaged: it is missing"),
        ([0, 2, 1, 3, 4, 5, 6, 7, 8, 9], "row 1 of the ledger is damaged: it is missing"),
        ([0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9], "row 3 of the ledger is damaged: it is missing"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "row 7 .* head does not follow from it"),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], "row 0 of the ledger is damaged: it is missing"),
    ],
)
def test_rows_that_are_missing_moved_doubled_or_cut_off_are_found_and_named(
    order: list[int], found: str
) -> None:
    with pytest.raises(LedgerDamaged, match=found):
        walk([ROWS[place] for place in order])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cost_text", "zcdp 1/9000"),
        ("total_text", "0"),
        ("principal_total_text", "0"),
        ("units", 0),
        ("cost_text", "zcdp 1/0"),
        ("cost_text", "gratis"),
        ("kind", "gift"),
    ],
)
def test_a_row_with_new_hashes_is_still_found_when_its_totals_do_not_follow(
    name: str, value: object
) -> None:
    rows = [*ROWS[:3], replace(ROWS[3], **{name: value}), *ROWS[4:]]  # type: ignore[arg-type]  # any field
    with pytest.raises(LedgerDamaged, match=r"^row 3 of the ledger is damaged"):
        walk(rechained(rows, 3))


def test_a_ledger_that_spent_more_than_its_budget_is_damaged() -> None:
    poorer = replace(Terms.from_text(ROWS[0].purpose), budget=Fraction(1, 10**9)).to_text()
    with pytest.raises(LedgerDamaged, match=r"^row 1 of the ledger is damaged: its totals"):
        walk(rechained([replace(ROWS[0], purpose=poorer), *ROWS[1:]], 0))


def test_a_consistent_forgery_is_found_only_by_a_receipt_kept_elsewhere() -> None:
    """The limit that the ledger's docstring states."""
    receipt = ROWS[4].head
    forged = rechained([*ROWS[:4], replace(ROWS[4], output=b"forged"), *ROWS[5:]], 4)
    steps = Walk()
    for row in forged:
        steps.add(row)
    assert steps.finish(steps.state) == forged[-1].head
    with pytest.raises(LedgerDamaged, match=r"row 4 .* not the row that an earlier receipt"):
        walk(forged, receipt)


@given(st.fractions(0), st.none() | st.integers(0))
def test_costs_and_totals_survive_their_text(amount: Fraction, since: int | None) -> None:
    for cost in (Pure(amount), Concentrated(amount), Unbounded(f"why {amount} not")):
        assert cost_from_text(cost_to_text(cost)) == cost
    assert Total.from_text(Total(amount, since).to_text()) == Total(amount, since)


def test_no_two_different_rows_share_their_bytes() -> None:
    """Fields carry their lengths, so text cannot move from one field into the next."""
    one, two = replace(ROWS[1], key="ab", principal="c"), replace(ROWS[1], key="a", principal="bc")
    assert FORM.digest(one, START) != FORM.digest(two, START)
