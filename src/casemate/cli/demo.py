"""`casemate demo`: three harmless-looking sums give away one patient, and what stops that.

The table and the three queries are the example of source document 002. The audit finds by itself
who is exposed and by which combination, and which of the sums to leave out so that nobody is; the
same sums with noise say nothing about anybody.

Then the same three kinds of sums are asked of a shipped table that is large enough for private
answers. Exact, they give away one man. Through a session, which is what `casemate ask` opens, they
come with proven bounds and are charged first; what they say of him is lost in the noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from casemate.report.terminal import OutputOptions

if TYPE_CHECKING:
    from casemate.answer import Answer
    from casemate.table import Table

QUERIES = (
    'SELECT SUM("Blood sugar") FROM hospital',
    "SELECT SUM(\"Blood sugar\") FROM hospital WHERE Gender = 'Female'",
    'SELECT SUM("Blood sugar") FROM hospital '
    "WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male'",
)
EPSILON = Fraction(1)
GRID = Fraction(1, 10)
"""Sums are noised as whole tenths: the table's values have one decimal."""

TABLE, PRIVATE = "population:20000", "visits"
USED = ("sex", "age", "region", "diagnosis", PRIVATE)
CURE_QUERIES = (
    "SELECT SUM(visits) FROM population",
    "SELECT SUM(visits) FROM population WHERE sex = 'female'",
    "SELECT SUM(visits) FROM population "
    "WHERE sex = 'male' AND NOT (age >= 90 AND region = 'High Cairn')",
)
FREE = "SELECT sex, COUNT(*) FROM population GROUP BY sex"

Fields = dict[str, Any]
"""A part of the object that `--format json` prints."""


def demo(*, output: OutputOptions | None = None) -> None:
    """Walk through an example in a minute: three sums that expose one patient, and the cure."""
    output = output or OutputOptions()
    with output.progress("auditing and answering"):
        found = run()
    output.emit_plain(as_text(found), found)


def run() -> Fields:
    """Publish the three sums, audit and repair them, publish them with noise; then the cure."""
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
        (exposed,) = Audit.of(QUERIES, table).exposed
        left = repair(QUERIES, table)
        noisy, half_width, spent = noised_sums(exact, table)
    terms = exposed.certificate.terms if exposed.certificate else ()
    weight = {term.place.query: term.coefficient for term in terms}
    weights = [weight.get(number, 0) for number in range(1, len(QUERIES) + 1)]
    return {
        "schema": "casemate.demo/1",
        "queries": [
            {
                "sql": sql,
                "records": int((touched.cell == number).sum()),
                "answer": float(exact[number]),
                "noisy": float(noisy[number]),
            }
            for number, sql in enumerate(QUERIES)
        ],
        "combination": weights,
        "certificate": reason(exposed),
        "record": int(str(exposed.record)),
        "value": float(Fraction(str(exposed.value))),
        "left_out": list(left.dropped),
        "repaired": left.audited.verdict.value,
        "noisy_value": float(sum(w * each for w, each in zip(weights, noisy, strict=True))),
        "half_width": float(half_width),
        "spent": spent,
        "cure": cure(),
    }


def noised_sums(exact: Sequence[Fraction], table: "Table") -> tuple[list[Fraction], Fraction, str]:
    """The same sums with noise, each charged to a ledger first; and the half width at 95 %."""
    from casemate.privacy import Pure
    from casemate.privacy.ledger import IN_MEMORY, answer_once, open_ledger
    from casemate.privacy.noise import discrete_laplace, draw

    (private,) = table.policy.private()
    most = Fraction(str(private.high))  # one person more or less changes a sum by at most this
    price = EPSILON / len(exact)
    scale = most / GRID / price

    def add_noise(value: Fraction) -> bytes:
        return str(int(value / GRID) + draw(discrete_laplace, scale)).encode()

    with open_ledger(IN_MEMORY, dataset="hospital", policy="demo", epsilon=EPSILON) as ledger:
        stored = [
            answer_once(ledger, Pure(price), f"query {n}", sql, partial(add_noise, value))
            for n, (sql, value) in enumerate(zip(QUERIES, exact, strict=True), start=1)
        ]
        spent = ledger.statement()
    noisy = [int(tenths) * GRID for tenths in stored]
    return noisy, 3 * scale * GRID, spent  # noise passes 3 scales with probability exp(-3) < 5 %


