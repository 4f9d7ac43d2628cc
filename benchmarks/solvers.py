"""Claims: how fast the private column is solved for, beside SciPy and beside plain methods.

Random subsets: sums of k of n whole numbers up to 200, drawn with repetition and counted once.
Predicates: 9,785 conjunctions of one to four ranges and equalities on seven columns of
`population`, each of which selects at least five of 10,000 people. Halves: sums of a random half.
CPU seconds with one thread; everything compared is run in one process, one after the other, and
kernels are compiled before the clock starts. A solver stops by its own residual: of the equations
as they are for SciPy and plain conjugate gradients, of rows scaled to length 1 for ours.
"""

import random
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import lsmr

from benchmarks.claims import Claim, show
from casemate.attack.solvers.box_squares import box_squares
from casemate.attack.solvers.iteration import Solved
from casemate.attack.solvers.kaczmarz import kaczmarz_blocks, shuffled_rows, swept_squares
from casemate.attack.solvers.least_squares import EquationView, least_squares
from casemate.attack.solvers.sgd import sgd
from casemate.exact import Floats, Passes, Rows
from casemate.published.predicates import BitRows, Predicates, RangeRows
from casemate.query.parse import parse
from casemate.query.sketch import Selection
from casemate.table import Table

LARGEST = 200
REPEATED = 3
FEWEST = 5
PREDICATES = 9_785
RANGES = ("age", "hours", "area", "household_size")
EQUAL = ("sex", "education", "occupation")


def cpu(work: Callable[[], object], times: int = REPEATED) -> float:
    """The least CPU seconds of a few runs: others on the machine can only add to it."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def solved(found: Solved) -> Solved:
    if not found.converged:
        raise RuntimeError("a solver has not converged")
    return found


def subsets(height: int, width: int, size: int, rng: np.random.Generator) -> Rows:
    """Sums of so many unknowns, or a few less where one was drawn twice."""
    drawn = np.sort(rng.integers(0, width, (height, size), np.uint32), axis=1)
    new = np.diff(drawn, axis=1, prepend=width) != 0
    starts = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
    return Rows(starts, drawn[new], None, width)


def halves(height: int, width: int, rng: np.random.Generator) -> Rows:
    inside = rng.integers(0, 2, (height, width)).astype(np.bool_)
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return Rows(starts, np.nonzero(inside)[1].astype(np.uint32), None, width)


def answers(rows: Passes, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Random whole numbers, and what the equations say of them."""
    truth = rng.integers(0, LARGEST + 1, rows.width).astype(np.float64)
    return truth, rows.times(truth) * rows.lengths


def beside_scipy(rng: np.random.Generator) -> list[Claim]:
    rows = subsets(200_000, 100_000, 50, rng)
    _, right = answers(rows, rng)
    ones, columns = np.ones(len(rows.columns)), rows.columns.astype(np.int32)
    theirs = csr_matrix((ones, columns, rows.starts), (rows.height, rows.width))
    peer = cpu(lambda: lsmr(theirs, right, atol=0, btol=1e-6, conlim=0))
    plain = cpu(lambda: solved(least_squares(rows, right)))
    swept = cpu(lambda: solved(swept_squares(rows, right)))
    boxed = cpu(lambda: solved(box_squares(rows, right, low=0.0, high=LARGEST)))
    name = "200,000 x 100,000, 50 ones a row, to 1e-6"
    return [
        Claim(f"{name}: CPU s, SciPy's lsmr", "stated", f"{peer:.2f}"),
        Claim("  least squares, and times lsmr", "<= 1.1", f"{plain:.2f}, {plain / peer:.2f}"),
        Claim("  by sweeps, and times lsmr", "<= 1.1", f"{swept:.2f}, {swept / peer:.2f}"),
        Claim("  in a box, and times least squares", "<= 4", f"{boxed:.2f}, {boxed / plain:.2f}"),
    ]


def pressed(rng: np.random.Generator) -> list[Claim]:
    """Half as many sums as numbers: without a box a good part of the values is outside."""
    rows = subsets(50_000, 100_000, 50, rng)
    _, right = answers(rows, rng)
    plain = cpu(lambda: solved(least_squares(rows, right)))
    boxed = cpu(lambda: solved(box_squares(rows, right, low=0.0, high=LARGEST)))
    return [
        Claim("50,000 x 100,000, to 1e-6: CPU s, least squares", "stated", f"{plain:.2f}"),
        Claim("  in a box, and times that", "<= 4", f"{boxed:.2f}, {boxed / plain:.2f}"),
    ]


def a_million(rng: np.random.Generator) -> list[Claim]:
    rows = subsets(2_000_000, 1_000_000, 20, rng)
    truth, right = answers(rows, rng)
    start = time.process_time()
    plain = solved(least_squares(rows, right, tolerance=1e-4))
    between = time.process_time()
    swept = solved(swept_squares(rows, right, tolerance=1e-4))
    end = time.process_time()
    near = [float(np.mean(np.abs(each.values - truth) < 0.5)) for each in (plain, swept)]
    return [
        Claim(
            "2,000,000 x 1,000,000, 20 ones a row, to 1e-4: CPU s, least squares",
            "<= 10",
            f"{between - start:.1f}, {near[0]:.2%} of the values within 0.5",
        ),
        Claim("  by sweeps", "<= 10", f"{end - between:.1f}, {near[1]:.2%} within 0.5"),
    ]


# Predicates -------------------------------------------------------------------------------------


