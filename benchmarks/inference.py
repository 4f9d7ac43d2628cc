"""Claim: how much of what an attack gets right is disclosure, and how much anybody would guess.

The release is the exact SUM of a private number in every table of two public columns; it is
reconstructed by least squares within the number's bounds. Beside the fraction right stand the
baselines: the best single value, and the best prediction from the public columns and the same
release without the target. `rand_hie` has up to five rows a person, who leaves with all of them.
"""

import time
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from benchmarks.claims import Claim, show
from casemate.attack.features import Features
from casemate.attack.problem_from_queries import Evidence
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.reconstruct.reconstruction import Reconstruction, Solver
from casemate.attack.score import score
from casemate.attack.score.leave_one_out import solve_squares
from casemate.attack.score.scoring import Score
from casemate.attack.subjects import Subjects
from casemate.exact import Rows
from casemate.table import Table

TARGETS = 200
CASES = (
    ("population:2000", "visits", ("area", "age", "occupation", "education", "household_size")),
    ("population:2000", "income", ("area", "age", "occupation", "education", "household_size")),
    ("rand_hie", "mdvis", ("plan", "site", "year", "xage", "female", "educdec")),
)


def statements(private: str, public: Sequence[str]) -> list[str]:
    """Every table of two public columns; ages by whole years."""
    written = {name: "floor(xage)" if name == "xage" else name for name in public}
    pairs = combinations(written.values(), 2)
    return [f"SELECT {a}, {b}, SUM({private}) FROM t GROUP BY {a}, {b}" for a, b in pairs]


def scored(name: str, private: str, public: Sequence[str]) -> Score:
    """Reconstruct a private column of a shipped table, and judge that."""
    with Table.open(name) as table:
        found = Evidence.of(statements(private, public), table)
        truth = found.truth
        subjects = found.subjects(private, Features.of(table.policy, table.source))
    if truth is None:
        raise SystemExit(f"{name} has no private column")
    return _judged(found.problem, truth, subjects)


def _judged(problem: Problem, truth: np.ndarray, subjects: Subjects | None) -> Score:
    values, random = solve_squares(problem), np.random.default_rng(1)
    unsure = np.full(len(values), np.inf)
    made = Reconstruction(
        Solver.BOX, values, -unsure, unsure, np.full(len(values), np.nan), 0.9, 0.0, 1, 0.0
    )
    return score(made, truth, problem=problem, subjects=subjects, targets=TARGETS, random=random)


def rows(name: str, private: str, found: Score) -> list[Claim]:
    """The score as claims."""
    told, base = found.comparison, found.baseline
    means = "-" if base.prior_mean is None else f"{base.prior_mean:.3f}"
    guesses = f"{means}, {base.majority:.3f}, {base.marginal:.3f}"
    between = f"{told.difference:.3f} [{told.low:.3f}, {told.high:.3f}]"
    strata = ", ".join(f"{each.which} {each.comparison.difference:.3f}" for each in found.strata)
    where = f"{name} {private}"
    return [
        Claim(f"{where}: right, of {found.records}", "-", f"{found.recovered:.3f}"),
        Claim(f"{where}: prior mean, majority, marginal", "-", guesses),
        Claim(f"{where}: attack less leave one out, 90 %", "-", between),
        Claim(f"{where}: the same by kind of target", "-", strata),
    ]


def cost() -> Claim:
    """200 targets, 2,000 bits, 4,000 sums of 50 each."""
    random = np.random.default_rng(0)
    chosen = np.argsort(random.random((4_000, 2_000)), axis=1)[:, :50].astype(np.uint32)
    equations = Rows(np.arange(4_001, dtype=np.int64) * 50, chosen.ravel(), None, 2_000)
    truth = random.integers(0, 2, 2_000).astype(np.float64)
    answers = np.rint(equations.times(truth) * equations.lengths)
    problem = Problem.of(equations, answers, Prior(low=0.0, high=1.0, whole=True))
    public = {f"c{i}": random.integers(0, 5, 2_000) for i in range(6)}
    public |= {"age": random.integers(0, 90, 2_000), "town": random.integers(0, 9, 2_000)}
    subjects = Subjects.alone(2_000, Features.from_arrays(public))
    start = time.process_time()
    _judged(problem, truth, subjects)
    return Claim(
        "200 targets, 2,000 x 4,000, 8 public columns: CPU s",
        "at most 10",
        f"{time.process_time() - start:.1f}",
    )


def main() -> None:
    found = [claim for case in CASES for claim in rows(*case[:2], scored(*case))]
    show([*found, cost()])


if __name__ == "__main__":
    main()