def cure() -> Fields:
    """Audit the three sums on the larger table, and ask them again through a session."""
    from casemate.answer import Session
    from casemate.audit import Audit, reason
    from casemate.table import Table

    with Table.open(TABLE, private=[PRIVATE]) as table:
        (exposed,) = Audit.of(CURE_QUERIES, table).exposed
        columns = tuple(each for each in table.policy.columns if each.name in USED)
        policy = table.policy
    with TemporaryDirectory() as folder:
        kept = replace(policy, columns=columns, path=Path(folder) / "casemate.toml")
        with Session(kept) as session:
            free = session.query(FREE)
            measured = [session.query(sql, measure=True) for sql in CURE_QUERIES]
            standing = session.standing()
    return {
        "table": TABLE,
        "record": str(exposed.record),
        "certificate": reason(exposed),
        "measured": [numbers(answer, 0)[0] for answer in measured],
        "free": numbers(free, 1)[:2],
        "left": float(standing.remaining.epsilon),
        "budget": float(standing.budget.epsilon),
    }


def numbers(answer: "Answer", column: int) -> list[Fields]:
    """The numbers of one column of an answer."""
    found = []
    for row in answer.rows:
        cell: Any = row[column]
        shown = {name: float(getattr(cell, name)) for name in ("value", "lo", "hi", "error")}
        told = {"sql": answer.sql, "label": str(row[0]) if column else "", **shown}
        origin = {"source": answer.origin.value, "epsilon": float(answer.cost.epsilon)}
        found.append(told | origin)
    return found


# As text ----------------------------------------------------------------------------------------


def as_text(found: Fields) -> str:
    """The walk, as lines to read."""
    queries, cure = list(enumerate(found["queries"], start=1)), found["cure"]
    low, high = about_one(cure)
    lines = ["A hospital publishes three sums of its patients' blood sugar.", ""]
    for number, each in queries:
        lines.append(f"  {number}. {each['sql']}")
        lines.append(f"     = {each['answer']:.1f} over {each['records']} records")
    lines += [
        "",
        "None of them is about one person. The audit finds what they add up to:",
        "",
        f"  record {found['record']}: blood sugar {found['value']:.1f} = {found['certificate']}",
        "",
        f"The repair: leave out query {', '.join(map(str, found['left_out']))}. What is left was "
        f"audited again: {found['repaired']}.",
        "",
        "All three sums with exact discrete noise, each charged to a ledger before it left:",
        "",
        *(f"  {n}. {each['noisy']:.1f} +- {found['half_width']:.1f} (95 %)" for n, each in queries),
        "",
        f"Combined they say {found['noisy_value']:.1f} for record {found['record']}: no help at "
        "all.",
        f"The ledger: {found['spent']}.",
        "",
        "Six patients are too few to be described both usefully and privately, and that is the",
        "truth about them. Take 20,000 people, and the same three kinds of sums:",
        "",
        *(f"  {number}. {sql}" for number, sql in enumerate(CURE_QUERIES, start=1)),
        "",
        "Published exactly, they give away one man again:",
        "",
        f"  record {cure['record']}: visits = {cure['certificate']}",
        "",
        "Asked through `casemate ask --measure`, each is charged to the ledger before it leaves:",
        "",
        *(f"  {n}. {proven(each)}" for n, each in enumerate(cure["measured"], start=1)),
        "",
        f"Combined they say {low:,.0f} to {high:,.0f} visits for him: nothing.",
        "A question that the public stand-in answers well enough costs nothing more:",
        "",
        f"  {FREE}",
        *(f"  {each['label']}: {proven(each)}" for each in cure["free"]),
        "",
        f"Left: epsilon {cure['left']:.3f} of {cure['budget']:g}, for as many questions as do not "
        f"surprise the stand-in.",
        "Audit your own statistics with `casemate audit`; answer questions with `casemate ask`.",
    ]
    return "\n".join(lines)


def about_one(cure: Fields) -> tuple[float, float]:
    """What the combination that exposes the one man says of him with noisy sums."""
    first, *others = cure["measured"]
    low = first["lo"] - sum(each["hi"] for each in others)
    return low, first["hi"] - sum(each["lo"] for each in others)


def proven(number: Fields) -> str:
    """One number with its typical error and its bounds."""
    bounds = f"proven {number['lo']:,.0f} to {number['hi']:,.0f} (95 %)"
    value, error = f"{number['value']:,.0f}", f"{number['error']:,.0f}"
    return f"{value}, typically off by {error}, {bounds}: {number['source']}"
