"""An audit as text for the terminal and as the object `casemate.audit/1`.

Without `reveal` no value, bound or total is written, and records are numbered in the order of the
report: a report is read by more people than the table is.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from casemate.audit.equations import Place
from casemate.audit.result import Audited, Certificate, Exposed, Group, Interval, Proof, Verdict
from casemate.query.expression import Scalar

SCHEMA = "casemate.audit/1"
HIDDEN = "•"
REASONS = {
    Proof.BOUNDS: "bounds and types",
    Proof.INTEGER: "sums, extremes and medians of whole numbers",
    Proof.ORDER: "extremes and medians",
}
SHOWN_IN_TEXT = 20
SENTENCES = {
    Verdict.EXPOSED: "somebody's value follows from what was published",
    Verdict.NONE_EXPOSED: "nobody's value follows from what was published",
    Verdict.INCOMPLETE: "no value was found, but not everything could be audited",
}


# Text -----------------------------------------------------------------------------------------


def as_text(audit: Audited, *, reveal: bool = False, certificates: int = SHOWN_IN_TEXT) -> str:
    """An audit as lines to read."""
    lines = [
        f"verdict: {audit.verdict} ({SENTENCES[audit.verdict]})",
        f"{audit.queries} statements, {audit.equations} numbers of rank {audit.rank}, "
        f"about {audit.records} records",
    ]
    if audit.consistent is False:
        lines.append("the published numbers contradict each other")
    lines += [*_exposed_lines(audit, reveal, certificates), *_other_lines(audit, reveal)]
    return "\n".join(lines)


def _exposed_lines(audit: Audited, reveal: bool, certificates: int) -> list[str]:
    if not audit.exposed:
        return []
    lines = ["", f"exposed: {len(audit.exposed)}"]
    for each in audit.exposed[:certificates]:
        value = plain(each.value) if reveal else HIDDEN
        lines.append(f"  record {each.record}: {each.column} = {value}  by {reason(each)}")
    if len(audit.exposed) > certificates:
        lines.append(f"  and {len(audit.exposed) - certificates} more")
    return lines


def reason(exposed: Exposed) -> str:
    """How an exposed value follows: a combination of statements, or bounds and types."""
    if exposed.certificate is None and exposed.proof is Proof.RANK:
        return f"many numbers together, the last of them in query {exposed.by}"
    if exposed.certificate is None:
        return REASONS[exposed.proof]
    return combination(exposed.certificate)


def combination(certificate: Certificate) -> str:
    """A certificate as arithmetic, for example: query 1 - query 2 - query 3."""
    parts = []
    for term in certificate.terms:
        sign = "-" if term.coefficient < 0 else "+"
        size = "" if abs(term.coefficient) == 1 else f"{abs(term.coefficient)} * "
        parts.append(f"{sign} {size}{_named(term.place)}")
    text = " ".join(parts).removeprefix("+ ")
    return text if certificate.divisor == 1 else f"({text}) / {certificate.divisor}"


def _named(place: Place) -> str:
    if place.key is None:
        return f"query {place.query}"
    keys = ", ".join(f"{name} = {plain(value)}" for name, value in place.key)
    return f"query {place.query} [{keys}]"


def _other_lines(audit: Audited, reveal: bool) -> list[str]:
    lines: list[str] = []
    if audit.groups:
        lines += ["", f"small groups whose total is known: {len(audit.groups)}"]
        lines += [f"  {_group_text(each, reveal)}" for each in audit.groups[:SHOWN_IN_TEXT]]
    if audit.tight:
        lines += ["", f"nearly known: {len(audit.tight)}"]
        lines += [f"  {_interval_text(each, reveal)}" for each in audit.tight[:SHOWN_IN_TEXT]]
    if audit.undecided:
        lines += ["", f"not decided within the limit: {len(audit.undecided)} records"]
    if audit.unchecked:
        lines += ["", f"not checked: {len(audit.unchecked)} records"]
    if audit.refused:
        lines += ["", f"not audited: {len(audit.refused)}"]
        lines += [f"  query {each.query}: {each.reason}" for each in audit.refused]
    lines += ["", *audit.assumptions] if audit.assumptions else []
    return lines


def _group_text(group: Group, reveal: bool) -> str:
    total = plain(group.total) if reveal else HIDDEN
    listed = ", ".join(str(record) for record in group.records)
    return f"records {listed}: {group.column} adds up to {total}"


def _interval_text(interval: Interval, reveal: bool) -> str:
    ends = f"{plain(interval.low)} to {plain(interval.high)}" if reveal else HIDDEN
    return f"record {interval.record}: {interval.column} is {ends}"


def plain(value: Scalar | Fraction) -> str:
    """A value in plain words; a fraction as a decimal where it is one."""
    if value is None:
        return "NULL"
    return str(number(value)) if isinstance(value, Fraction) else str(value)


# JSON -----------------------------------------------------------------------------------------


def as_json(audit: Audited, *, reveal: bool = False) -> dict[str, Any]:
    """An audit as the object that `--format json` prints."""

    def told(value: Scalar | Fraction) -> Any:
        return number(value) if reveal else None

    return {
        "schema": SCHEMA,
        "verdict": audit.verdict.value,
        "records": audit.records,
        "queries": audit.queries,
        "equations": audit.equations,
        "rank": audit.rank,
        "consistent": audit.consistent,
        "exposed": [
            {
                "record": number(each.record),
                "column": each.column,
                "value": told(each.value),
                "certificate": _certificate(each.certificate),
                "by": each.by,
                "proof": each.proof.value,
            }
            for each in audit.exposed
        ],
        "tight": [_interval(each, reveal) for each in audit.tight],
        "groups": [
            {
                "records": [number(record) for record in each.records],
                "column": each.column,
                "total": told(each.total),
            }
            for each in audit.groups
        ],
        "undecided": [number(record) for record in audit.undecided],
        "unchecked": [number(record) for record in audit.unchecked],
        "refused": [
            {
                "query": each.query,
                "line": each.line,
                "column": each.column,
                "text": each.text,
                "reason": each.reason,
            }
            for each in audit.refused
        ],
        "bounds": [_interval(each, reveal) for each in audit.bounds],
        "assumptions": list(audit.assumptions),
        "seconds": round(audit.seconds, 3),
    }


def _certificate(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "terms": [
            {
                "query": term.place.query,
                "cell": _cell(term.place.key),
                "coefficient": term.coefficient,
            }
            for term in certificate.terms
        ],
        "divisor": certificate.divisor,
    }


def _cell(key: Sequence[tuple[str, Scalar]] | None) -> dict[str, Any] | None:
    return None if key is None else {name: number(value) for name, value in key}


def _interval(interval: Interval, reveal: bool) -> dict[str, Any]:
    shrinkage = interval.shrinkage
    return {
        "record": number(interval.record),
        "column": interval.column,
        "lo": number(interval.low) if reveal else None,
        "hi": number(interval.high) if reveal else None,
        "prior_lo": number(interval.prior_low),
        "prior_hi": number(interval.prior_high),
        "shrinkage": None if shrinkage is None else round(float(shrinkage), 6),
    }


def number(value: Scalar | Fraction) -> Any:
    """A value as JSON writes it: a fraction that is no short decimal is written as text."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return value.numerator
        short = Decimal(str(float(value)))
        return float(value) if Fraction(short) == value else str(value)
    if isinstance(value, Decimal):
        return number(Fraction(value))
    return value.isoformat() if isinstance(value, date) else value
