"""Claim: what an analyst gets from `casemate ask` for thirty ordinary questions, and ten thousand.

Everything goes through `Session.simulated`, and the truth comes from DuckDB alone. Adult is the
table with names, a file adult.csv.gz in the folder that CASEMATE_DATA names (32,561 people);
epsilon 1 and delta 1e-6. Asked are a fixed list of 29 questions (counts, shares, averages, medians,
groups) and lists of as many that a seeded generator draws and nobody tuned anything on; about six
columns with nice bins, and about fourteen as `casemate policy init` drafts them. The peer is
`strategy = "gaussian"`, which is told how many questions there will be.

Only the ten most populous groups of a statement count: nothing private says much about the others.
`Proven`: half of hi - lo is at most 10 % of the true value, in the middle one of those cells; for
all of those cells, and for `session_lo` and `session_hi`, it is said beside. `Error`: of a question
the median over cells and seeds, as a ratio to the same of the peer; then the median over questions.
`Beyond twice`: the share of cells that are off by more than twice the ± that is printed.
CASEMATE_SEEDS and CASEMATE_QUESTIONS are the numbers of seeds (20) and of free questions (2,000).
"""

import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import duckdb
import numpy as np

from benchmarks.claims import Claim, real_table, show
from casemate import Refused, Session
from casemate.answer import Answer
from casemate.grid import Noised

FILE = "adult.csv.gz"
SEEDS = int(os.environ.get("CASEMATE_SEEDS", "20"))
QUESTIONS = int(os.environ.get("CASEMATE_QUESTIONS", "2000"))
HELD_OUT = range(101, 106)  # of lists that nobody looked at
USEFUL = 0.10
LARGEST = 10
SIX = """
[columns.sex]
values = ["Female", "Male"]
[columns.race]
values = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]
[columns.education]
values = ["10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc",
  "Bachelors", "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college"]
[columns.age]
type = "integer"
min = 15
max = 94
bins = 16
[columns.hours_per_week]
type = "integer"
min = 0
max = 111
bins = 16
[columns.income]
role = "private"
values = ["<=50K", ">50K"]
"""
BUDGET = "\n[budget]\nepsilon = 1\ndelta = 1e-6\n"
RICH = "AVG(CASE WHEN income = '>50K' THEN 1 ELSE 0 END)"
FIXED = (
    "COUNT(*) FROM t",
    "COUNT(*) FROM t WHERE income = '>50K'",
    "COUNT(*) FROM t WHERE age >= 65",
    "COUNT(*) FROM t WHERE hours_per_week > 40",
    "COUNT(*) FROM t WHERE sex = 'Female' AND income = '>50K'",
    "COUNT(*) FROM t WHERE education = 'Bachelors' AND age < 30",
    "COUNT(*) FROM t WHERE race = 'Black' AND education = 'HS-grad'",
    "COUNT(*) FROM t WHERE sex = 'Female' AND race = 'Black' AND income = '>50K'",
    "COUNT(*) FROM t WHERE age >= 25 AND age < 35 AND sex = 'Male' AND hours_per_week >= 49",
    f"{RICH} FROM t",
    f"{RICH} FROM t WHERE sex = 'Male'",
    f"{RICH} FROM t WHERE education IN ('Masters', 'Doctorate', 'Prof-school')",
    "COUNT(*) FILTER (WHERE sex = 'Female') * 100.0 / COUNT(*) FROM t WHERE income = '>50K'",
    "AVG(age) FROM t",
    "AVG(hours_per_week) FROM t",
    "AVG(age) FROM t WHERE income = '>50K'",
    "AVG(hours_per_week) FROM t WHERE sex = 'Female' AND age >= 60",
    "MEDIAN(age) FROM t",
    "MEDIAN(age) FROM t WHERE sex = 'Female'",
    "MEDIAN(hours_per_week) FROM t WHERE income = '>50K'",
    "sex, COUNT(*) FROM t GROUP BY sex",
    "race, COUNT(*) FROM t GROUP BY race",
    "education, COUNT(*) FROM t GROUP BY education",
    "sex, income, COUNT(*) FROM t GROUP BY sex, income",
    "race, sex, COUNT(*) FROM t GROUP BY race, sex",
    f"sex, {RICH} FROM t GROUP BY sex",
    f"education, {RICH} FROM t GROUP BY education",
    "education, AVG(hours_per_week) FROM t GROUP BY education",
    "education, sex, COUNT(*) FROM t WHERE income = '>50K' GROUP BY education, sex",
)


