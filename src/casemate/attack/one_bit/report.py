"""An attack through yes/no answers as text, as the object `casemate.one-bit/1`, and as a page.

An exact average of errors is an equation about the secret for whoever knows the seed. Without
`reveal` no value is written, and errors are rounded: to three digits, and along the curve to two.
The words that every form shares come first.
"""

import math
import statistics
from typing import Any

from casemate.attack.one_bit.attack import GroupValue, Moment, OneBitFound
from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.limit import bit_information, edge_pays_after, full_information
from casemate.attack.words import BEST_SO_FAR, finite, round_up
from casemate.report import (
    Block,
    Drawing,
    Facts,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
)
from casemate.report.plots import Logarithmic, Plot, Tone

SCHEMA = "casemate.one-bit/1"
HIDDEN_DIGITS, HIDDEN_CURVE_DIGITS, REVEALED_DIGITS = 3, 2, 12
"""Digits of errors: without `reveal`, along the curve, and beyond which there is only rounding."""

PRICE_TOLERANCE = 1e-4
"""A price this near to 1 is none."""

KINDS = {
    "median": "thresholds at the median are the best there are",
    "supremum": "with the best thresholds, which are not at the median",
    "none": "with thresholds at the median; at an edge of this noise there is no such limit",
}
SCOPE = (
    "An attack that fails proves nothing: another may succeed, and another stream of queries may "
    "tell more.",
    "The limit is a benchmark for long streams: no learner is better everywhere. While the noise "
    "is small beside what is unknown, nobody reaches it, because a bit is at most one bit.",
    "Means of groups are found. What they say about one person is inference where the group is "
    "large, and disclosure where it is small.",
)


def one_bit_report(found: OneBitFound, *, reveal: bool = False) -> Report:
    """How far the attack came, beside what anybody could do, and what to do about it."""
    clauses = [_setting(found), *_against_the_limit(found)]
    if not found.finished:
        clauses.append(BEST_SO_FAR)
    hidden = "no values are written, and errors and widths are rounded"
    remark = [] if reveal else [Paragraph(hidden, remark=True, where=Where.PAGE)]
    certainty = [Paragraph(_certainty(found, reveal))]
    values = [_values_table(found)] if reveal else []
    curve: list[Block] = [Figure(lambda: _draw_curve(found)), _decades_table(found)]
    return Report(
        "casemate attack one-bit",
        _headline(found),
        lambda: _fields(found, reveal),
        [_facts(found), *map(Paragraph, clauses), *remark],
        [
            Section("error", "What every bit adds", curve, label=""),
            Section("certainty", "How much is known of single groups", certainty, label=""),
            Section("values", "What was found", values, label="means of groups:"),
            Section("defence", "What to do about it", [Listing(defence(found), "")], label=""),
            Section(
                "assumptions", "What was taken for granted", [Listing(SCOPE)], where=Where.PAGE
            ),
        ],
    )


def _facts(found: OneBitFound) -> Facts:
    errors = found.errors
    return Facts(
        [
            ("error", size(errors.error)),
            ("limit", size(errors.limit)),
            ("ratio", "–" if errors.ratio is None else f"{errors.ratio:.2f}"),
            ("one half of everything", size(errors.baseline)),
            ("queries", f"{found.queries:,}"),
            ("CPU seconds", f"{found.seconds:.1f}"),
        ]
    )


def _headline(found: OneBitFound) -> str:
    """The result in one clause."""
    errors = found.errors
    return (
        f"after {count_of(found.queries, 'yes/no answer')} totals of {found.totals.private} were "
        f"off by {size(errors.error)} on average; one half of everything would be off by "
        f"{size(errors.baseline)}"
    )


def _setting(found: OneBitFound) -> str:
    """What was attacked, and by whom."""
    groups = found.totals.groups
    known = {"law": "told its law", "scale": "told its scale only", "nothing": "told nothing of it"}
    return (
        f"{count_of(len(groups), 'group')} of {count_of(len(groups.codes), 'record')} by public "
        f"columns, {found.weights} weights; noise {found.noise} on every total; learner "
        f"{found.learner}, {known[found.told]}"
    )


