"""One behavioural contract for every form of the ledger: in memory, SQLite, PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import BudgetExhausted, LedgerDamaged, Misconfigured, Refused
from casemate.privacy import Concentrated, Cost, Pure, epsilon_of, rho_of
from casemate.privacy.cost import Unbounded
from casemate.privacy.ledger import IN_MEMORY, Head, Ledger, Terms, answer_once, open_ledger
from casemate.privacy.ledger.entry import RowKind
from casemate.privacy.ledger.store import LedgerInMemory

MILLIONTH = Fraction(1, 10**6)
TENTH = Pure(Fraction(1, 10))
FACTS: dict[str, Any] = {
    "dataset": "hospital",
    "policy": "a1b2",
    "neighbours": "add-remove",
    "protects": "person",
    "epsilon": Fraction(1),
    "delta": Fraction(0),
}
OPTIONS = ("quotas", "allow_unbounded")

Opener = Callable[..., Ledger]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same ledger again and again, with other facts where they are given."""
    kept = LedgerInMemory()
    where: str | Path = IN_MEMORY if request.param == "memory" else tmp_path / "hospital.ledger"
    if request.param == "postgres":
        where = request.getfixturevalue("postgres")

    with ExitStack() as stack:

        def open_again(**changes: Any) -> Ledger:
            facts = FACTS | changes
            if where != IN_MEMORY:
                return stack.enter_context(open_ledger(where, **facts))
            options = {name: facts.pop(name) for name in OPTIONS if name in facts}
            return stack.enter_context(Ledger(kept, Terms.of(**facts), **options))

        yield open_again


def charges(ledger: Ledger) -> list[str]:
    return [entry.key for entry in ledger.history() if entry.kind == RowKind.CHARGE]


# The sum and its limit ------------------------------------------------------------------------


def test_pure_charges_add_up_exactly(opened: Opener) -> None:
    ledger = opened()
    for number in range(10):
        ledger.charge(TENTH, key=f"q{number}", purpose="count")
    assert ledger.spent().amount == 1
    assert ledger.remaining() == 0


@pytest.mark.parametrize("parts", [3, 7, 17])
def test_a_budget_can_be_cut_into_equal_parts_and_spent_to_the_last(
    opened: Opener, parts: int
) -> None:
    ledger = opened(delta=MILLIONTH)
    part = Concentrated(ledger.remaining() / parts)
    for number in range(parts):
        ledger.charge(part, key=f"q{number}", purpose="part")
    assert ledger.remaining() == 0
    with pytest.raises(BudgetExhausted):
        ledger.charge(Concentrated(Fraction(1, 10**30)), key="more", purpose="a crumb too much")


def test_a_pure_cost_takes_half_its_square_of_rho(opened: Opener) -> None:
    ledger = opened(delta=MILLIONTH)
    before = ledger.remaining()
    assert before == rho_of(Fraction(1), MILLIONTH)
    ledger.charge(TENTH, key="q", purpose="count")
    assert before - ledger.remaining() == Fraction(1, 200)


def test_a_charge_past_the_budget_is_refused_alone_and_says_what_is_left(opened: Opener) -> None:
    ledger = opened()
    ledger.charge(Pure(Fraction(7, 10)), key="q1", purpose="sum")
    with pytest.raises(BudgetExhausted, match=r"needs 0\.4 of epsilon and 0\.3 is left") as refusal:
        ledger.charge(Pure(Fraction(4, 10)), key="q2", purpose="sum")
    assert (refusal.value.asked, refusal.value.left) == (Fraction(4, 10), Fraction(3, 10))
    ledger.charge(Pure(Fraction(3, 10)), key="q3", purpose="sum")
    assert charges(ledger) == ["q1", "q3"]


def test_a_zcdp_cost_is_refused_by_a_budget_without_delta(opened: Opener) -> None:
    ledger = opened()
    with pytest.raises(Refused, match=r"delta = 0; 1 of epsilon is left"):
        ledger.charge(Concentrated(Fraction(1, 100)), key="q", purpose="gaussian")
    assert charges(ledger) == []


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


