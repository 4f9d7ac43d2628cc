"""`casemate demo`: three harmless-looking sums give away one patient, and what stops that.

The table and the three queries are the example of source document 002. The audit finds by itself
who is exposed and by which combination, and which of the sums to leave out so that nobody is; the
same sums with noise say nothing about anybody. `casemate.cli.demo` goes on with a table that
is large enough for private answers.

The cure in `casemate demo`: the same shock on 20,000 people, and the same questions privately.

The three sums of the first half are asked again of a shipped table that is large enough for private
answers. Exact, they give away one man. Through a session, which is what `casemate ask` opens, they
come with proven bounds and are charged first; what they say of him is lost in the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from casemate.report.terminal import OutputOptions

if TYPE_CHECKING:
    from casemate.answer import Answer
    from casemate.audit import Exposed
    from casemate.table import Policy, Table


TABLE = "population:20000"
PRIVATE = "visits"
USED = ("sex", "age", "region", "diagnosis", PRIVATE)
CURE_QUERIES = (
    "SELECT SUM(visits) FROM population",
    "SELECT SUM(visits) FROM population WHERE sex = 'female'",
    "SELECT SUM(visits) FROM population "
    "WHERE sex = 'male' AND NOT (age >= 90 AND region = 'High Cairn')",
)
FREE = "SELECT sex, COUNT(*) FROM population GROUP BY sex"


@dataclass(frozen=True)
class ToldNumber:
    """One number as a session gave it."""

    sql: str
    label: str
    value: float
    lo: float
    hi: float
    error: float
    source: str
    epsilon: float


@dataclass(frozen=True)
class Cure:
    """What the second half of the demonstration found."""

    record: str
    certificate: str
    measured: tuple[ToldNumber, ...]
    free: tuple[ToldNumber, ...]
    left: float
    budget: float

    @property
    def about_one(self) -> tuple[float, float]:
        """What the same combination of noisy sums says of the one man."""
        first, *others = self.measured
        low = first.lo - sum(each.hi for each in others)
        return low, first.hi - sum(each.lo for each in others)


def cured() -> Cure:
    """Audit the three sums on the larger table, and ask them again through a session."""
    from casemate.answer import Session
    from casemate.audit import Audit, reason
    from casemate.table import Table

    with Table.open(TABLE, private=[PRIVATE]) as table:
        (exposed,) = Audit.of(CURE_QUERIES, table).exposed
        policy = table.policy
    with TemporaryDirectory() as folder, Session(answered_from(policy, Path(folder))) as session:
        free = session.query(FREE)
        measured = [session.query(sql, measure=True) for sql in CURE_QUERIES]
        standing = session.standing()
    return Cure(
        str(exposed.record),
        reason(exposed),
        tuple(told(answer, 0)[0] for answer in measured),
        tuple(told(free, 1)[:2]),
        float(standing.remaining.epsilon),
        float(standing.budget.epsilon),
    )


def answered_from(policy: "Policy", folder: Path) -> "Policy":
    """The shipped policy with the columns that are asked about, and a ledger in this folder."""
    from dataclasses import replace

    kept = tuple(each for each in policy.columns if each.name in USED)
    return replace(policy, columns=kept, path=folder / "casemate.toml")


def told(answer: "Answer", column: int) -> list[ToldNumber]:
    """The numbers of one column of an answer."""
    found = []
    for row in answer.rows:
        cell: Any = row[column]
        label = str(row[0]) if column else ""
        value, lo, hi, error = (float(each) for each in (cell.value, cell.lo, cell.hi, cell.error))
        source, cost = answer.origin.value, float(answer.cost.epsilon)
        found.append(ToldNumber(answer.sql, label, value, lo, hi, error, source, cost))
    return found


def as_lines(cure: Cure) -> list[str]:
    """The second half of the walk, as lines to read."""
    lines = [
        "",
        "Six patients are too few to be described both usefully and privately, and that is the",
        "truth about them. Take 20,000 people, and the same three kinds of sums:",
        "",
    ]
    lines += [f"  {number}. {sql}" for number, sql in enumerate(CURE_QUERIES, start=1)]
    lines += [
        "",
        "Published exactly, they give away one man again:",
        "",
        f"  record {cure.record}: visits = {cure.certificate}",
        "",
        "Asked through `casemate ask --measure`, each is charged to the ledger before it leaves:",
        "",
    ]
    lines += [f"  {number}. {shown(each)}" for number, each in enumerate(cure.measured, start=1)]
    low, high = cure.about_one
    lines += [
        "",
        f"Combined they say {low:,.0f} to {high:,.0f} visits for him: nothing.",
        "A question that the public stand-in answers well enough costs nothing more:",
        "",
        f"  {FREE}",
    ]
    lines += [f"  {each.label}: {shown(each)}" for each in cure.free]
    lines += [
        "",
        f"Left: epsilon {cure.left:.3f} of {cure.budget:g}, for as many questions as do not "
        f"surprise the stand-in.",
        "Audit your own statistics with `casemate audit`; answer questions with `casemate ask`.",
    ]
    return lines


def shown(each: ToldNumber) -> str:
    """One number with its typical error and its bounds."""
    proven = f"proven {each.lo:,.0f} to {each.hi:,.0f} (95 %)"
    return f"{each.value:,.0f}, typically off by {each.error:,.0f}, {proven}: {each.source}"


def as_fields(cure: Cure) -> dict[str, Any]:
    """The second half as fields of the object that `--format json` prints."""

    def plain(each: ToldNumber) -> dict[str, Any]:
        bounds = {"value": each.value, "lo": each.lo, "hi": each.hi, "error": each.error}
        told = {"sql": each.sql, "label": each.label, **bounds}
        return told | {"source": each.source, "epsilon": each.epsilon}

    return {
        "table": TABLE,
        "record": cure.record,
        "certificate": cure.certificate,
        "measured": [plain(each) for each in cure.measured],
        "free": [plain(each) for each in cure.free],
        "left": cure.left,
        "budget": cure.budget,
    }


# Demo -------------------------------------------------------------------------------------------


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
class DemoFindings:
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


def demo(*, output: OutputOptions | None = None) -> None:
    """Walk through an example in a minute: three sums that expose one patient, and the cure."""
    output = output or OutputOptions()
    with output.progress("auditing and answering"):
        shown = run()
    output.emit(as_text(shown), as_json(shown))


def run() -> DemoFindings:
    """Publish the three sums, audit and repair them, and publish them again with noise."""
    from casemate.audit import Audit, reason
    from casemate.audit.repair import repair
    from casemate.query.engines import answers
    from casemate.query.parse import parse
    from casemate.query.records import lineage
    from casemate.table import Table

    with Table.open("hospital") as table:
        aggregates = [parse(sql, table.policy)[0] for sql in QUERIES]
        exact = [Fraction(str(cells[()])) for cells in answers(aggregates, table.source)]
        touched = lineage(aggregates, table.source)
        sizes = [int((touched.cell == number).sum()) for number in range(len(aggregates))]
        (exposed,) = Audit.of(QUERIES, table).exposed
        left = repair(QUERIES, table)
        noisy, half_width, spent = answered_privately(exact, table)
    weights = multiples(exposed)
    return DemoFindings(
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
    from casemate.privacy import Pure
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


def as_text(shown: DemoFindings) -> str:
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


def as_json(shown: DemoFindings) -> dict[str, Any]:
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
