"""Claim: what the first tables prove is several times narrower than what the gate proves.

Epsilon 1, delta 1e-6, add-remove, the policy's defaults. Half-widths of 95 % in people. They follow
from the grid and the noise alone, so no data are needed for counts: six columns as a policy for
Adult may declare them (sex, race, education, age, hours, income; bins of 16), and the fifteen that
`casemate policy init` drafts. "For any question" holds for whatever is chosen after the noise was
seen; "declared" is that of a single question that was named before: by its formula, and as a policy
over Adult with `questions = "report.sql"` answers it with seeded noise. Three columns are
asked of the product's own construction over Adult with seeded noise.
"""

import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, real_table, show
from benchmarks.survey import BUDGET, FILE, PEOPLE, adult, construction, ranges
from casemate.answer.budget_plan import plan_of
from casemate.answer.question_family import QuestionFamily
from casemate.answer.schedule import easy_interval
from casemate.answer.session import Session
from casemate.answer.table_proofs import TableProofs
from casemate.grid import Effects, MeasuredTable, Noised, Product, TableQuestion, all_codes
from casemate.privacy.noise import linear_width
from casemate.table import Answering

CHANCE = 0.05
SIX = (3, 6, 17, 17, 17, 3)
FIFTEEN = (17, 10, 17, 17, 17, 8, 16, 7, 6, 3, 17, 17, 17, 43, 3)
THREE_COLUMN_QUESTIONS = 300


def proofs_of(shape: tuple[int, ...]) -> TableProofs:
    """The proofs of a default plan, around tables of nothing."""
    plan = plan_of(BUDGET, shape, Answering())
    laws = {(): plan.total_law, **dict.fromkeys(plan.start, plan.start_law)}
    tables = tuple(
        MeasuredTable(
            TableQuestion(all_codes(scope, shape), start=True),
            np.zeros([shape[a] for a in scope]),
            law,
        )
        for scope, law in laws.items()
    )
    return TableProofs(QuestionFamily(shape, plan.start), Effects(shape, tables))


def product(shape: tuple[int, ...], **codes: Sequence[int]) -> Product:
    chosen = {
        int(name[1:]): np.isin(np.arange(shape[int(name[1:])]), c) for name, c in codes.items()
    }
    return Product(shape, chosen)


def widths(proofs: TableProofs, asked: Product) -> tuple[float, float]:
    """For whoever chooses afterwards, and declared beforehand."""
    number = proofs.prove((asked,), CHANCE)
    assert number is not None
    noise = proofs.effects.estimate(asked).noise
    return number.width, linear_width(noise, proofs.effects.draws, CHANCE)


def counts() -> list[Claim]:
    six, fifteen = proofs_of(SIX), proofs_of(FIFTEEN)
    questions = {
        "sex": (product(SIX, a0=[0]), "160; 66"),
        "a level of education": (product(SIX, a2=[5]), "145; 58"),
        "a level and age from an edge on": (product(SIX, a2=[5], a3=range(11, 16)), "265; 108"),
        "the same, the middle edge": (product(SIX, a2=[5], a3=range(8, 16)), "stated"),
        "an 8 x 8 range": (product(SIX, a2=range(3, 11), a3=range(2, 10)), "630; 260"),
        "four levels of sixteen": (product(SIX, a2=[1, 4, 6, 9]), "stated"),
    }
    wider = {
        "sex": (product(FIFTEEN, a9=[0]), "290"),
        "a level of education": (product(FIFTEEN, a3=[5]), "290"),
        "a level and age from an edge on": (product(FIFTEEN, a3=[5], a0=range(11, 16)), "680"),
    }
    claims = []
    for name, proofs, several in (("six", six, questions), ("fifteen", fifteen, wider)):
        for what, (asked, wanted) in several.items():
            any_, declared = widths(proofs, asked)
            shown = f"{any_:.0f}; {declared:.0f} declared"
            claims.append(Claim(f"{name} columns, {what}, for any question", wanted, shown))
    return claims


def gate() -> Claim:
    schedule = plan_of(BUDGET, SIX, Answering()).gate
    assert schedule is not None
    found = easy_interval(schedule, 1, 1 - CHANCE)
    return Claim("the gate, its first question (without sums)", "1,700 before", f"{found:,}")