def ordinary(draw: random.Random) -> Iterator[str]:
    """Questions like those of the fixed list, for ever."""
    texts = {
        "sex": ("Female", "Male"),
        "race": ("White", "Black", "Asian-Pac-Islander"),
        "education": ("HS-grad", "Some-college", "Bachelors", "Masters", "11th", "Assoc-voc"),
        "income": ("<=50K", ">50K"),
    }

    def condition(name: str) -> str:
        if name in texts:
            return f"{name} = '{draw.choice(texts[name])}'"
        low = draw.randrange(20, 61)
        between = f"{name} >= {low} AND {name} < {low + draw.randrange(5, 31)}"
        return draw.choice([f"{name} >= {low}", f"{name} < {low}", between])

    while True:
        columns = draw.sample([*texts, "age", "hours_per_week"], draw.randrange(1, 4))
        keys = [name for name in columns if name in texts][: draw.randrange(3)]
        asked = [condition(name) for name in columns if name not in keys]
        number = draw.choice(["age", "hours_per_week"])
        measures = ["COUNT(*)", "COUNT(*)", RICH, f"AVG({number})", f"MEDIAN({number})"]
        shown = ", ".join([*keys, draw.choice(measures)])
        where = f" WHERE {' AND '.join(asked)}" if asked else ""
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        yield f"{shown} FROM t{where}{group}"


def drawn(seed: int, number: int) -> list[str]:
    """So many different questions of a generator."""
    found: dict[str, None] = {}
    for question in ordinary(random.Random(seed)):
        found.setdefault(question)
        if len(found) == number:
            return list(found)
    return []


# The truth --------------------------------------------------------------------------------------


class Fact(NamedTuple):
    """The true number of a group; None where SQL shows NULL."""

    people: int
    number: float | None


Facts = Mapping[tuple[Any, ...], Fact]


class Truth:
    """Exact answers, by DuckDB from the file itself."""

    def __init__(self, path: Path) -> None:
        self._engine, self._known = duckdb.connect(), dict[str, Facts]()
        self._engine.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{path}')")

    def __call__(self, question: str) -> Facts:
        """The most populous groups of a question, by their keys."""
        if question not in self._known:
            shown, rest = question.split(" FROM t", 1)
            rows = self._engine.execute(f"SELECT {shown}, COUNT(*) FROM t{rest}").fetchall()
            rows = sorted(rows, key=lambda row: -row[-1])[:LARGEST]
            self._known[question] = {
                row[:-2]: Fact(row[-1], None if row[-2] is None else float(row[-2])) for row in rows
            }
        return self._known[question]


# What was answered ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """One answered cell beside its truth."""

    truth: float
    value: float
    error: float | None
    alone: tuple[float, float] | None
    session: tuple[float, float] | None

    @property
    def off(self) -> float:
        return abs(self.value - self.truth)

    @property
    def beyond(self) -> bool:
        """Whether it is off by more than twice what is printed after ±."""
        return self.error is not None and self.off > 2 * self.error + 1e-9

    def width(self, session: bool) -> float:
        """Half of what is proven, as a share of the truth."""
        ends = self.session if session else self.alone
        if ends is None or not self.truth:
            return math.inf
        return (ends[1] - ends[0]) / 2 / abs(self.truth)

    def held(self, session: bool) -> bool:
        low, high = (self.session if session else self.alone) or (-math.inf, math.inf)
        room = 1e-9 * max(1.0, abs(self.truth))
        return low - room <= self.truth <= high + room