def test_threads_never_overspend_and_leave_nothing_unspent(opened: Opener) -> None:
    ledger, granted = opened(), list[str]()

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


def run_together(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(name,)) for name in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Without noise --------------------------------------------------------------------------------

EXACT: Cost = Unbounded("an exact count")


def test_an_answer_without_noise_is_refused_unless_allowed(opened: Opener) -> None:
    ledger = opened()
    with pytest.raises(Refused, match=r"\(an exact count\) .* infinite for ever; 1 of epsilon"):
        ledger.charge(EXACT, key="q", purpose="count")
    assert not ledger.spent().infinite


def test_an_answer_without_noise_makes_the_total_infinite_for_ever(opened: Opener) -> None:
    lenient = opened(allow_unbounded=True)
    lenient.charge(TENTH, key="q1", purpose="count")
    lenient.charge(EXACT, key="q2", purpose="count")
    lenient.charge(TENTH, key="q3", purpose="count")
    lenient.charge(EXACT, key="q4", purpose="count")
    for ledger in (lenient, opened(allow_unbounded=True)):
        assert ledger.spent().infinite_since == 2
        assert ledger.spent().amount == Fraction(1, 5)
        assert ledger.statement().startswith("no finite guarantee: row 2 of the ledger")
    lenient.verify()


def test_an_infinite_total_refuses_every_later_charge_and_still_repeats_old_answers(
    opened: Opener,
) -> None:
    lenient = opened(allow_unbounded=True)
    answer_once(lenient, EXACT, "q1", "count", lambda: b"42")
    strict = opened()
    assert strict.remaining() == 0
    with pytest.raises(Refused, match="row 1 of the ledger left without noise"):
        strict.charge(TENTH, key="q2", purpose="count")
    assert answer_once(strict, EXACT, "q1", "count", lambda: b"43") == b"42"


# Keys and outputs -----------------------------------------------------------------------------


def test_the_same_key_gives_the_stored_receipt_and_charges_nothing(opened: Opener) -> None:
    ledger = opened()
    first = ledger.charge(TENTH, key="q", purpose="count", principal="ann")
    assert ledger.charge(TENTH, key="q", purpose="again", principal="bob") == first
    assert opened().charge(TENTH, key="q", purpose="count") == first
    assert ledger.spent().amount == Fraction(1, 10)


def test_what_was_charged_through_one_ledger_leaves_out_others_and_what_was_found_stored(
    opened: Opener,
) -> None:
    ledger, other = opened(), opened()
    ledger.charge(TENTH, key="q", purpose="count")
    other.charge(TENTH, key="r", purpose="count")
    other.charge(TENTH, key="q", purpose="count")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ledger.charge, TENTH, key="s", purpose="count").result()
    assert ledger.charged == other.charged == Fraction(1, 10)
    assert ledger.spent().amount == Fraction(3, 10), "the twin: a difference would count them all"


def test_the_same_key_with_another_cost_is_refused(opened: Opener) -> None:
    ledger = opened()
    ledger.charge(TENTH, key="q", purpose="count")
    for other in (Pure(Fraction(1, 5)), Pure(Fraction(1, 20)), Concentrated(Fraction(1, 10))):
        with pytest.raises(Refused, match="'q' was charged with another cost"):
            ledger.charge(other, key="q", purpose="count")
    assert ledger.spent().amount == Fraction(1, 10)


def test_a_retry_returns_the_stored_output_even_when_the_budget_is_gone(opened: Opener) -> None:
    ledger = opened()
    answer = answer_once(ledger, Pure(Fraction(1)), "q", "count", lambda: b"17")
    assert ledger.remaining() == 0
    assert answer_once(opened(), Pure(Fraction(1)), "q", "count", lambda: b"18") == answer
    assert ledger.charge(Pure(Fraction(1)), key="q", purpose="count").output == b"17"


