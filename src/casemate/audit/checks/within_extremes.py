"""What published extremes leave of every range: who is in a MAX is at most it, in a MIN at least.

That holds of whoever may have no value too: a range is that of the value, if there is one. Medians
say something of single values only together with who is on which side, and are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from casemate.audit.order.audit import Ordered, OrderLog
from casemate.audit.result import Exposed, RemainingInterval
from casemate.exact import Bound, Exact, OrderQuestion
from casemate.published import People
from casemate.query.language import Scalar

Secret = tuple[Scalar, str]
"""A record and a private column."""


def within_extremes(
    found: Sequence[RemainingInterval],
    ordered: Iterable[Ordered],
    exposed: Iterable[Exposed],
    people: People,
) -> tuple[RemainingInterval, ...]:
    """The intervals within the extremes, and those of numbers that only extremes are about.

    Of an exposed value one number is left.
    """
    known = {(each.record, each.column): each for each in found}
    for part in ordered:
        for secret, span in _spans(part, people).items():
            known[secret] = span.within(known.get(secret) or span.prior(*secret))
    for each in exposed:
        before, value = known.get((each.record, each.column)), each.value
        if before is not None and isinstance(value, Fraction) and not each.total:
            known[each.record, each.column] = replace(before, low=value, high=value)
    return tuple(known.values())


@dataclass
class _Span:
    """What extremes leave of one number, and what was known before."""

    prior_low: Bound
    prior_high: Bound
    low: Bound = None
    high: Bound = None

    def narrow(self, question: OrderQuestion) -> None:
        if question.kind == "max":
            self.high = _most(self.high, Fraction(question.high))
        else:
            self.low = _least(self.low, Fraction(question.low))

    def prior(self, record: Scalar, column: str) -> RemainingInterval:
        ends = self.prior_low, self.prior_high
        return RemainingInterval(record, column, *ends, *ends)

    def within(self, interval: RemainingInterval) -> RemainingInterval:
        low, high = _least(interval.low, self.low), _most(interval.high, self.high)
        return replace(interval, low=low, high=high)


def _spans(part: Ordered, people: People) -> dict[Secret, _Span]:
    """What the extremes of one number say, by whom they are about."""
    places: dict[int, _Span] = {}
    for question in _extremes(part.log):
        for place in question.members.tolist():
            if place not in part.tied:
                ends = part.log.domain.low[place], part.log.domain.high[place]
                places.setdefault(place, _Span(*map(_fraction, ends))).narrow(question)
    return {_secret(part, place, people): span for place, span in sorted(places.items())}


def _secret(part: Ordered, place: int, people: People) -> Secret:
    node = part.log.extras.get(place)
    if node is None:
        return people.record(place), part.column
    return people.record(node.place), node.unknown.column


def _extremes(log: OrderLog) -> Iterator[OrderQuestion]:
    """The extremes that are those of the table: what is not true bounds nobody."""
    for question in log.questions:
        if question.kind in ("min", "max"):
            own = [log.truth[place] for place in question.members.tolist()]
            there = [value for value in own if value is not None]
            true = (max if question.kind == "max" else min)(there, default=None)
            if true is not None and question.low <= true <= question.high:
                yield question


def _fraction(end: Exact | None) -> Bound:
    return None if end is None else Fraction(end)


def _least(one: Bound, other: Bound) -> Bound:
    """The greater of two lower ends."""
    return other if one is None else one if other is None else max(one, other)


def _most(one: Bound, other: Bound) -> Bound:
    """The smaller of two upper ends."""
    return other if one is None else one if other is None else min(one, other)
