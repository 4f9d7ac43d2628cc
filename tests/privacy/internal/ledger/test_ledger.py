"""One behavioural contract for every form of the ledger: in memory, SQLite, PostgreSQL."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy.places import FACTS, TENTH, Books

from casemate.errors import BudgetExhausted, CasemateError, LedgerDamaged, Misconfigured, Refused
from casemate.privacy import Concentrated, Cost, Pure, epsilon_of, rho_of
from casemate.privacy.cost import Unbounded
from casemate.privacy.ledger import IN_MEMORY, Head, Ledger, answer_once, open_ledger
from casemate.privacy.ledger.entry import RowKind

MILLIONTH = Fraction(1, 10**6)
EXACT: Cost = Unbounded("an exact count")


def charges(ledger: Ledger) -> list[str]:
    return [entry.key for entry in ledger.history() if entry.kind == RowKind.CHARGE]


def never() -> bytes:
    pytest.fail("drawn although nothing was to be drawn")


# The sum and its limit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "cost", "parts"),
    [
        (Fraction(0), Pure, 10),
        (MILLIONTH, Concentrated, 3),
        (MILLIONTH, Concentrated, 7),
        (MILLIONTH, Concentrated, 17),
    ],
)
def test_a_budget_can_be_cut_into_equal_parts_and_spent_to_the_last(
    books: Books, delta: Fraction, cost: type[Pure] | type[Concentrated], parts: int
) -> None:
    ledger = books.ledger(delta=delta)
    budget = ledger.remaining()
    assert budget == (rho_of(Fraction(1), delta) if delta else 1)
    for number in range(parts):
        ledger.charge(cost(budget / parts), key=f"q{number}", purpose="part")
    assert ledger.spent().amount == budget and ledger.remaining() == 0
    with pytest.raises(BudgetExhausted):
        ledger.charge(cost(Fraction(1, 10**30)), key="more", purpose="a crumb too much")


def test_a_charge_past_the_budget_is_refused_alone_before_anything_is_drawn(books: Books) -> None:
    ledger = books.ledger()
    ledger.charge(Pure(Fraction(7, 10)), key="q1", purpose="sum")
    with pytest.raises(BudgetExhausted, match=r"needs 0\.4 of epsilon and 0\.3 is left") as refusal:
        answer_once(ledger, Pure(Fraction(4, 10)), "q2", "sum", never)
    assert (refusal.value.asked, refusal.value.left) == (Fraction(4, 10), Fraction(3, 10))
    with pytest.raises(Refused, match=r"delta = 0; 0\.3 of epsilon is left"):
        answer_once(ledger, Concentrated(Fraction(1, 100)), "q3", "gaussian", never)
    ledger.charge(Pure(Fraction(3, 10)), key="q4", purpose="sum")
    assert charges(ledger) == ["q1", "q4"]


def test_a_pure_cost_takes_half_its_square_of_rho_and_the_statement_converts_it(
    books: Books,
) -> None:
    ledger = books.ledger(delta=MILLIONTH)
    before = ledger.remaining()
    ledger.charge(TENTH, key="q", purpose="count")
    assert before - ledger.remaining() == Fraction(1, 200)
    epsilon = float(epsilon_of(Fraction(1, 200), MILLIONTH))
    assert ledger.statement() == (
        f"spent epsilon {epsilon:.6g} of 1 at delta 1e-06 (neighbours add-remove, protects person)"
    )


@given(st.lists(st.fractions(0, Fraction(1, 2), max_denominator=60), max_size=30))
def test_a_charge_is_accepted_exactly_when_the_sum_allows_it(asked: list[Fraction]) -> None:
    ledger, total = open_ledger(IN_MEMORY, **FACTS), Fraction(0)
    for number, epsilon in enumerate(asked):
        try:
            ledger.charge(Pure(epsilon), key=str(number), purpose="")
        except BudgetExhausted:
            assert total + epsilon > 1
        else:
            total += epsilon
    assert ledger.spent().amount == total <= 1
    ledger.verify()


def test_totals_with_huge_denominators_stay_small_and_never_too_low(rng: Random) -> None:
    ledger = open_ledger(IN_MEMORY, **FACTS)
    asked = [Fraction(1, rng.getrandbits(200) | 1 << 200) for _ in range(40)]
    for number, epsilon in enumerate(asked):
        ledger.charge(Pure(epsilon), key=str(number), purpose="")
    excess = ledger.spent().amount - sum(asked)
    assert 0 <= excess < Fraction(40, 2**256)
    assert ledger.spent().amount.denominator.bit_length() <= 512 + 256
    ledger.verify()


def run_together(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(name,)) for name in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_never_overspend_and_leave_nothing_unspent(books: Books) -> None:
    ledger, granted = books.ledger(), list[str]()

    def spend(name: int) -> None:
        for number in range(10):
            try:
                ledger.charge(Pure(Fraction(1, 50)), key=f"{name}.{number}", purpose="race")
            except BudgetExhausted:
                continue
            granted.append(f"{name}.{number}")

    run_together(spend, 8)
    assert len(granted) == 50
    assert sorted(charges(ledger)) == sorted(granted)
    assert ledger.remaining() == 0


def test_a_quota_limits_one_principal_inside_the_total(books: Books) -> None:
    ledger = books.ledger(quotas={"ann": Fraction(1, 5), "bob": Fraction(9, 10)})
    for number in range(2):
        ledger.charge(TENTH, key=f"a{number}", purpose="count", principal="ann")
    with pytest.raises(BudgetExhausted, match=r"the epsilon quota of 'ann' and 0 is left"):
        ledger.charge(TENTH, key="a2", purpose="count", principal="ann")
    assert ledger.remaining("ann") == 0
    assert ledger.remaining("bob") == Fraction(4, 5)
    ledger.charge(Pure(Fraction(4, 5)), key="b", purpose="count", principal="bob")
    with pytest.raises(BudgetExhausted, match="of epsilon and 0 is left"):
        ledger.charge(TENTH, key="b2", purpose="count", principal="bob")
    assert ledger.spent("ann").amount == Fraction(1, 5)
    assert ledger.spent("bob").amount == Fraction(4, 5)
    assert ledger.spent("nobody").amount == 0
    assert ledger.remaining("eve") == ledger.remaining() == 0


# Without noise --------------------------------------------------------------------------------


def test_an_answer_without_noise_makes_the_total_infinite_for_ever(books: Books) -> None:
    """It is refused unless that is allowed; afterwards only old answers are repeated."""
    strict = books.ledger()
    with pytest.raises(Refused, match=r"\(an exact count\) .* infinite for ever; 1 of epsilon"):
        strict.charge(EXACT, key="q", purpose="count")
    assert not strict.spent().infinite
    lenient = books.ledger(allow_unbounded=True)
    lenient.charge(TENTH, key="q1", purpose="count")
    answer_once(lenient, EXACT, "q2", "count", lambda: b"42")
    lenient.charge(TENTH, key="q3", purpose="count")
    lenient.charge(EXACT, key="q4", purpose="count")
    for ledger in (lenient, books.ledger(allow_unbounded=True)):
        assert ledger.spent().infinite_since == 2
        assert ledger.spent().amount == Fraction(1, 5)
        assert ledger.statement().startswith("no finite guarantee: row 2 of the ledger")
    lenient.verify()
    assert strict.remaining() == 0
    with pytest.raises(Refused, match="row 2 of the ledger left without noise"):
        strict.charge(TENTH, key="q5", purpose="count")
    assert answer_once(strict, EXACT, "q2", "count", never) == b"42"


# Keys and outputs -----------------------------------------------------------------------------


def test_a_key_is_charged_once_with_one_cost(books: Books) -> None:
    ledger = books.ledger()
    first = ledger.charge(TENTH, key="q", purpose="count", principal="ann")
    assert ledger.charge(TENTH, key="q", purpose="again", principal="bob") == first
    assert books.ledger().charge(TENTH, key="q", purpose="count") == first
    for other in (Pure(Fraction(1, 5)), Pure(Fraction(1, 20)), Concentrated(Fraction(1, 10))):
        with pytest.raises(Refused, match="'q' was charged with another cost"):
            ledger.charge(other, key="q", purpose="count")
    assert ledger.spent().amount == Fraction(1, 10)


def test_what_was_charged_through_one_ledger_leaves_out_others_and_what_was_found_stored(
    books: Books,
) -> None:
    ledger, other = books.ledger(), books.ledger()
    ledger.charge(TENTH, key="q", purpose="count")
    other.charge(TENTH, key="r", purpose="count")
    other.charge(TENTH, key="q", purpose="count")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ledger.charge, TENTH, key="s", purpose="count").result()
    assert ledger.charged == other.charged == Fraction(1, 10)
    assert ledger.spent().amount == Fraction(3, 10), "the twin: a difference would count them all"


@pytest.mark.parametrize("output", [b"\x00first", b""])
def test_an_output_is_written_once_and_given_even_when_the_budget_is_gone(
    books: Books, output: bytes
) -> None:
    """An empty output is an output, and none leaves without a charge."""
    ledger, all_of_it = books.ledger(), Pure(Fraction(1))
    with pytest.raises(Refused, match="nothing was charged under the key 'q'"):
        ledger.record_output("q", b"free")
    ledger.charge(all_of_it, key="q", purpose="count")
    assert ledger.outcome("q") is None and ledger.remaining() == 0
    assert ledger.record_output("q", output) == output
    assert ledger.record_output("q", b"second") == output
    assert books.ledger().outcome("q") == output
    assert answer_once(books.ledger(), all_of_it, "q", "count", never) == output
    assert ledger.charge(all_of_it, key="q", purpose="count").output == output


def test_a_charge_without_an_output_still_owes_one_draw(books: Books) -> None:
    """The draw failed, or the process died before the output: nothing left, so it may draw."""
    ledger = books.ledger()

    def interrupted() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_once(ledger, TENTH, "q", "count", interrupted)
    assert ledger.spent().amount == Fraction(1, 10)
    survivor = books.ledger()
    assert answer_once(survivor, TENTH, "q", "count", lambda: b"5") == b"5"
    assert survivor.spent().amount == Fraction(1, 10)


def test_callers_with_one_key_all_leave_with_one_output(books: Books) -> None:
    ledgers, left, drawn = [books.ledger(), books.ledger()], list[bytes](), threading.Barrier(8)

    def ask(name: int) -> None:
        def draw() -> bytes:
            drawn.wait()  # everybody has drawn before anybody stores
            return str(name).encode()

        left.append(answer_once(ledgers[name % 2], TENTH, "q", "count", draw))

    run_together(ask, 8)
    assert len(left) == 8
    assert set(left) == {ledgers[0].outcome("q")}
    assert ledgers[0].spent().amount == Fraction(1, 10)


# Terms ----------------------------------------------------------------------------------------


def test_a_ledger_opened_again_remembers_everything_in_any_text(books: Books) -> None:
    text = "Größe ≥ 5\n\t'; DROP TABLE entries; -- % ? %s {} 🏥"
    first = books.ledger()
    answer_once(first, TENTH, text, text, lambda: b"3", principal=text)
    rows = list(first.history())
    first.close()
    again = books.ledger()
    assert list(again.history()) == rows
    assert [row.kind for row in rows] == ["terms", "charge", "output"]
    row = rows[1]
    assert (row.cost, row.key, row.purpose, row.principal) == (TENTH, text, text, text)
    assert again.spent(text).amount == Fraction(1, 10)


def test_a_new_budget_is_a_new_row_and_what_was_spent_stays_spent(books: Books) -> None:
    first = books.ledger()
    first.charge(Pure(Fraction(1)), key="q1", purpose="all of it")
    raised = books.ledger(epsilon=Fraction(2), policy="c3d4")
    assert raised.remaining() == 1
    assert raised.terms.policy == "c3d4"
    assert first.remaining() == 1, "the ledger's terms count, whoever amended them"
    assert [row.kind for row in raised.history()] == ["terms", "charge", "terms"]
    books.ledger(epsilon=Fraction(2), policy="c3d4")
    assert len(list(raised.history())) == 3, "the same terms are not written twice"


A_LEDGER_OF_ITS_OWN = "do not add up: give the new policy a ledger of its"


@pytest.mark.parametrize(
    ("error", "sentence", "changes"),
    [
        (Misconfigured, A_LEDGER_OF_ITS_OWN, {"neighbours": "replace"}),
        (Misconfigured, A_LEDGER_OF_ITS_OWN, {"protects": "private-columns"}),
        (Misconfigured, A_LEDGER_OF_ITS_OWN, {"dataset": "school"}),
        (Misconfigured, A_LEDGER_OF_ITS_OWN, {"delta": MILLIONTH}),
        (Misconfigured, "neighbours must be one of", {"neighbours": "everything"}),
        (Misconfigured, "protects must be one of", {"protects": "everything"}),
        (Misconfigured, r"0\.4 epsilon is less than the 0\.5 already", {"epsilon": Fraction(2, 5)}),
        (ValueError, "a budget needs Fractions", {"epsilon": Fraction(0)}),
        (ValueError, "a budget needs Fractions", {"epsilon": 0.1}),
        (ValueError, "a budget needs Fractions", {"epsilon": Fraction(10**7)}),
        (ValueError, "a budget needs Fractions", {"delta": 1}),
    ],
)
def test_one_ledger_never_mixes_two_promises_nor_takes_terms_that_are_none(
    books: Books, error: type[CasemateError | ValueError], sentence: str, changes: dict[str, Any]
) -> None:
    books.ledger().charge(Pure(Fraction(1, 2)), key="q", purpose="count")
    with pytest.raises(error, match=sentence):
        books.ledger(**changes)
    assert books.ledger().remaining() == Fraction(1, 2)


@pytest.mark.parametrize("key", ["", "x" * 501, "nul\0", "half a pair \ud800", 7])
def test_a_key_is_short_plain_text(books: Books, key: str) -> None:
    ledger = books.ledger()
    with pytest.raises(ValueError, match="key must be text"):
        ledger.charge(TENTH, key=key, purpose="count")
    with pytest.raises(ValueError, match="key must be text"):
        ledger.record_output(key, b"")


# Checking the past ----------------------------------------------------------------------------


def test_a_receipt_proves_later_that_its_row_is_still_there(books: Books) -> None:
    ledger = books.ledger()
    receipts = [ledger.charge(TENTH, key=f"q{n}", purpose="count") for n in range(3)]
    newest = ledger.verify()
    assert newest == receipts[-1].head
    for receipt in receipts:
        assert ledger.verify(expected_head=receipt.head) == newest
    with pytest.raises(LedgerDamaged, match="row 1 of the ledger is damaged: it is not the row"):
        ledger.verify(expected_head=Head(1, "00" * 32))
    with pytest.raises(LedgerDamaged, match="row 4 of the ledger is damaged: it is missing"):
        ledger.verify(expected_head=Head(7, "00" * 32))


def test_a_history_longer_than_a_page_is_read_whole() -> None:
    ledger = open_ledger(IN_MEMORY, **FACTS)
    for number in range(2500):
        ledger.charge(Pure(Fraction(1, 2500)), key=str(number), purpose="")
    assert charges(ledger) == [str(number) for number in range(2500)]
    assert ledger.verify().number == 2500
