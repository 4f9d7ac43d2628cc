"""The cure in `casemate demo`: the same shock on 20,000 people, and the same questions privately.

The three sums of the first half are asked again of a shipped table that is large enough for private
answers. Exact, they give away one man. Through a session, which is what `casemate ask` opens, they
come with proven bounds and are charged first; what they say of him is lost in the noise.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casemate.answer.answer import Answer
    from casemate.table.schema import Policy

TABLE = "population:20000"
PRIVATE = "visits"
USED = ("sex", "age", "region", "diagnosis", PRIVATE)
QUERIES = (
    "SELECT SUM(visits) FROM population",
    "SELECT SUM(visits) FROM population WHERE sex = 'female'",
    "SELECT SUM(visits) FROM population "
    "WHERE sex = 'male' AND NOT (age >= 90 AND region = 'High Cairn')",
)
FREE = "SELECT sex, COUNT(*) FROM population GROUP BY sex"


@dataclass(frozen=True)
class Told:
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
    measured: tuple[Told, ...]
    free: tuple[Told, ...]
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
    from casemate.answer.session import Session
    from casemate.audit.exposure import Audit
    from casemate.report.audit import reason
    from casemate.table.table import Table

    with Table.open(TABLE, private=[PRIVATE]) as table:
        (exposed,) = Audit.of(QUERIES, table).exposed
        policy = table.policy
    with TemporaryDirectory() as folder, Session(answered_from(policy, Path(folder))) as session:
        free = session.query(FREE)
        measured = [session.query(sql, measure=True) for sql in QUERIES]
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


def told(answer: "Answer", column: int) -> list[Told]:
    """The numbers of one column of an answer."""
    found = []
    for row in answer.rows:
        cell: Any = row[column]
        label = str(row[0]) if column else ""
        value, lo, hi, error = (float(each) for each in (cell.value, cell.lo, cell.hi, cell.error))
        source, cost = answer.origin.value, float(answer.cost.epsilon)
        found.append(Told(answer.sql, label, value, lo, hi, error, source, cost))
    return found


def as_lines(cure: Cure) -> list[str]:
    """The second half of the walk, as lines to read."""
    lines = [
        "",
        "Six patients are too few to be described both usefully and privately, and that is the",
        "truth about them. Take 20,000 people, and the same three kinds of sums:",
        "",
    ]
    lines += [f"  {number}. {sql}" for number, sql in enumerate(QUERIES, start=1)]
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


def shown(each: Told) -> str:
    """One number with its typical error and its bounds."""
    proven = f"proven {each.lo:,.0f} to {each.hi:,.0f} (95 %)"
    return f"{each.value:,.0f}, typically off by {each.error:,.0f}, {proven}: {each.source}"


def as_fields(cure: Cure) -> dict[str, Any]:
    """The second half as fields of the object that `--format json` prints."""

    def plain(each: Told) -> dict[str, Any]:
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
