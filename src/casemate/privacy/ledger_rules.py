"""What a ledger allows: pure decisions about a cost, a quota, and the terms it is opened with."""

from fractions import Fraction

from casemate.errors import BudgetExhausted, Misconfigured, Refused
from casemate.privacy.cost import Cost, Unbounded, price
from casemate.privacy.ledger_chain import State
from casemate.privacy.ledger_terms import Terms, Total


def permit(cost: Cost, state: State, *, allow_unbounded: bool) -> None:
    """Refuse a cost that the dataset's budget cannot pay."""
    if state.total.infinite and not allow_unbounded:
        raise Refused(
            f"row {state.total.infinite_since} of the ledger left without noise, so the dataset's "
            f"total is infinite and no budget can be kept; 0 of {state.currency} is left"
        )
    if isinstance(cost, Unbounded):
        if allow_unbounded:
            return
        raise Refused(
            f"this would leave without noise ({cost.reason}) and make the dataset's total "
            f"infinite for ever; {_left(state)}: add noise, or open the ledger to allow it"
        )
    asked = price(cost, state.currency)
    if asked is None:
        raise Refused(
            f"a zCDP cost has no finite epsilon at delta = 0, and this budget has delta = 0; "
            f"{_left(state)}: use a pure mechanism, or state a delta in the policy"
        )
    _afford(state.total, asked, state.budget, state.currency.value)


def _left(state: State) -> str:
    return f"{float(state.left):.6g} of {state.currency} is left"


def permit_quota(
    cost: Cost, state: State, own: Total, principal: str, quota: Fraction | None
) -> None:
    """Refuse a cost that the dataset could pay, and that the principal's share of it cannot."""
    asked = None if isinstance(cost, Unbounded) else price(cost, state.currency)
    if asked is not None and quota is not None:
        _afford(own, asked, quota, f"the {state.currency} quota of {principal!r}")


def _afford(total: Total, asked: Fraction, budget: Fraction, unit: str) -> None:
    if total.plus(asked).amount > budget:
        raise BudgetExhausted(asked, max(Fraction(0), budget - total.amount), unit)


def agree(terms: Terms, stored: Terms | None, state: State) -> Terms:
    """The terms in force after a ledger with the `stored` ones is opened with `terms`."""
    if stored is not None:
        _require_same_promise(terms, stored)
        if (terms.policy, terms.epsilon, terms.delta) == (
            stored.policy,
            stored.epsilon,
            stored.delta,
        ):
            return stored
    if terms.budget < state.total.amount:
        raise Misconfigured(
            f"the policy's budget of {float(terms.budget):.6g} {terms.currency} is less than the "
            f"{float(state.total.amount):.6g} already spent; state a budget of at least that"
        )
    return terms


def _require_same_promise(terms: Terms, stored: Terms) -> None:
    """One ledger sums losses of one kind, about one dataset, in one currency."""
    for name in ("dataset", "neighbours", "protects", "currency"):
        asked, kept = getattr(terms, name), getattr(stored, name)
        if asked != kept:
            raise Misconfigured(
                f"this ledger was started with {name} = {str(kept)!r} and the policy now says "
                f"{str(asked)!r}; the two do not add up: give the new policy a ledger of its own"
            )