def three_columns() -> list[Claim]:
    path = real_table(FILE)
    if path is None:
        return []
    survey = adult(path)
    room = construction(survey, Answering(), 11)
    stream = ranges(survey.shape, np.random.default_rng(11))
    asked = list(islice(stream, THREE_COLUMN_QUESTIONS))
    truths = survey.cells.values([each.parts[0].products[0] for each in asked])
    found = [room.ask(each).parts[0][0] for each in asked]
    ends = np.array([(each.lo, each.hi) for each in found], np.float64)
    half, values = (ends[:, 1] - ends[:, 0]) / 2, np.array([each.value for each in found])
    outside = int(((truths < ends[:, 0]) | (truths > ends[:, 1])).sum())
    proofs = sorted({str(each.proof) for each in found})
    shares = ", ".join(f"{sum(str(each.proof) == p for each in found)} {p}" for p in proofs)
    errors = np.abs(values - truths) / PEOPLE
    return [
        Claim(
            f"Adult, {len(asked)} ranges over three columns, median half-width",
            "<= 850",
            f"{np.median(half):.0f}; {outside} outside; {shares}",
        ),
        Claim("the same, errors", "stated", f"mean {errors.mean():.4f}, max {errors.max():.4f}"),
    ]


POLICY = """
[table]
source = "{path}"
[columns.sex]
type = "text"
values = ["Female", "Male"]
[columns.race]
type = "text"
values = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]
[columns.education]
type = "text"
values = ["10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc",
    "Bachelors", "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college"]
[columns.age]
type = "integer"
min = 17
max = 90
bins = 16
[columns.hours_per_week]
type = "integer"
min = 1
max = 99
bins = 16
[columns.income]
type = "text"
values = ["<=50K", ">50K"]
[budget]
epsilon = 1
delta = 1e-6
"""
LARGEST_LEVELS = 10
DECLARING = '[answer]\nquestions = "report.sql"\n'

REPORT = {
    "sex": ("SELECT COUNT(*) FROM t WHERE sex = 'Male'", 66),
    "a level of education": ("SELECT COUNT(*) FROM t WHERE education = 'HS-grad'", 58),
    "a level and age from an edge on": (
        "SELECT COUNT(*) FROM t WHERE education = 'HS-grad' AND age >= 68",
        108,
    ),
    "an 8 x 8 range": (
        "SELECT COUNT(*) FROM t WHERE age >= 27 AND age < 63 AND education IN ('1st-4th', "
        "'5th-6th', '7th-8th', '9th', 'Assoc-acdm', 'Assoc-voc', 'Bachelors', 'Doctorate')",
        260,
    ),
}
"""What a policy declares in advance, and the half-width that was wanted of each."""


def declared() -> list[Claim]:
    path = real_table("adult.csv.gz")
    if path is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "adult.toml"
        policy.write_text(POLICY.format(path=path) + DECLARING)
        (Path(folder) / "report.sql").write_text(";\n".join(sql for sql, _ in REPORT.values()))
        with Session.simulated(policy, seed=1) as session:
            rows = [session.query(sql).rows for sql, _ in REPORT.values()]
    claims = []
    for (what, (_, wanted)), ((cell,),) in zip(REPORT.items(), rows, strict=True):
        low, high = cell.band(session=False)  # type: ignore[union-attr,misc]  # it is proven
        claims.append(Claim(f"Adult, declared: {what}", f"{wanted}", f"{(high - low) / 2:.0f}"))
    return claims


def means(answering: str, wanted: str) -> list[Claim]:
    """By what a policy says of answering: nothing, or which statements it declares."""
    path = real_table("adult.csv.gz")
    if path is None:
        return []
    sql = "SELECT education, COUNT(*), AVG(hours_per_week) FROM t GROUP BY education"
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "adult.toml"
        policy.write_text(POLICY.format(path=path) + answering)
        (Path(folder) / "report.sql").write_text(sql)
        with Session.simulated(policy, seed=1) as session:
            rows = session.query(sql).rows
    found = [(count, mean) for _, count, mean in rows if isinstance(count, Noised)]
    found.sort(key=lambda row: -row[0].value)  # type: ignore[operator]  # numbers
    bands = [mean.band(session=False) for _, mean in found[:LARGEST_LEVELS]]  # type: ignore[union-attr]
    half = [(high - low) / 2 for low, high in bands]  # type: ignore[misc]  # all are proven
    shown = f"{np.median(half):.1f} h; {min(half):.1f} to {max(half):.1f}"
    what = f"mean hours by education, the {LARGEST_LEVELS} largest levels, median half-width"
    how = "declared" if answering else "for any question"
    return [Claim(f"{what} (32,561 people), {how}", wanted, shown)]


def main() -> None:
    averages = [*means("", "5 h"), *means(DECLARING, "2.5 h")]
    show([*counts(), gate(), *declared(), *averages, *three_columns()])


if __name__ == "__main__":
    main()