def test_an_output_is_written_once(opened: Opener) -> None:
    ledger = opened()
    ledger.charge(TENTH, key="q", purpose="count")
    assert ledger.outcome("q") is None
    assert ledger.record_output("q", b"\x00first") == b"\x00first"
    assert ledger.record_output("q", b"second") == b"\x00first"
    assert opened().outcome("q") == b"\x00first"


def test_an_empty_output_is_an_output(opened: Opener) -> None:
    ledger = opened()
    assert answer_once(ledger, TENTH, "q", "count", lambda: b"") == b""
    assert answer_once(ledger, TENTH, "q", "count", lambda: b"another draw") == b""


def test_no_output_leaves_without_a_charge(opened: Opener) -> None:
    ledger = opened()
    with pytest.raises(Refused, match="nothing was charged under the key 'q'"):
        ledger.record_output("q", b"free")
    assert ledger.outcome("q") is None


def test_a_charge_without_an_output_still_owes_one_draw(opened: Opener) -> None:
    """The process died between the charge and the output: nothing left, so it may draw."""
    opened().charge(TENTH, key="q", purpose="count")
    survivor = opened()
    assert answer_once(survivor, TENTH, "q", "count", lambda: b"5") == b"5"
    assert survivor.spent().amount == Fraction(1, 10)


def test_a_draw_that_fails_keeps_its_charge_and_may_be_repeated(opened: Opener) -> None:
    ledger = opened()

    def interrupted() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_once(ledger, TENTH, "q", "count", interrupted)
    assert ledger.spent().amount == Fraction(1, 10)
    assert answer_once(ledger, TENTH, "q", "count", lambda: b"5") == b"5"


def test_nothing_is_drawn_before_the_charge_is_granted(opened: Opener) -> None:
    ledger = opened()

    def draw() -> bytes:
        pytest.fail("drawn without a charge")

    with pytest.raises(BudgetExhausted):
        answer_once(ledger, Pure(Fraction(2)), "q", "count", draw)


def test_callers_with_one_key_all_leave_with_one_output(opened: Opener) -> None:
    ledgers, left, drawn = [opened(), opened()], list[bytes](), threading.Barrier(8)

    def ask(name: int) -> None:
        def draw() -> bytes:
            drawn.wait()  # everybody has drawn before anybody stores
            return str(name).encode()

        left.append(answer_once(ledgers[name % 2], TENTH, "q", "count", draw))

    run_together(ask, 8)
    assert len(left) == 8
    assert set(left) == {ledgers[0].outcome("q")}
    assert ledgers[0].spent().amount == Fraction(1, 10)


# Principals -----------------------------------------------------------------------------------


def test_a_quota_limits_one_principal_inside_the_total(opened: Opener) -> None:
    ledger = opened(quotas={"ann": Fraction(1, 5), "bob": Fraction(9, 10)})
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


# Terms ----------------------------------------------------------------------------------------


def test_a_ledger_opened_again_remembers_everything(opened: Opener) -> None:
    first = opened()
    answer_once(first, TENTH, "q", "how many", lambda: b"3", principal="ann")
    rows = list(first.history())
    first.close()
    again = opened()
    assert list(again.history()) == rows
    assert [row.kind for row in rows] == ["terms", "charge", "output"]
    assert (rows[1].cost, rows[1].purpose, rows[1].principal) == (TENTH, "how many", "ann")
    assert again.spent("ann").amount == Fraction(1, 10)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("neighbours", "replace"),
        ("protects", "private-columns"),
        ("dataset", "school"),
        ("delta", MILLIONTH),
    ],
)
def test_one_ledger_never_mixes_two_promises(opened: Opener, name: str, other: object) -> None:
    opened().charge(TENTH, key="q", purpose="count")
    with pytest.raises(Misconfigured, match="do not add up: give the new policy a ledger of its"):
        opened(**{name: other})


@pytest.mark.parametrize("name", ["neighbours", "protects"])
def test_unknown_words_are_misconfigured(opened: Opener, name: str) -> None:
    with pytest.raises(Misconfigured, match=f"{name} must be one of"):
        opened(**{name: "everything"})


