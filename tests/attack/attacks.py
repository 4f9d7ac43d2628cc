"""Small attacks with values that are easy to recognise in a report."""

from collections.abc import Mapping
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
HOSTILE = "</td></style><script>alert('x')</script>\" onload=\"&amp;"


@cache
def exact(column: str = "pay") -> Attacked:
    """An attack on five people that finds every value exactly, and leaves one query out."""
    return _attack(column, [*(f"id <= {place}" for place in range(1, 6)), f'"{column}" > 1'])


@cache
def loose() -> Attacked:
    """An attack that knows two sums only, with noise over them and bounds around."""
    return _attack("pay", ["id < 3", "id > 2"], NoiseLaw("gaussian", 100.0))


@cache
def outside(column: str = "pay") -> Attacked:
    """The same exact numbers, seen by somebody whose table has no such column."""
    return _attack(column, [f"id <= {place}" for place in range(1, 6)], seen=True)


def _attack(
    column: str, predicates: list[str], noise: NoiseLaw | None = None, seen: bool = False
) -> Attacked:
    name = column.replace('"', '""')
    statements = [f'SELECT SUM("{name}") FROM t WHERE {each}' for each in predicates]
    with TemporaryDirectory() as folder:
        path, answers = Path(folder) / "t.csv", Path(folder) / "a.csv"
        rows = [f"{place},{value}" for place, value in enumerate(SECRETS, start=1)]
        header = f'id,"{name}"'
        path.write_text("\n".join([header, *rows, ""]))
        if seen:
            path.write_text("\n".join(["id", *(str(place) for place in range(1, 6)), ""]))
            sums = np.cumsum(SECRETS).tolist()
            lines = [f"{query},{total}" for query, total in enumerate(sums, start=1)]
            answers.write_text("\n".join(["query,answer", *lines, ""]))
        return Attack.of(
            statements,
            path,
            answers=answers if seen else None,
            private=column,
            knowledge=None if noise is None else Knowledge(Fraction(0), Fraction(20_000)),
            options=AttackOptions(noise=noise, tolerance=0.5),
            random=np.random.default_rng(0),
        )


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
