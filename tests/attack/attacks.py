"""Small attacks with values that are easy to recognise in a report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from casemate.attack import Attack
from casemate.attack.attack import Attacked, AttackOptions
from casemate.attack.reconstruct.problem import NoiseLaw
from casemate.attack.score.predictor import Baselines
from casemate.attack.score.scoring import PairedComparison, Score, Stratum
from casemate.published import Knowledge

SECRETS = (7654.125, 8765.375, 6543.625, 9876.875, 5432.25)


SUMS = [f"id <= {place}" for place in range(1, 6)]


@cache
def exact() -> Attacked:
    """An attack on five people that finds every value exactly, and leaves one query out."""
    return _attack([*SUMS, "pay > 1"])


@cache
def loose() -> Attacked:
    """An attack that knows two sums only, with noise over them and bounds around."""
    return _attack(["id < 3", "id > 2"], NoiseLaw("gaussian", 100.0))


@cache
def outside() -> Attacked:
    """The same exact numbers, seen by somebody whose table has no such column."""
    return _attack(SUMS, seen=True)


def _attack(predicates: list[str], noise: NoiseLaw | None = None, seen: bool = False) -> Attacked:
    rows = [(place, *([] if seen else [value])) for place, value in enumerate(SECRETS, start=1)]
    with TemporaryDirectory() as folder:
        path, answers = Path(folder) / "t.csv", Path(folder) / "a.csv"
        _write(path, ("id", "pay")[: len(rows[0])], rows)
        _write(answers, ("query", "answer"), enumerate(np.cumsum(SECRETS).tolist(), start=1))
        return Attack.of(
            [f"SELECT SUM(pay) FROM t WHERE {each}" for each in predicates],
            path,
            answers=answers if seen else None,
            private="pay",
            knowledge=None if noise is None else Knowledge(Fraction(0), Fraction(20_000)),
            options=AttackOptions(noise=noise, tolerance=0.5),
            random=np.random.default_rng(0),
        )


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [header, *rows]))


def judged(
    recovered: float = 0.75, low: float = 0.25, high: float = 0.5, records: int = 40
) -> Score:
    """A score whose comparison lies between two numbers."""
    middle = (low + high) / 2
    whole = PairedComparison(40, recovered, recovered - middle, middle, low, high)
    rare = PairedComparison(10, 1.0, 0.5, 0.5, 0.125, 0.75)
    return Score(
        records,
        0.5,
        recovered,
        recovered,
        {0.5: 0.0, 0.9: 0.6, 0.99: 3.0, 1.0: 17.0},
        0.875,
        Baselines(None, None, 0.4, 0.3, recovered - middle),
        0.9,
        whole,
        (Stratum("prevalence", "rare", rare), Stratum("uniqueness", "shared", whole)),
        {},
    )


def scored(attacked: Attacked, scores: Mapping[str, Score]) -> Attacked:
    """The same attack with other scores."""
    return replace(attacked, scores=scores)
