"""What an attack through yes/no answers means, in the words that every form of its report shares.

An exact average of errors is an equation about the secret for whoever knows the seed. Without
`reveal`, errors are therefore rounded: to three digits, and along the curve to two.
"""

import math
import statistics

from casemate.attack.one_bit_result import OneBitFound
from casemate.report.attack_findings import round_up
from casemate.report.page import counted
from casemate.solve.one_bit.laws import Law
from casemate.solve.one_bit.limit_information import (
    bit_information,
    edge_pays_after,
    full_information,
)

DIGITS, DIGITS_ALONG = 3, 2
EXACTLY = 1e-4
"""A price this near to 1 is none."""

KINDS = {
    "median": "thresholds at the median are the best there are",
    "supremum": "with the best thresholds, which are not at the median",
    "none": "with thresholds at the median; at an edge of this noise there is no such limit",
}


def headline(found: OneBitFound) -> str:
    """The result in one clause."""
    errors = found.errors
    return (
        f"after {counted(found.queries, 'yes/no answer')} totals of {found.totals.private} were "
        f"off by {size(errors.error)} on average; one half of everything would be off by "
        f"{size(errors.baseline)}"
    )


def setting(found: OneBitFound) -> str:
    """What was attacked, and by whom."""
    groups = found.totals.groups
    told = {"law": "told its law", "scale": "told its scale only", "nothing": "told nothing of it"}
    return (
        f"{counted(len(groups), 'group')} of {counted(len(groups.codes), 'record')} by public "
        f"columns, {found.weights} weights; noise {found.noise} on every total; learner "
        f"{found.learner}, {told[found.told]}"
    )


def against_the_limit(found: OneBitFound) -> list[str]:
    """How near the learner came to what anybody can do."""
    errors = found.errors
    said = [f"limit {size(errors.limit)}: {KINDS[errors.kind]}"]
    if errors.ratio is None:
        said.append("ratio: none, because the limit is not below a quarter of one half's error")
    else:
        late = "" if found.late_ratio is None else f"; {found.late_ratio:.2f} after the first tenth"
        said.append(f"ratio {errors.ratio:.2f} of error to limit{late}")
    bound = "" if errors.van_trees is None else f"; van Trees' bound {size(errors.van_trees)}"
    said.append(f"root mean square error {size(errors.root_mean_square)}{bound}")
    return said


def certainty(found: OneBitFound, reveal: bool) -> str:
    """How much is known of single groups."""
    every, seen = len(found.totals.groups), len(found.values)
    said = f"{seen} of {counted(every, 'group')} can be told apart by these queries"
    wide = width(found, reveal)
    if wide is None:
        return said
    return (
        f"{said}; half of the {100 * found.confidence:g} % intervals of their means are at most "
        f"{wide:.3g} wide, and {found.inside} hold the true mean"
    )


def width(found: OneBitFound, reveal: bool) -> float | None:
    """The median width of the intervals; rounded up unless values are shown anyway."""
    if not found.values:
        return None
    wide = statistics.median(each.high - each.low for each in found.values)
    return wide if reveal else round_up(wide)


# What to do about it --------------------------------------------------------------------------


def defence(found: OneBitFound) -> list[str]:
    """What the noise gives away by its law, and what a custodian should do."""
    law = found.law
    said = [_edge(law, len(found.totals.groups)), _bit(law)]
    best = bit_information(law)
    if best.kind == "supremum":
        said.append(
            f"the median is not the best threshold for this noise: one {size(abs(best.offset))} "
            f"away from it tells {best.best / best.median:.3g} times as much"
        )
    return said


def _edge(law: Law, groups: int) -> str:
    ends = [f"{end:.4g}" for end in law.edges if math.isfinite(end)]
    where = " and ".join(ends)
    if not ends:
        return (
            "this noise has no edge: no threshold makes errors fall faster than one over the root "
            "of the number of queries"
        )
    if bit_information(law).kind != "none":
        return (
            f"this noise is bounded, by {where}, but its density comes down to nothing there, so "
            f"thresholds at the edge gain nothing"
        )
    after = pays_after(law, groups)
    since = "" if after is None else f", from about {after:,} queries on"
    return (
        f"bounded noise is a gift to the attacker: this one ends abruptly at {where}, and with "
        f"thresholds there errors fall nearly like one over the number of queries instead of one "
        f"over its root{since}; use Gaussian or Laplace noise, never uniform or clipped noise"
    )


def pays_after(law: Law, groups: int) -> int | None:
    """About how many queries before thresholds at an edge are the better ones; None for never."""
    each = edge_pays_after(law)
    return math.ceil(each * groups) if math.isfinite(each) else None


def price(law: Law) -> float | None:
    """How much larger errors are behind yes/no answers than with whole ones; None without end."""
    bit, full = bit_information(law), full_information(law)
    found = math.sqrt(full / bit.best) if bit.kind != "none" else math.inf
    return found if math.isfinite(found) else None


def _bit(law: Law) -> str:
    times = price(law)
    if bit_information(law).kind == "none":
        how = "at the edge it lets errors fall nearly as fast"
    elif times is None:
        how = "only the ends of this noise would tell more in whole answers"
    elif times <= 1 + EXACTLY:
        how = "behind yes/no answers errors are no larger than with whole noisy answers"
    else:
        how = f"behind yes/no answers errors are {times:.3g} times those with whole noisy answers"
    return f"a bit is as good as an answer, so charge it as one: {how}"


# Numbers as they are written ------------------------------------------------------------------


def size(value: float) -> str:
    """An error or a limit, as people read it."""
    return f"{value:,.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def digits(value: float | None, count: int) -> float | None:
    """A number to so many digits."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{count}g}")