def conditions(table: Table, count: int, chance: random.Random) -> list[str]:
    """Conjunctions whose constants are values of the table."""
    columns = {name: table.source.read(f'SELECT "{name}" AS v FROM {table.source.relation()}')
               ["v"].values.tolist() for name in (*RANGES, *EQUAL)}  # fmt: skip

    def condition(name: str) -> str:
        low, high = sorted(chance.choices(columns[name], k=2))
        return f"{name} = {low!r}" if name in EQUAL else f"{name} BETWEEN {low} AND {high}"

    return [
        " AND ".join(map(condition, chance.sample(list(columns), chance.randint(1, 4))))
        for _ in range(count)
    ]


def predicates() -> Predicates:
    """Conjunctions that select at least five people."""
    with Table.open("population:10000") as table:
        texts = conditions(table, 2 * PREDICATES, random.Random(0))
        parsed = [parse(f"SELECT COUNT(*) FROM t WHERE {each}", table.policy)[0] for each in texts]
        asked = [Selection(each.predicate) for each in parsed]
        sizes = Predicates.of(asked, table.source).sizes
        enough = [each for each, size in zip(asked, sizes, strict=True) if size >= FEWEST]
        return Predicates.of(enough[:PREDICATES], table.source)


def unscaled(rows: Rows) -> EquationView:
    """The equations as they are, out of those that are scaled to length 1."""
    return EquationView(rows, rows.lengths)


def on_predicates(rng: np.random.Generator) -> list[Claim]:
    found = predicates()
    rows = found.rows()
    _, right = answers(rows, rng)

    def least(equations: Passes) -> Callable[[], Solved]:
        return lambda: solved(least_squares(equations, right, tolerance=1e-4))

    def loosely(solver: Callable[..., Solved]) -> Callable[[], Solved]:
        return lambda: solved(solver(rows, right, random=rng, order=shuffled_rows, tolerance=1e-2))

    plain, scaled = cpu(least(unscaled(rows))), cpu(least(rows))
    swept = cpu(lambda: solved(swept_squares(rows, right, tolerance=1e-4)))
    ours = swept_squares(rows, right, tolerance=1e-4).values
    left = np.linalg.norm(rows.times(ours) * rows.lengths - right) / np.linalg.norm(right)
    boxed = cpu(
        lambda: solved(box_squares(rows, right, low=0.0, high=LARGEST, tolerance=1e-4)), times=1
    )
    name = f"{rows.height:,} predicates x {rows.width:,}, to 1e-4"
    share = len(rows.columns) / rows.height / rows.width
    claims = [
        Claim(f"{name}: CPU s, plain CGLS", "stated", f"{plain:.2f}, {share:.1%} ones"),
        Claim("  least squares, and times plain", "stated", f"{scaled:.2f}, {scaled / plain:.2f}"),
        Claim("  by sweeps, and times plain", "<= 0.7", f"{swept:.2f}, {swept / plain:.2f}"),
        Claim("  what is left then of the equations as they are", "<= 1e-4", f"{left:.1e}"),
        Claim("  in a box, and times least squares", "<= 4", f"{boxed:.2f}, {boxed / scaled:.2f}"),
    ]
    one_by_one = partial(kaczmarz_blocks, size=1)
    for what, solver in (("Kaczmarz", one_by_one), ("blocks", kaczmarz_blocks), ("SGD", sgd)):
        loosely(solver)()
        claims.append(Claim(f"  to 1e-2, {what}", "stated", f"{cpu(loosely(solver)):.3f}"))
    return claims + forms(found, rows, found.bits())


def forms(found: Predicates, rows: Rows, bits: BitRows) -> list[Claim]:
    """A pass there and back, over the same equations in three forms."""
    coded = found.shape.layout.codes.nbytes + sum(t.nbytes for t in found.shape.layout.tables)
    named: list[tuple[str, Passes, int]] = [
        ("stored", rows, rows.columns.nbytes),
        ("as bits", bits, bits.words.nbytes),
        ("decided again", found, coded),
    ]
    return [
        Claim(f"  ms there and back, {name}", "stated", f"{pair(form):.1f}, {size / 1e6:.1f} MB")
        for name, form, size in named
    ]


def pair(equations: Passes) -> float:
    point = np.ones(equations.width)
    equations.transpose_times(equations.times(point))
    return 1000 * cpu(lambda: equations.transpose_times(equations.times(point)))


def passes(rng: np.random.Generator) -> list[Claim]:
    rows = halves(8_192, 2_048, rng)
    stored, as_bits = pair(rows), pair(BitRows.of(rows))
    ends = np.sort(rng.integers(0, 100_001, (2, 100_000)), axis=0)
    ranges = pair(RangeRows(np.arange(100_000), ends[0], ends[1]))
    return [
        Claim("8,192 halves of 2,048: ms there and back, stored", "stated", f"{stored:.1f}"),
        Claim("  as bits", "stated", f"{as_bits:.1f}"),
        Claim("100,000 ranges of 100,000: ms there and back", "stated", f"{ranges:.1f}"),
    ]


def warm(rng: np.random.Generator) -> None:
    """Compile the kernels."""
    rows = subsets(64, 32, 4, rng)
    _, right = answers(rows, rng)
    for solver in (least_squares, swept_squares):
        solver(rows, right)
    box_squares(rows, right, low=0.0, high=LARGEST)


def main() -> None:
    rng = np.random.default_rng(0)
    warm(rng)
    groups = (beside_scipy, pressed, on_predicates, passes, a_million)
    show([claim for group in groups for claim in group(rng)])


if __name__ == "__main__":
    main()
