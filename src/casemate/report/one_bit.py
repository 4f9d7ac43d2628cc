"""An attack through yes/no answers as text for the terminal and as the object `casemate.one-bit/1`.

Without `reveal` no value is written, and errors are rounded: see `one_bit_findings`.
"""

from collections.abc import Iterator
from typing import Any

from casemate.attack.one_bit_result import GroupValue, Moment, OneBitFound
from casemate.report.attack_findings import finite
from casemate.report.one_bit_findings import (
    DIGITS,
    DIGITS_ALONG,
    against_the_limit,
    certainty,
    defence,
    digits,
    headline,
    pays_after,
    price,
    setting,
    size,
    width,
)
from casemate.report.page import counted

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
