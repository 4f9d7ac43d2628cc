"""`casemate demo`: three harmless-looking sums give away one patient, and what stops that.

The table and the three queries are the example of source document 002. The audit finds by itself
who is exposed and by which combination, and which of the sums to leave out so that nobody is; the
same sums with noise say nothing about anybody. `casemate.cli.demo_cure` goes on with a table that
is large enough for private answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from casemate.cli.demo_cure import Cure, as_fields, as_lines, cured
from casemate.cli.output import Output

if TYPE_CHECKING:
    from casemate.audit.result import Exposed
    from casemate.table.table import Table

SCHEMA = "casemate.demo/1"
QUERIES = (
    'SELECT SUM("Blood sugar") FROM hospital',
    "SELECT SUM(\"Blood sugar\") FROM hospital WHERE Gender = 'Female'",
    'SELECT SUM("Blood sugar") FROM hospital '
    "WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male'",
)
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
    combination: tuple[int, ...]
    certificate: str
    left_out: tuple[int, ...]
    repaired: str
    noisy_value: Fraction
    half_width: Fraction
    spent: str
    cure: Cure


def demo(*, output: Output | None = None) -> None:
    """Walk through an example in a minute: three sums that expose one patient, and the cure."""
    output = output or Output()
    with output.progress("auditing and answering"):
        shown = run()
    output.emit(as_text(shown), as_json(shown))


def run() -> Shown:
    """Publish the three sums, audit and repair them, and publish them again with noise."""
    from casemate.audit.exposure import Audit
    from casemate.audit.repair import repair
    from casemate.query.answers import answers
    from casemate.query.lineage import lineage
    from casemate.query.sql import parse
    from casemate.report.audit import reason
    from casemate.table.table import Table

    with Table.open("hospital") as table:
        aggregates = [parse(sql, table.policy)[0] for sql in QUERIES]
        exact = [Fraction(str(cells[()])) for cells in answers(aggregates, table.source)]
        touched = lineage(aggregates, table.source)
        sizes = [int((touched.cell == number).sum()) for number in range(len(aggregates))]
        (exposed,) = Audit.of(QUERIES, table).exposed
        left = repair(QUERIES, table)
        noisy, half_width, spent = answered_privately(exact, table)
    weights = multiples(exposed)
    return Shown(
        tuple(map(Sum, QUERIES, sizes, exact, noisy)),
        int(str(exposed.record)),
        Fraction(str(exposed.value)),
        weights,
        reason(exposed),
        left.dropped,
        left.audited.verdict.value,
        sum((w * each for w, each in zip(weights, noisy, strict=True)), Fraction(0)),
        half_width,
        spent,
        cured(),
    )


def multiples(exposed: "Exposed") -> tuple[int, ...]:
    """What each query is multiplied by to leave the exposed record alone."""
    terms = exposed.certificate.terms if exposed.certificate else ()
    weight = {term.place.query: term.coefficient for term in terms}
    return tuple(weight.get(number, 0) for number in range(1, len(QUERIES) + 1))


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
        "None of them is about one person. The audit finds what they add up to:",
        "",
        f"  record {shown.record}: blood sugar {plain(shown.value)} = {shown.certificate}",
        "",
        f"The repair: leave out query {', '.join(map(str, shown.left_out))}. What is left was "
        f"audited again: {shown.repaired}.",
        "",
        "All three sums with exact discrete noise, each charged to a ledger before it left:",
        "",
    ]
    for number, each in enumerate(shown.sums, start=1):
        lines.append(f"  {number}. {plain(each.noisy)} +- {plain(shown.half_width)} (95 %)")
    lines += [
        "",
        f"Combined they say {plain(shown.noisy_value)} for record {shown.record}: no help at all.",
        f"The ledger: {shown.spent}.",
    ]
    lines += as_lines(shown.cure)
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
        "combination": list(shown.combination),
        "record": shown.record,
        "value": float(shown.value),
        "left_out": list(shown.left_out),
        "repaired": shown.repaired,
        "noisy_value": float(shown.noisy_value),
        "half_width": float(shown.half_width),
        "spent": shown.spent,
        "cure": as_fields(shown.cure),
    }