def _against_the_limit(found: OneBitFound) -> list[str]:
    """How near the learner came to what anybody can do."""
    errors = found.errors
    clauses = [f"limit {size(errors.limit)}: {KINDS[errors.kind]}"]
    if errors.ratio is None:
        clauses.append("ratio: none, because the limit is not below a quarter of one half's error")
    else:
        late = "" if found.late_ratio is None else f"; {found.late_ratio:.2f} after the first tenth"
        clauses.append(f"ratio {errors.ratio:.2f} of error to limit{late}")
    bound = "" if errors.van_trees is None else f"; van Trees' bound {size(errors.van_trees)}"
    clauses.append(f"root mean square error {size(errors.root_mean_square)}{bound}")
    return clauses


def _certainty(found: OneBitFound, reveal: bool) -> str:
    """How much is known of single groups."""
    groups = count_of(len(found.totals.groups), "group")
    identified = f"{len(found.values)} of {groups} can be told apart by these queries"
    median_width = _width(found, reveal)
    if median_width is None:
        return identified
    return (
        f"{identified}; half of the {100 * found.confidence:g} % intervals of their means are at "
        f"most {median_width:.3g} wide, and {found.inside} hold the true mean"
    )


def _width(found: OneBitFound, reveal: bool) -> float | None:
    """The median width of the intervals; rounded up unless values are shown anyway."""
    if not found.values:
        return None
    median_width = statistics.median(each.high - each.low for each in found.values)
    return median_width if reveal else round_up(median_width)


# What to do about it --------------------------------------------------------------------------


def defence(found: OneBitFound) -> list[str]:
    """What the noise gives away by its law, and what a custodian should do."""
    law = found.law
    clauses = [_edge_clause(law, len(found.totals.groups)), _bit_clause(law)]
    best = bit_information(law)
    if best.kind == "supremum":
        clauses.append(
            f"the median is not the best threshold for this noise: one {size(abs(best.offset))} "
            f"away from it tells {best.best / best.median:.3g} times as much"
        )
    return clauses


def _edge_clause(law: Law, groups: int) -> str:
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
    queries_per_group = edge_pays_after(law)
    infinite = not math.isfinite(queries_per_group)
    return None if infinite else math.ceil(queries_per_group * groups)


def price(law: Law) -> float | None:
    """How much larger errors are behind yes/no answers than with whole ones; None without end."""
    bit, full = bit_information(law), full_information(law)
    ratio = math.sqrt(full / bit.best) if bit.kind != "none" else math.inf
    return ratio if math.isfinite(ratio) else None


def _bit_clause(law: Law) -> str:
    times = price(law)
    if bit_information(law).kind == "none":
        how = "at the edge it lets errors fall nearly as fast"
    elif times is None:
        how = "only the ends of this noise would tell more in whole answers"
    elif times <= 1 + PRICE_TOLERANCE:
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


# Tables and the figure -------------------------------------------------------------------------


def _decades_table(found: OneBitFound) -> TableBlock:
    rows = [
        (
            f"{each.queries:,}",
            size(digits(each.error, HIDDEN_CURVE_DIGITS) or 0.0),
            size(each.limit),
        )
        for each in _decades(found)
    ]
    header = ("queries", "error", "limit")
    return TableBlock("The average error so far, and the limit", header, rows, numeric=(0, 1, 2))


def _decades(found: OneBitFound) -> list[Moment]:
    """The points of the curve at powers of ten, and the last one."""
    tens = [each for each in found.curve if str(each.queries).rstrip("0") == "1"]
    return tens if tens[-1:] == [found.curve[-1]] else [*tens, found.curve[-1]]


def _values_table(found: OneBitFound) -> TableBlock:
    rows = [
        (
            each.name,
            *(f"{x:.6g}" for x in (each.value, each.low, each.high)),
            count_of(each.records, "record"),
        )
        for each in found.values
    ]
    caption = f"{count_of(len(rows), 'group')}, and the mean of {found.totals.private} in each"
    header = ("group", "mean", "from", "to", "records")
    line = "{}: mean {} ({} to {}) of {}".format
    return TableBlock(caption, header, rows, line=line, rows_in_text=None)