def test_a_new_budget_is_a_new_row_and_what_was_spent_stays_spent(opened: Opener) -> None:
    first = opened()
    first.charge(Pure(Fraction(1)), key="q1", purpose="all of it")
    raised = opened(epsilon=Fraction(2), policy="c3d4")
    assert raised.remaining() == 1
    assert raised.terms.policy == "c3d4"
    assert first.remaining() == 1, "the ledger's terms count, whoever amended them"
    assert [row.kind for row in raised.history()] == ["terms", "charge", "terms"]
    opened(epsilon=Fraction(2), policy="c3d4")
    assert len(list(raised.history())) == 3, "the same terms are not written twice"


def test_a_budget_below_what_is_spent_is_misconfigured(opened: Opener) -> None:
    opened().charge(Pure(Fraction(1, 2)), key="q", purpose="count")
    with pytest.raises(Misconfigured, match=r"0\.4 epsilon is less than the 0\.5 already spent"):
        opened(epsilon=Fraction(2, 5))
    assert opened().remaining() == Fraction(1, 2)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("epsilon", Fraction(0)), ("epsilon", 0.1), ("epsilon", Fraction(10**7)), ("delta", 1)],
)
def test_a_budget_that_is_none_is_a_mistake(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match="a budget needs Fractions"):
        open_ledger(IN_MEMORY, **(FACTS | {name: wrong}))


@pytest.mark.parametrize("key", ["", "x" * 501, "nul\0", "half a pair \ud800", 7])
def test_a_key_is_short_plain_text(opened: Opener, key: str) -> None:
    ledger = opened()
    with pytest.raises(ValueError, match="key must be text"):
        ledger.charge(TENTH, key=key, purpose="count")
    with pytest.raises(ValueError, match="key must be text"):
        ledger.record_output(key, b"")


def test_any_other_text_is_kept_as_it_is(opened: Opener) -> None:
    text = "Größe ≥ 5\n\t'; DROP TABLE entries; -- % ? %s {} 🏥"
    ledger = opened()
    ledger.charge(TENTH, key=text, purpose=text, principal=text)
    row = list(opened().history())[1]
    assert (row.key, row.purpose, row.principal) == (text, text, text)


def test_the_statement_says_what_is_guaranteed(opened: Opener) -> None:
    ledger = opened(delta=MILLIONTH)
    ledger.charge(Concentrated(Fraction(1, 100)), key="q", purpose="count")
    epsilon = float(epsilon_of(Fraction(1, 100), MILLIONTH))
    assert ledger.statement() == (
        f"spent epsilon {epsilon:.6g} of 1 at delta 1e-06 (neighbours add-remove, protects person)"
    )


# Checking the past ----------------------------------------------------------------------------


def test_a_receipt_proves_later_that_its_row_is_still_there(opened: Opener) -> None:
    ledger = opened()
    receipts = [ledger.charge(TENTH, key=f"q{n}", purpose="count") for n in range(3)]
    newest = ledger.verify()
    assert newest == receipts[-1].head
    for receipt in receipts:
        assert ledger.verify(expected_head=receipt.head) == newest


def test_a_receipt_of_another_ledger_is_noticed(opened: Opener) -> None:
    ledger = opened()
    ledger.charge(TENTH, key="q", purpose="count")
    with pytest.raises(LedgerDamaged, match="row 1 of the ledger is damaged: it is not the row"):
        ledger.verify(expected_head=Head(1, "00" * 32))
    with pytest.raises(LedgerDamaged, match="row 2 of the ledger is damaged: it is missing"):
        ledger.verify(expected_head=Head(7, "00" * 32))


def test_a_history_longer_than_a_page_is_read_whole() -> None:
    ledger = open_ledger(IN_MEMORY, **FACTS)
    for number in range(2500):
        ledger.charge(Pure(Fraction(1, 2500)), key=str(number), purpose="")
    assert charges(ledger) == [str(number) for number in range(2500)]
    assert ledger.verify().number == 2500