def seen(answer: Answer, facts: Facts) -> list[Seen]:
    """The cells of an answer that have a true number."""
    found = []
    for *keys, cell in answer.rows:
        fact = facts.get(tuple(keys))
        if fact is None or fact.number is None or not isinstance(cell, Noised):
            continue
        value = 0.0 if cell.value is None else float(cell.value)  # type: ignore[arg-type]  # a number
        found.append(Seen(fact.number, value, cell.error, cell.band(False), cell.band(True)))
    return found


@dataclass
class Tally:
    """What was answered to some lists of questions, and the CPU seconds it took."""

    answers: list[tuple[str, list[Seen]]] = field(default_factory=list)  # of every session
    sessions: int = 0
    refused: int = 0
    seconds: float = 0.0

    @property
    def cells(self) -> list[Seen]:
        return [cell for _, cells in self.answers for cell in cells]

    def outside(self) -> str:
        """The shares of cells whose bounds do not hold: those alone, those of the session."""
        shares = (np.mean([not cell.held(level) for cell in self.cells]) for level in (False, True))
        return ", ".join(f"{share:.2%}" for share in shares)

    def beyond(self) -> str:
        """The share of cells that are off by more than twice what is printed."""
        return f"{np.mean([cell.beyond for cell in self.cells]):.1%}"

    def useful(self, session: bool, every: bool = False) -> float:
        """Of how many questions of a list the proof is narrow, in the middle cell or in every."""
        most = max if every else np.median
        widths = ([cell.width(session) for cell in cells] for _, cells in self.answers)
        return sum(float(most(each)) <= USEFUL for each in widths) / self.sessions

    def surprising(self) -> str:
        """Of how many questions of a list most cells are off by more than twice their ±; any."""
        beyond = [np.mean([cell.beyond for cell in cells]) for _, cells in self.answers]
        return ", ".join(
            f"{sum(b > most for b in beyond) / self.sessions:.1f}" for most in (0.5, 0)
        )

    def errors(self) -> dict[str, float]:
        """The median error of each question."""
        found = defaultdict[str, list[float]](list)
        for question, cells in self.answers:
            found[question] += [cell.off for cell in cells]
        return {question: float(np.median(errors)) for question, errors in found.items()}

    def ask(self, policy: Path, questions: Sequence[str], truth: Truth, seed: int) -> None:
        """Put a list of questions to a new session."""
        began = time.process_time()
        with Session.simulated(policy, seed) as session:
            for question in questions:
                self.put(session, question, truth)
        self.seconds += time.process_time() - began
        self.sessions += 1

    def put(self, session: Session, question: str, truth: Truth) -> Answer | None:
        """Put one question; nothing is counted of one that is about nobody."""
        try:
            answer = session.query(f"SELECT {question}")
        except Refused:
            self.refused += 1
            return None
        if cells := seen(answer, truth(question)):
            self.answers.append((question, cells))
        return answer


# Policies ---------------------------------------------------------------------------------------


def drafted(table: Path, folder: Path) -> str:
    """The table and columns that `casemate policy init` drafts, without the survey's weights."""
    draft = folder / "draft.toml"
    command = [sys.executable, "-m", "casemate", "policy", "init", str(table)]
    subprocess.run([*command, "--output", str(draft), "--quiet"], check=True, capture_output=True)
    sections = draft.read_text().split("\n\n")
    kept = [each for each in sections if "[columns.fnlwgt]" not in each]
    return "\n\n".join(kept)


