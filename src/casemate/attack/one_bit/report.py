"""An attack through yes/no answers as text, as the object `casemate.one-bit/1`, and as a page.

Without `reveal` no value is written, and errors are rounded.

What an attack through yes/no answers means, in the words that every form of its report shares.

An exact average of errors is an equation about the secret for whoever knows the seed. Without
`reveal`, errors are therefore rounded: to three digits, and along the curve to two.
"""

import math
import statistics
from collections.abc import Iterator
from typing import Any

from casemate.attack.one_bit.attack import GroupValue, Moment, OneBitFound
from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.limit import bit_information, edge_pays_after, full_information
from casemate.attack.report import finite, round_up
from casemate.report import (
    Logarithmic,
    Markup,
    Plot,
    Tone,
    counted,
    facts,
    figure,
    joined,
    listing,
    page,
    paragraph,
    section,
    table,
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


# One bit ----------------------------------------------------------------------------------------


SCHEMA = "casemate.one-bit/1"
EXACT = 12
"""Digits beyond which there is only rounding."""


# Text -----------------------------------------------------------------------------------------


def as_text(found: OneBitFound, *, reveal: bool = False) -> str:
    """An attack as lines to read."""
    lines = [headline(found), setting(found), *against_the_limit(found)]
    if not found.finished:
        lines.append("interrupted: this is the best so far")
    lines += ["", *_curve_lines(found), "", certainty(found, reveal)]
    if reveal:
        lines += [f"  {_value_text(each)}" for each in found.values]
    return "\n".join([*lines, "", *defence(found)])


def _curve_lines(found: OneBitFound) -> Iterator[str]:
    yield f"{'queries':>15} {'error':>10} {'limit':>10}"
    for each in _decades(found):
        error = size(digits(each.error, DIGITS_ALONG) or 0.0)
        yield f"{each.queries:>15,} {error:>10} {size(each.limit):>10}"


def _decades(found: OneBitFound) -> list[Moment]:
    """The points of the curve at powers of ten, and the last one."""
    tens = [each for each in found.curve if str(each.queries).rstrip("0") == "1"]
    return tens if tens[-1:] == [found.curve[-1]] else [*tens, found.curve[-1]]


def _value_text(value: GroupValue) -> str:
    return (
        f"{value.name}: mean {value.value:.6g} ({value.low:.6g} to {value.high:.6g}) of "
        f"{counted(value.records, 'record')}"
    )


# JSON -----------------------------------------------------------------------------------------


def as_json(found: OneBitFound, *, reveal: bool = False) -> dict[str, Any]:
    """An attack as the object that `--format json` prints."""
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
        **_errors(found, EXACT if reveal else DIGITS),
        "price": digits(price(found.law), EXACT),
        "edge_pays_after": pays_after(found.law, len(groups)),
        "curve": [_moment(each, EXACT if reveal else DIGITS_ALONG) for each in found.curve],
        "confidence": found.confidence,
        "identifiable": len(found.values),
        "inside": found.inside,
        "width": digits(width(found, reveal), EXACT),
        "values": [_value(each) for each in found.values] if reveal else None,
        "defence": defence(found),
        "finished": found.finished,
        "seconds": round(found.seconds, 3),
    }


def _errors(found: OneBitFound, count: int) -> dict[str, Any]:
    errors = found.errors
    return {
        "error": digits(errors.error, count),
        "limit": digits(errors.limit, EXACT),
        "kind": errors.kind,
        "ratio": digits(errors.ratio, count),
        "late_ratio": digits(found.late_ratio, count),
        "baseline": digits(errors.baseline, count),
        "root_mean_square": digits(errors.root_mean_square, count),
        "van_trees": digits(errors.van_trees, EXACT),
        "full_limit": digits(errors.full_limit, EXACT),
    }


def _moment(moment: Moment, count: int) -> dict[str, Any]:
    return {
        "queries": moment.queries,
        "error": digits(moment.error, count),
        "limit": digits(moment.limit, EXACT),
    }


