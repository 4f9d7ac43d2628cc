"""Claim: value +- 1.96 `error` covers between 90 % and 99 % of the truth on Adult.

`error` is an estimate, not a bound. Epsilon 1 and delta 1e-6 under add-remove, the default plan: a
quarter of the budget on all tables of two attributes and the total, which the stand-in learns. The
gate is not asked: every answer here is the stand-in's. Several seeds of the noise. Adult is the
encoded copy, a file adult_encoded.csv.gz in the folder that CASEMATE_DATA names, binned to
10 x 16 x 7 x 6 x 5 x 2 x 8 x 2 cells. On the parity table (4^8 cells, x3 = x1 + x2 and x6 = x4 + x5
modulo 4) all tables of two attributes are flat: no measurement hints at what they hide, and the
estimate fails there as every estimate from them must.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from benchmarks.claims import Claim, real_table, show
from benchmarks.survey import BUDGET, FILE, adult, parity
from casemate.answer.budget_plan import plan_of
from casemate.answer.schedule import easy_interval
from casemate.grid import (
    Floats,
    GridQuestion,
    LinearCells,
    Marginal,
    MeasuredMarginal,
    Product,
    Scope,
    over_ranges,
    summed_area,
)
from casemate.privacy.noise import half_width
from casemate.surrogate import TypicalErrors
from casemate.surrogate.dense import DenseSurrogate
from casemate.table import Answering

SEEDS = range(101, 106)  # the estimate was made while looking at others
QUESTIONS = 12_000  # ranges over three attributes; a quarter of that over two and over one
HIDDEN = ((0, 1, 2), (3, 4, 5))


def summed(table: Floats, scope: Scope) -> Floats:
    return np.asarray(table.sum(axis=tuple(a for a in range(table.ndim) if a not in scope)))


def learnt(
    table: Floats, seed: int, surprises: Sequence[Scope] = ()
) -> tuple[DenseSurrogate, TypicalErrors]:
    """The stand-in after the default plan's first tables, and what guesses its errors.

    Surprises are tables that are measured later, as when the gate fires.
    """
    plan, draw = plan_of(BUDGET, table.shape, Answering()), np.random.default_rng(seed)
    assert plan.start_law and plan.total_law and plan.surprise_law
    scale, of_total = float(plan.start_law.scale), float(plan.total_law.scale)
    tables = [noised(table, scope, scale, draw) for scope in plan.start]
    stand_in = DenseSurrogate(table.shape, table.sum() + draw.normal(0, of_total), of_total**2)
    stand_in.learn(tables)
    for scope in surprises:
        tables.append(noised(table, scope, float(plan.surprise_law.scale), draw))
        stand_in.update(tables[-1])
    return stand_in, TypicalErrors(stand_in, tables, of_total**2)


def noised(
    table: Floats, scope: Scope, scale: float, draw: np.random.Generator
) -> MeasuredMarginal:
    cells = summed(table, scope)
    values = cells + np.rint(draw.normal(0, scale, cells.shape))
    return MeasuredMarginal(Marginal(scope), values, scale**2)


# Coverage ---------------------------------------------------------------------------------------


@dataclass
class Tally:
    """How often the truth was within so many typical errors, and how wide that was."""

    shares: list[float] = field(default_factory=list)  # of each seed
    errors: list[Floats] = field(default_factory=list)
    questions: int = 0

    def add(self, errors: Floats, deviations: Floats) -> None:
        self.shares.append(float(np.mean(np.abs(deviations) <= 1.96 * errors)))
        self.errors.append(errors)
        self.questions += errors.size

    def claim(self, what: str, asked: str) -> Claim:
        widths = 1.96 * np.concatenate(self.errors)
        spread = f"{min(self.shares):.1%} to {max(self.shares):.1%}"
        middle, high = np.quantile(widths, [0.5, 0.95])
        shown = f"{np.mean(self.shares):.1%} ({spread} by seed); +-{middle:.0f} people"
        return Claim(f"{what}, {self.questions:,}", asked, f"{shown}, 95th percentile {high:.0f}")


def range_over(shape: tuple[int, ...], scope: Scope, draw: np.random.Generator) -> Product:
    masks = {}
    for attribute in scope:
        first, end = sorted(draw.choice(shape[attribute] + 1, 2, replace=False))
        codes = np.arange(shape[attribute])
        masks[attribute] = (codes >= first) & (codes < end)
    return Product(shape, masks)


def random_ranges(
    shape: tuple[int, ...], ways: int, questions: int, draw: np.random.Generator
) -> Iterator[Product]:
    for _ in range(questions):
        scope = tuple(sorted(int(a) for a in draw.choice(len(shape), ways, replace=False)))
        yield range_over(shape, scope, draw)


def cells_of(shape: tuple[int, ...], scope: Scope) -> LinearCells:
    """Every cell of a GROUP BY."""
    sizes = [shape[a] for a in scope]
    return LinearCells(
        tuple(
            (Product(shape, {a: np.arange(shape[a]) == i for a, i in zip(scope, at, strict=True)}),)
            for at in np.ndindex(*sizes)
        )
    )


class Truth:
    """Exact answers, from summed-area tables of the table itself."""

    def __init__(self, table: Floats) -> None:
        self._table, self._areas = table, dict[Scope, Floats]()

    def __call__(self, product: Product) -> float:
        if product.scope not in self._areas:
            self._areas[product.scope] = summed_area(summed(self._table, product.scope))
        ends = product.ranges or ()
        firsts, lasts = [one[0] for one in ends], [one[1] for one in ends]
        return float(over_ranges(self._areas[product.scope], firsts, lasts))


def tallied(
    table: Floats, scopes: Callable[[Scope], bool], surprises: Sequence[Scope] = ()
) -> dict[str, Tally]:
    """Ranges over one, two and three attributes, and all cells of two and three."""
    truth, tallies = Truth(table), dict[str, Tally]()
    for seed in SEEDS:
        stand_in, typical = learnt(table, seed, surprises)
        draw = np.random.default_rng(seed)
        for ways in (3, 2, 1):
            asked = [
                product
                for product in random_ranges(table.shape, ways, QUESTIONS // len(SEEDS), draw)
                if scopes(product.scope)
            ]
            if not asked:
                continue
            errors = np.array(
                [typical.errors(GridQuestion((LinearCells(((one,),)),)))[0][0] for one in asked]
            )
            gaps = stand_in.answers(asked) - np.array([truth(one) for one in asked])
            tallies.setdefault(f"ranges of {ways}", Tally()).add(errors, gaps)
        for ways in (2, 3):
            chosen = [s for s in combinations(range(table.ndim), ways) if scopes(s)]
            if chosen:
                parts = tuple(cells_of(table.shape, scope) for scope in chosen)
                errors = np.concatenate(typical.errors(GridQuestion(parts)))
                gaps = [(stand_in.marginal(s) - summed(table, s)).ravel() for s in chosen]
                tallies.setdefault(f"cells of {ways}", Tally()).add(errors, np.concatenate(gaps))
    return tallies


def coverage(table: Floats, name: str) -> list[Claim]:
    tallies = tallied(table, lambda _: True)
    return [
        tally.claim(f"{name}, {what}", "90 to 99 %" if name == "Adult" else "stated")
        for what, tally in sorted(tallies.items(), reverse=True)
    ]


def failures() -> list[Claim]:
    """The two triples of the parity table that no table of two attributes shows."""
    before = tallied(parity().table, lambda scope: scope in HIDDEN)
    after = tallied(parity().table, lambda scope: scope in HIDDEN, HIDDEN)
    shown = [(f"parity, where it hides, {what}", "fails", each) for what, each in before.items()]
    shown += [(f"parity, once measured, {what}", "stated", each) for what, each in after.items()]
    return [tally.claim(what, asked) for what, asked, tally in shown]


# Widths and times -------------------------------------------------------------------------------


def proven(table: Floats) -> list[Claim]:
    """Half the widths of what is proven, in people, at the defaults."""
    plan = plan_of(BUDGET, table.shape, Answering())
    assert plan.gate is not None and plan.surprise_law is not None
    together = easy_interval(plan.gate, 1000, 0.95)
    one, many = (half_width(plan.surprise_law, [1] * cells, 0.95) for cells in (1, 100))
    return [
        Claim("proven, 1000 easy answers at once", "stated", f"+-{together:,} people"),
        Claim("proven, a measured cell", "stated", f"+-{one:,} people"),
        Claim("proven, a sum of 100 measured cells", "stated", f"+-{many:,} people"),
    ]


def latency(table: Floats) -> list[Claim]:
    _, typical = learnt(table, 1)
    draw, seen = np.random.default_rng(0), set[Scope]()
    first, further = list[float](), list[float]()
    for product in random_ranges(table.shape, 3, 5000, draw):
        asked = GridQuestion((LinearCells(((product,),)),))
        start = time.perf_counter()
        typical.errors(asked)
        (further if product.scope in seen else first).append(time.perf_counter() - start)
        seen.add(product.scope)
    return [
        Claim("the very first error, ms", "stated", f"{first[0] * 1e3:.1f}"),
        Claim("the first error of a scope, p50, ms", "stated", f"{np.median(first) * 1e3:.2f}"),
        Claim("a further error, p50, ms", "<= 0.3", f"{np.median(further) * 1e3:.3f}"),
    ]


def main() -> None:
    hidden = parity().table
    shown = [*coverage(hidden, "parity"), *failures()]
    path = real_table(FILE)
    if path is not None:
        table = adult(path).table
        shown = [*coverage(table, "Adult"), *shown, *proven(table), *latency(table)]
    show(shown)


if __name__ == "__main__":
    main()
