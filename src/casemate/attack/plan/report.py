"""A plan as text for the terminal, as the object `casemate.attack-plan/1`, and as a page.

A plan is made from public columns alone, so it holds nothing that has to be hidden: queries that
anybody could ask, and how their answers would be put together.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from casemate.attack.plan.result import DeterminedRecord, Planned
from casemate.query.language import Scalar
from casemate.report import (
    Markup,
    counted,
    facts,
    joined,
    listing,
    number,
    page,
    paragraph,
    plain,
    section,
    table,
    tag,
)

SCHEMA = "casemate.attack-plan/1"
SHOWN_IN_TEXT = 20
LONGEST = 300
"""Letters of a query that the text shows: lists of values may be very long."""

MOST_TERMS = 8
"""Terms of a combination that are written out."""


def as_text(plan: Planned) -> str:
    """A plan as lines to read."""
    lines = [_headline(plan), *_sentences(plan)]
    if plan.queries:
        lines += ["", "queries:", *_queries(plan)]
    if plan.combination:
        lines += ["", f"{plan.private} of record {plain(plan.target)} = {_own_sum(plan)}"]
    if plan.determined:
        shown = [f"  record {plain(each.record)} = {_sum(each)}" for each in plan.determined]
        lines += ["", f"{plan.private}:", *_first(shown)]
    return "\n".join(lines)


def _headline(plan: Planned) -> str:
    whom = "all records" if _for_all(plan) else f"record {plain(plan.target)}"
    if not plan.queries:
        return f"no plan for {whom}"
    checked = "verified" if plan.verified else "not verified"
    fewest = ", the fewest possible" if plan.optimal else ""
    return f"{whom}: {_number(len(plan.queries), 'query', 'queries')}{fewest}; {checked}"


def _sentences(plan: Planned) -> list[str]:
    """What is to be said about a plan, one thing a line."""
    said = _size(plan) if plan.reason is None else _failed(plan.reason, plan.impossible)
    return [*said, *_reading(plan), *_reached(plan), *_twins(plan)]


def _failed(reason: str, proved: bool) -> Iterator[str]:
    """Why there is no plan."""
    yield reason
    if proved:
        yield "this is proved"


def _size(plan: Planned) -> Iterator[str]:
    """How large queries are, and how many of them it takes."""
    yield f"every query selects at least {_number(plan.min_count, 'record', 'records')}"
    if not plan.optimal and plan.lower_bound is not None:
        yield f"at least {plan.lower_bound} would be needed by any plan"


def _reading(plan: Planned) -> Iterator[str]:
    """How values are read off the answers, where they are not numbers."""
    if plan.design is not None:
        yield "the values are bits: fewer queries than records, about lists of values"
    if plan.values is not None:
        places = ", ".join(f"{i} for {plain(value)}" for i, value in enumerate(plan.values))
        yield f"what the answers add up to is the place of the value: {places}"


def _reached(plan: Planned) -> Iterator[str]:
    """For how many records the queries suffice, and for how many they do not."""
    if not plan.queries:
        return
    if _for_all(plan):
        known = plan.records if plan.design else len(plan.determined)
        yield f"{known} of {_number(plan.records, 'record', 'records')} are determined"
    if plan.undetermined:
        yield (
            f"{_number(len(plan.undetermined), 'other', 'others')} could be told apart, and no "
            f"queries that do it with this minimum count were found"
        )


def _twins(plan: Planned) -> Iterator[str]:
    """How many records no query on public columns tells apart."""
    if _for_all(plan) and plan.inseparable:
        yield (
            f"{_number(len(plan.inseparable), 'record agrees', 'records agree')} with another in "
            f"every public column and cannot be told apart"
        )


def _queries(plan: Planned) -> list[str]:
    return _first(
        [
            f"  {place}. {sql if len(sql) <= LONGEST else sql[: LONGEST - 3] + '...'};  -- {count}"
            for place, (sql, count) in enumerate(_numbered(plan), start=1)
        ]
    )


def _first(lines: list[str]) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - SHOWN_IN_TEXT
    told = [f"  and {more} more, all of them in the JSON"] if more > 0 else []
    return [*lines[:SHOWN_IN_TEXT], *told]


def _numbered(plan: Planned) -> list[tuple[str, str]]:
    pairs = zip(plan.queries, plan.counts, strict=True)
    return [(sql, _number(count, "record", "records")) for sql, count in pairs]


def _own_sum(plan: Planned) -> str:
    return written_sum(dict(enumerate(plan.combination)))


def _sum(each: DeterminedRecord) -> str:
    if len(each.combination) > MOST_TERMS:
        return f"a combination of {len(each.combination)} queries"
    return written_sum(each.combination)


def written_sum(combination: Mapping[int, Fraction]) -> str:
    """A combination as arithmetic.

    >>> written_sum({0: Fraction(1), 2: Fraction(-1, 2)})
    'query 1 - 1/2 * query 3'
    """
    parts = []
    for query, weight in combination.items():
        size = "" if abs(weight) == 1 else f"{abs(weight)} * "
        parts.append(f"{'-' if weight < 0 else '+'} {size}query {query + 1}")
    return " ".join(parts).removeprefix("+ ")


def _for_all(plan: Planned) -> bool:
    return plan.target == "all"


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


# JSON -----------------------------------------------------------------------------------------


def as_json(plan: Planned) -> dict[str, Any]:
    """A plan as the object that `--format json` prints."""
    values = None if plan.values is None else [number(each) for each in plan.values]
    return {
        "schema": SCHEMA,
        "target": number(plan.target),
        "private": plan.private,
        "records": plan.records,
        "min_count": plan.min_count,
        "queries": list(plan.queries),
        "combination": _combination(plan),
        "counts": list(plan.counts),
        "values": values,
        "decoder": None if plan.design is None else "detecting-matrix",
        "verified": plan.verified,
        "optimal": plan.optimal,
        "lower_bound": plan.lower_bound,
        "inseparable": [number(each) for each in plan.inseparable],
        "undetermined": [number(each) for each in plan.undetermined],
        "impossible": plan.impossible,
        "reason": plan.reason,
        "seconds": round(plan.seconds, 3),
    }


def _combination(plan: Planned) -> list[Any]:
    """One coefficient for each query; or for all records, the queries of each."""
    if not _for_all(plan):
        return [number(weight) for weight in plan.combination]
    return [
        {
            "record": number(each.record),
            "combination": [
                {"query": query + 1, "coefficient": number(weight)}
                for query, weight in each.combination.items()
            ],
        }
        for each in plan.determined
    ]


# A page ---------------------------------------------------------------------------------------


def as_html(plan: Planned) -> str:
    """A plan as a self-contained page."""
    said = [f"{sentence[:1].upper()}{sentence[1:]}." for sentence in _sentences(plan)]
    numbers = [
        ("queries", len(plan.queries)),
        ("at least", "–" if plan.lower_bound is None else plan.lower_bound),
        ("records", f"{plan.records:,}"),
        ("minimum count", plan.min_count),
    ]
    introduction = joined([*(paragraph(each) for each in said), facts(numbers)])
    sections = [_query_section(plan), _sum_section(plan), _twins_section(plan)]
    return page("casemate attack plan", _headline(plan), introduction, sections)


def _query_section(plan: Planned) -> Markup:
    if not plan.queries:
        return Markup()
    rows = [
        (f"{place}", tag("code", sql), count, _weight(plan, place - 1))
        for place, (sql, count) in enumerate(_numbered(plan), start=1)
    ]
    header = ("query", "SQL", "selects", "coefficient")
    columns = len(header) if plan.combination else len(header) - 1
    shown = [row[:columns] for row in rows]
    caption = f"{_number(len(rows), 'query', 'queries')} on public columns"
    return section("queries", "Queries", table(caption, header[:columns], shown))


def _weight(plan: Planned, query: int) -> str:
    return str(plan.combination[query]) if plan.combination else ""


def _sum_section(plan: Planned) -> Markup:
    if not plan.determined:
        return Markup()
    rows = [(plain(each.record), _sum(each)) for each in plan.determined]
    caption = counted(len(rows), "record")
    return section("records", "How each value follows", table(caption, ("record", "value"), rows))


def _twins_section(plan: Planned) -> Markup:
    names: list[Scalar] = [*plan.inseparable, *plan.undetermined]
    if not names:
        return Markup()
    told = listing([plain(each) for each in names[:200]])
    return section("others", "Records that are not told apart", told)
