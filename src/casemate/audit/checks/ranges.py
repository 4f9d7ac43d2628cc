"""What is left of every private number: ranges from propagation and linear programs, proved."""

from collections.abc import Sequence
from fractions import Fraction

from casemate.audit.case import Case
from casemate.audit.region.bounds import Bounds, Proof, bounds
from casemate.audit.result import RemainingInterval
from casemate.published import column_values
from casemate.query.records import Unknown


def ranges(case: Case, seconds: float = float("inf")) -> Bounds:
    """What is left of every range; without any bound to start from, nothing is to be had."""
    rounded = case.equations.low != case.equations.high
    if rounded or any(end is not None for end in (*case.box.low, *case.box.high)):
        return bounds(case.region, seconds=seconds)
    nothing = (None,) * len(case.box)
    proof: Proof = "propagation"
    return Bounds(nothing, nothing, (proof,) * len(case.box))


def intervals(case: Case, found: Bounds) -> tuple[RemainingInterval, ...]:
    """The range of every private number of which something is known."""
    return tuple(
        RemainingInterval(
            case.name(column),
            case.secret(column),
            found.low[column],
            found.high[column],
            case.box.low[column],
            case.box.high[column],
        )
        for column in range(case.equations.system.columns)
        if case.is_number(column)
        and (found.low[column] is not None or found.high[column] is not None)
    )


def tight(
    case: Case, found: Sequence[RemainingInterval], protect: Fraction
) -> tuple[RemainingInterval, ...]:
    """The ranges in which every value is within a share of the true one."""
    bounded = [each for each in found if None not in (each.low, each.high)]
    names = {each.column for each in bounded}
    true = {name: column_values(name, case.source) for name in names}
    return tuple(
        each
        for each in bounded
        if is_tight(each, Unknown(each.column).of(true[each.column][each.record]), protect)
    )


def is_tight(interval: RemainingInterval, true: Fraction, protect: Fraction) -> bool:
    """Whether several values are possible, and all of them are near the true one."""
    low, high = interval.low, interval.high
    if low is None or high is None or low == high:
        return False
    return is_near(low, high, true, protect)


def is_near(low: Fraction, high: Fraction, true: Fraction, protect: Fraction) -> bool:
    """Whether nothing from `low` to `high` is further from the true value than its share."""
    return max(high - true, true - low) <= protect * abs(true)