def _value(value: GroupValue) -> dict[str, Any]:
    return {
        "group": value.name,
        "records": value.records,
        "value": finite(value.value),
        "lo": finite(value.low),
        "hi": finite(value.high),
    }


# A page ---------------------------------------------------------------------------------------


SCOPE = (
    "An attack that fails proves nothing: another may succeed, and another stream of queries may "
    "tell more.",
    "The limit is a benchmark for long streams: no learner is better everywhere. While the noise "
    "is small beside what is unknown, nobody reaches it, because a bit is at most one bit.",
    "Means of groups are found. What they say about one person is inference where the group is "
    "large, and disclosure where it is small.",
)


def as_html(found: OneBitFound, *, reveal: bool = False) -> str:
    """An attack as a self-contained page."""
    return page(
        "casemate attack one-bit",
        _sentence(headline(found)),
        _introduction(found, reveal),
        [
            _curve(found),
            section("defence", "What to do about it", listing(_sentences(defence(found)))),
            _values(found) if reveal else Markup(),
            section("assumptions", "What was taken for granted", listing(SCOPE)),
        ],
    )


def _introduction(found: OneBitFound, reveal: bool) -> Markup:
    errors = found.errors
    numbers = facts(
        [
            ("error", size(errors.error)),
            ("limit", size(errors.limit)),
            ("ratio", "–" if errors.ratio is None else f"{errors.ratio:.2f}"),
            ("one half of everything", size(errors.baseline)),
            ("queries", f"{found.queries:,}"),
            ("CPU seconds", f"{found.seconds:.1f}"),
        ]
    )
    said = [setting(found), *against_the_limit(found), certainty(found, reveal)]
    notes = [paragraph(each) for each in _sentences(said)]
    if not found.finished:
        notes.append(paragraph("The work was interrupted: this is the best so far."))
    if not reveal:
        hidden = "No values are written, and errors and widths are rounded."
        notes.append(paragraph(hidden, kind="note"))
    return joined([numbers, *notes])


def _curve(found: OneBitFound) -> Markup:
    """The average error up to each number of queries, beside the limit and one half."""
    errors = [(each.queries, digits(each.error, DIGITS_ALONG) or 0.0) for each in found.curve]
    limits = [(each.queries, each.limit) for each in found.curve]
    heights = [height for _, height in (*errors, *limits) if height > 0]
    if len(errors) < 2 or not heights:
        return Markup()
    baseline = found.errors.baseline or heights[-1]
    low, high = min(*heights, baseline) / 1.5, max(*heights, baseline) * 1.5
    plot = Plot(Logarithmic(1, errors[-1][0]), Logarithmic(low, high), height=340)
    drawn = plot.drawn(
        "error-curve",
        "Error and limit against queries",
        "; ".join(f"{q:,} queries: error {size(e)}" for q, e in errors) + ".",
        plot.axes("queries", f"average error of totals of {found.totals.private}"),
        plot.curve([(1, baseline), (errors[-1][0], baseline)], Tone.SOFT),
        plot.curve([each for each in limits if each[1] > 0], Tone.OTHER),
        plot.curve([each for each in errors if each[1] > 0]),
        plot.points([each for each in errors if each[1] > 0]),
    )
    caption = (
        "Dots: the average error of all answers up to there. The other falling line is the limit, "
        f"{KINDS[found.errors.kind]}; the level one is answering one half of everything."
    )
    return section("error", "What every bit adds", figure(drawn, caption))


def _values(found: OneBitFound) -> Markup:
    rows = [
        (each.name, f"{each.records:,}", *(f"{x:.6g}" for x in (each.value, each.low, each.high)))
        for each in found.values
    ]
    caption = f"{counted(len(rows), 'group')}, and the mean of {found.totals.private} in each"
    header = ("group", "records", "mean", "from", "to")
    return section("values", "What was found", table(caption, header, rows))


def _sentences(said: list[str]) -> list[str]:
    return [_sentence(each) for each in said]


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."
