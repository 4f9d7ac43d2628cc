"""What is left of every private number: ranges from propagation and linear programs, proved."""

from fractions import Fraction

from casemate.audit.case import Case
from casemate.audit.result import Interval
from casemate.solve.bounds import Bounds, Proof, bounds


def ranges(case: Case) -> Bounds:
    """What is left of every range; without any bound to start from, nothing is to be had."""
    if any(end is not None for end in (*case.box.low, *case.box.high)):
        return bounds(case.region)
    nothing = (None,) * len(case.box)
    proof: Proof = "propagation"
    return Bounds(nothing, nothing, (proof,) * len(case.box))


def intervals(case: Case, found: Bounds) -> tuple[Interval, ...]:
    """The range of every private number of which something is known."""
    return tuple(
        Interval(
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


def is_tight(interval: Interval, protect: Fraction) -> bool:
    """Whether every possible value is within the share `protect` of the largest of them."""
    if interval.low is None or interval.high is None:
        return False
    widest = max(abs(interval.low), abs(interval.high))
    return interval.low != interval.high and interval.high - interval.low <= protect * widest
