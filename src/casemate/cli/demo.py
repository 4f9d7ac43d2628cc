"""`casemate demo`: three harmless-looking sums give away one patient, and what stops that.

The table and the three queries are the example of source document 002. Finding such a combination
among many queries is the auditor's work; here it is given, and checked against the lineage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from casemate.cli.output import Output

if TYPE_CHECKING:
    from casemate.query.aggregate import Aggregate
    from casemate.table.table import Table

SCHEMA = "casemate.demo/1"
QUERIES = (
    'SELECT SUM("Blood sugar") FROM hospital',
    "SELECT SUM(\"Blood sugar\") FROM hospital WHERE Gender = 'Female'",
    'SELECT SUM("Blood sugar") FROM hospital '
    "WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male'",
)
SIGNS = (1, -1, -1)
EPSILON = Fraction(1)
GRID = Fraction(1, 10)
"""Sums are noised as whole tenths: the table's values have one decimal."""


@dataclass(frozen=True)
class Sum:
    """One published sum: its text, how many records it covers, its answer, and a noisy answer."""

    sql: str
    records: int
    answer: Fraction
    noisy: Fraction


@dataclass(frozen=True)
class Shown:
    """What the demonstration found."""

    sums: tuple[Sum, ...]
    record: int
    value: Fraction
    noisy_value: Fraction
    half_width: Fraction
    spent: str


def demo(*, output: Output | None = None) -> None:
    """Walk through an example in a minute: three sums that expose one patient, and the cure."""
    output = output or Output()
    shown = run()
    output.emit(as_text(shown), as_json(shown))


def run() -> Shown:
    """Ask the three queries exactly, combine them, and ask them again with noise."""
    from casemate.query.answers import answers
    from casemate.query.sql import parse
    from casemate.table.table import Table

    with Table.open("hospital") as table:
        aggregates = [parse(sql, table.policy)[0] for sql in QUERIES]
        exact = [Fraction(str(cells[()])) for cells in answers(aggregates, table.source)]
        record, sizes = exposed(aggregates, table)
        noisy, half_width, spent = answered_privately(exact, table)
    sums = tuple(map(Sum, QUERIES, sizes, exact, noisy))
    return Shown(sums, record, combined(exact), combined(noisy), half_width, spent)


def combined(values: Sequence[Fraction]) -> Fraction:
    """Query 1 - query 2 - query 3."""
    return sum((sign * value for sign, value in zip(SIGNS, values, strict=True)), Fraction(0))


def exposed(aggregates: Sequence["Aggregate"], table: "Table") -> tuple[int, list[int]]:
    """The one record that is left when the queries are combined, and each query's size."""
    from casemate.query.lineage import lineage

    found = lineage(aggregates, table.source)
    left: dict[int, int] = {}
    sizes = [0] * len(aggregates)
    for cell, record, coefficient in zip(found.cell, found.record, found.coefficient, strict=True):
        query = found.cells[cell].aggregate
        sizes[query] += 1
        left[record] = left.get(record, 0) + SIGNS[query] * int(coefficient)
    (alone,) = [record for record, coefficient in left.items() if coefficient]
    if left[alone] != 1:
        raise RuntimeError("the three sums no longer expose one record exactly")
    return int(found.records[alone]), sizes


def answered_privately(
    exact: Sequence[Fraction], table: "Table"
) -> tuple[list[Fraction], Fraction, str]:
    """The same sums with noise, each charged to a ledger first; and the half width at 95 %."""
    from casemate.privacy.cost import Pure
    from casemate.privacy.ledger import IN_MEMORY, answer_once, open_ledger
    from casemate.privacy.noise import discrete_laplace, draw

    (private,) = table.policy.private()
    most = Fraction(str(private.high))  # one person more or less changes a sum by at most this
    price = EPSILON / len(exact)
    scale = most / GRID / price

    def noised(value: Fraction) -> bytes:
        return str(int(value / GRID) + draw(discrete_laplace, scale)).encode()

    with open_ledger(IN_MEMORY, dataset="hospital", policy="demo", epsilon=EPSILON) as ledger:
        stored = [
            answer_once(ledger, Pure(price), f"query {n}", sql, partial(noised, value))
            for n, (sql, value) in enumerate(zip(QUERIES, exact, strict=True), start=1)
        ]
        spent = ledger.statement()
    noisy = [int(tenths) * GRID for tenths in stored]
    return noisy, 3 * scale * GRID, spent  # noise passes 3 scales with probability exp(-3) < 5 %


def as_text(shown: Shown) -> str:
    """The walk, as lines to read."""
    lines = ["A hospital publishes three sums of its patients' blood sugar.", ""]
    for number, each in enumerate(shown.sums, start=1):
        lines += [
            f"  {number}. {each.sql}",
            f"     = {plain(each.answer)} over {each.records} records",
        ]
    lines += [
        "",
        "None of them is about one person. Yet query 1 - query 2 - query 3 leaves exactly one:",
        "",
        f"  record {shown.record}: blood sugar {plain(shown.value)}, with certainty",
        "",
        "The same three sums with exact discrete noise, each charged to a ledger before it left:",
        "",
    ]
    for number, each in enumerate(shown.sums, start=1):
        lines.append(f"  {number}. {plain(each.noisy)} +- {plain(shown.half_width)} (95 %)")
    lines += [
        "",
        f"Combined they say {plain(shown.noisy_value)} for record {shown.record}: no help at all.",
        f"The ledger: {shown.spent}.",
        "",
        "Six patients are too few to be described both usefully and privately, and that is the",
        "truth about them. This version reads policies and SQL, says which records each answer",
        "touches, and has exact noise and a ledger; the auditor that finds such combinations by",
        "itself, and the gateway that answers privately, are still to come.",
    ]
    return "\n".join(lines)


def plain(value: Fraction) -> str:
    """A number of tenths as a decimal."""
    return f"{float(value):.1f}"


def as_json(shown: Shown) -> dict[str, Any]:
    """The walk as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "queries": [
            {
                "sql": each.sql,
                "records": each.records,
                "answer": float(each.answer),
                "noisy": float(each.noisy),
            }
            for each in shown.sums
        ],
        "combination": list(SIGNS),
        "record": shown.record,
        "value": float(shown.value),
        "noisy_value": float(shown.noisy_value),
        "half_width": float(shown.half_width),
        "spent": shown.spent,
    }