# Figures ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """Columns that are asked about, and what is asked of answers there."""

    name: str
    ours: Path
    peer: Path
    asked: str  # questions of 29 that are proven to 10 %

    @classmethod
    def of(cls, name: str, columns: str, folder: Path, asked: str) -> Self:
        told = f'[answer]\nstrategy = "gaussian"\nquestions = {len(FIXED)}\n'
        ours, peer = (folder / f"{name} {which}.toml" for which in ("ours", "peer"))
        for path, answering in ((ours, ""), (peer, told)):
            path.write_text(f"{columns}{BUDGET}{answering}")
        return cls(name, ours, peer, asked)

    def show(self, what: str, lists: Sequence[Sequence[str]], truth: Truth, seeds: int) -> None:
        """Put lists in turn to so many sessions, and show what they were answered."""
        ours, peer = Tally(), Tally()
        for seed in range(seeds):
            for tally, policy in ((ours, self.ours), (peer, self.peer)):
                tally.ask(policy, lists[seed % len(lists)], truth, seed)
        questions = len(lists[0])
        print(f"\n{self.name}, {what}: {questions} questions in {seeds} sessions; peer")
        show(figures(self.asked, ours, peer))


def figures(proven: str, ours: Tally, peer: Tally) -> list[Claim]:
    """What a strategy and its peer answered to the same questions."""
    both, theirs = (ours, peer), peer.errors()
    ratios = [error / theirs[q] for q, error in ours.errors().items() if theirs.get(q)]

    def beside(shown: Callable[[Tally], str]) -> str:
        return "; ".join(map(shown, both))

    def narrow(tally: Tally, every: bool) -> str:
        return f"{tally.useful(False, every):.1f}, {tally.useful(True, every):.1f}"

    return [
        Claim("proven to 10 %: alone, session", proven, beside(lambda t: narrow(t, False))),
        Claim("the same in all ten cells", "-", beside(lambda t: narrow(t, True))),
        Claim("median error over the peer's", "at most 1.5", f"{np.median(ratios):.2f}"),
        Claim("cells beyond twice ±", "at most 7 %", beside(Tally.beyond)),
        Claim("questions with most, with any cell beyond", "-", beside(Tally.surprising)),
        Claim("cells outside: alone, session", "at most 5 %", beside(Tally.outside)),
        Claim("refused", "0", beside(lambda t: str(t.refused))),
        Claim("CPU seconds a session", "-", beside(lambda t: f"{t.seconds / t.sessions:.2f}")),
    ]


def free(setting: Setting, truth: Truth) -> None:
    """Show whether questions after the fixed ones cost anything, and whether bounds hold."""
    paid, tally = 0, Tally()
    questions = [q for q in drawn(99, QUESTIONS) if q not in FIXED][: QUESTIONS - len(FIXED)]
    with Session.simulated(setting.ours, 99) as session:
        for question in FIXED:
            session.query(f"SELECT {question}")
        began = time.process_time()
        for question in questions:
            answer = tally.put(session, question, truth)
            paid += answer is not None and answer.cost.epsilon > 0
        seconds = time.process_time() - began
    print(f"\n{setting.name}: questions {len(FIXED) + 1} to {QUESTIONS:,} of one session")
    show(
        [
            Claim("paid for; refused", "0; 0", f"{paid}; {tally.refused}"),
            Claim("cells outside: alone, session", "at most 5 %", tally.outside()),
            Claim("cells beyond twice ±", "at most 7 %", tally.beyond()),
            Claim("CPU ms each, its truth included", "-", f"{1000 * seconds / len(questions):.1f}"),
        ]
    )


def main() -> None:
    table = real_table(FILE)
    if table is None:
        return
    truth, lists = Truth(table), [drawn(seed, len(FIXED)) for seed in HELD_OUT]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        six = Setting.of("six columns", f'[table]\nsource = "{table}"\n{SIX}', folder, "-, 18")
        wide = Setting.of("fourteen columns", drafted(table, folder), folder, "-, 14")
        six.show("the fixed list", [FIXED], truth, SEEDS)
        six.show("drawn lists", lists, truth, SEEDS)
        wide.show("the fixed list", [FIXED], truth, max(1, SEEDS // 4))
        free(six, truth)
    print(f"CPU seconds in all: {time.process_time():.0f}")
