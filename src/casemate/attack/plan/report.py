"""A plan as text for the terminal, as the object `casemate.attack-plan/1`, and as a page.

A plan is made from public columns alone, so it holds nothing that has to be hidden: queries that
anybody could ask, and how their answers would be put together.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from casemate.attack.plan.result import DeterminedRecord, Planned
from casemate.report import (
    Code,
    Facts,
    Paragraph,
    Prose,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
    number,
    plain,
    shorten,
)

SCHEMA = "casemate.attack-plan/1"
QUERY_LETTERS_IN_TEXT = 300
"""Lists of values may be very long."""

TERMS_WRITTEN = 8
"""The most terms of a combination that are written out."""

RECORDS_NAMED = 200
"""The most records that a page names of those that are not told apart."""


def plan_report(plan: Planned) -> Report:
    """The queries of a plan, and how values follow from their answers."""
    numbers = [
        ("queries", len(plan.queries)),
        ("at least", "–" if plan.lower_bound is None else plan.lower_bound),
        ("records", f"{plan.records:,}"),
        ("minimum count", plan.min_count),
    ]
    total = written_sum(dict(enumerate(plan.combination)))
    sums = [(plain(each.record), _sum_of(each)) for each in plan.determined]
    how = TableBlock(
        count_of(len(sums), "record"), ("record", "value"), sums, line="record {} = {}".format
    )
    target = [Paragraph(Code(f"{plan.private} of record {plain(plan.target)} = {total}"))]
    others = [plain(record) for record in (*plan.inseparable, *plan.undetermined)]
    names = [Paragraph(f"records {', '.join(others[:RECORDS_NAMED])}")] if others else []
    return Report(
        "casemate attack plan",
        _headline(plan),
        lambda: _fields(plan),
        [*map(Paragraph, _clauses(plan)), Facts(numbers)],
        [
            Section("queries", "Queries", _queries(plan)),
            Section("value", "The value", target if plan.combination else [], label=""),
            Section("records", "How each value follows", [how], label=f"{plan.private}:"),
            Section("others", "Records that are not told apart", names, where=Where.PAGE),
        ],
    )


def _headline(plan: Planned) -> str:
    whom = "all records" if plan.target == "all" else f"record {plain(plan.target)}"
    if not plan.queries:
        return f"no plan for {whom}"
    checked = "verified" if plan.verified else "not verified"
    fewest = ", the fewest possible" if plan.optimal else ""
    return f"{whom}: {count_of(len(plan.queries), 'query', 'queries')}{fewest}; {checked}"


def _clauses(plan: Planned) -> Iterator[str]:
    """What is to be said about a plan, one thing a line."""
    if plan.reason is not None:
        yield plan.reason
        if plan.impossible:
            yield "this is proved"
    else:
        yield f"every query selects at least {count_of(plan.min_count, 'record')}"
        if not plan.optimal and plan.lower_bound is not None:
            yield f"at least {plan.lower_bound} would be needed by any plan"
    yield from _reading_clauses(plan)
    if plan.queries:
        yield from _reach_clauses(plan)
    if plan.target == "all" and plan.inseparable:
        yield (
            f"{count_of(len(plan.inseparable), 'record agrees', 'records agree')} with another in "
            f"every public column and cannot be told apart"
        )


def _reading_clauses(plan: Planned) -> Iterator[str]:
    """How values are read off the answers, where they are not numbers."""
    if plan.design is not None:
        yield "the values are bits: fewer queries than records, about lists of values"
    if plan.values is not None:
        places = ", ".join(f"{i} for {plain(value)}" for i, value in enumerate(plan.values))
        yield f"what the answers add up to is the place of the value: {places}"


def _reach_clauses(plan: Planned) -> Iterator[str]:
    """For how many records the queries suffice, and for how many they do not."""
    if plan.target == "all":
        determined = plan.records if plan.design else len(plan.determined)
        yield f"{determined} of {count_of(plan.records, 'record')} are determined"
    if plan.undetermined:
        yield (
            f"{count_of(len(plan.undetermined), 'other')} could be told apart, and no "
            f"queries that do it with this minimum count were found"
        )


def _queries(plan: Planned) -> list[TableBlock]:
    """The queries: cut to a line of text, whole on a page with their coefficients."""
    counts = [count_of(count, "record") for count in plan.counts]
    places = [f"{place}" for place in range(1, len(counts) + 1)]
    short = [shorten(sql, QUERY_LETTERS_IN_TEXT, "...") for sql in plan.queries]
    columns: dict[str, Iterable[Prose]] = {
        "query": places,
        "SQL": map(Code, plan.queries),
        "selects": counts,
    }
    if plan.combination:
        columns["coefficient"] = map(str, plan.combination)
    caption = f"{count_of(len(counts), 'query', 'queries')} on public columns"
    lines = list(zip(places, short, counts, strict=True))
    rows = list(zip(*columns.values(), strict=True))
    return [
        TableBlock(caption, (), lines, line="{}. {};  -- {}".format, where=Where.TEXT),
        TableBlock(caption, tuple(columns), rows, where=Where.PAGE),
    ]


def _sum_of(determined: DeterminedRecord) -> str:
    """The arithmetic that gives a record's value."""
    if len(determined.combination) > TERMS_WRITTEN:
        return f"a combination of {len(determined.combination)} queries"
    return written_sum(determined.combination)


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


def _fields(plan: Planned) -> dict[str, Any]:
    """A plan as the fields of the JSON object."""
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
    if plan.target != "all":
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