def _draw_curve(found: OneBitFound) -> Drawing | None:
    """The average error up to each number of queries, beside the limit and one half."""
    errors = [
        (each.queries, digits(each.error, HIDDEN_CURVE_DIGITS) or 0.0) for each in found.curve
    ]
    limits = [(each.queries, each.limit) for each in found.curve]
    heights = [height for _, height in (*errors, *limits) if height > 0]
    if len(errors) < 2 or not heights:
        return None
    baseline = found.errors.baseline or heights[-1]
    low, high = min(*heights, baseline) / 1.5, max(*heights, baseline) * 1.5
    plot = Plot(Logarithmic(1, errors[-1][0]), Logarithmic(low, high), height=340)
    svg = plot.draw(
        "error-curve",
        "Error and limit against queries",
        "; ".join(f"{q:,} queries: error {size(e)}" for q, e in errors) + ".",
        plot.axes("queries", f"average error of totals of {found.totals.private}"),
        plot.curve([(1, baseline), (errors[-1][0], baseline)], Tone.SOFT),
        plot.curve([point for point in limits if point[1] > 0], Tone.OTHER),
        plot.curve([point for point in errors if point[1] > 0]),
        plot.points([point for point in errors if point[1] > 0]),
    )
    caption = (
        "Dots: the average error of all answers up to there. The other falling line is the limit, "
        f"{KINDS[found.errors.kind]}; the level one is answering one half of everything."
    )
    return Drawing(svg, caption)


# JSON -----------------------------------------------------------------------------------------


def _fields(found: OneBitFound, reveal: bool) -> dict[str, Any]:
    """An attack as the fields of the JSON object."""
    groups = found.totals.groups
    return {
        "schema": SCHEMA,
        "private": found.totals.private,
        "records": len(groups.codes),
        "dimensions": len(groups),
        "queries": found.queries,
        "noise": found.noise,
        "learner": found.learner.value,
        "told": found.told.value,
        "weights": found.weights.value,
        **_errors(found, REVEALED_DIGITS if reveal else HIDDEN_DIGITS),
        "price": digits(price(found.law), REVEALED_DIGITS),
        "edge_pays_after": pays_after(found.law, len(groups)),
        "curve": [
            _moment(each, REVEALED_DIGITS if reveal else HIDDEN_CURVE_DIGITS)
            for each in found.curve
        ],
        "confidence": found.confidence,
        "identifiable": len(found.values),
        "inside": found.inside,
        "width": digits(_width(found, reveal), REVEALED_DIGITS),
        "values": [_value(each) for each in found.values] if reveal else None,
        "defence": defence(found),
        "finished": found.finished,
        "seconds": round(found.seconds, 3),
    }


def _errors(found: OneBitFound, count: int) -> dict[str, Any]:
    errors = found.errors
    return {
        "error": digits(errors.error, count),
        "limit": digits(errors.limit, REVEALED_DIGITS),
        "kind": errors.kind,
        "ratio": digits(errors.ratio, count),
        "late_ratio": digits(found.late_ratio, count),
        "baseline": digits(errors.baseline, count),
        "root_mean_square": digits(errors.root_mean_square, count),
        "van_trees": digits(errors.van_trees, REVEALED_DIGITS),
        "full_limit": digits(errors.full_limit, REVEALED_DIGITS),
    }


def _moment(moment: Moment, count: int) -> dict[str, Any]:
    return {
        "queries": moment.queries,
        "error": digits(moment.error, count),
        "limit": digits(moment.limit, REVEALED_DIGITS),
    }


def _value(value: GroupValue) -> dict[str, Any]:
    return {
        "group": value.name,
        "records": value.records,
        "value": finite(value.value),
        "lo": finite(value.low),
        "hi": finite(value.high),
    }
