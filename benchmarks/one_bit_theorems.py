"""Claim: what the theorems of source document 000 say, beside what happens.

Theorem 2.1 bounds the average error of OnlineBisection by about 1 / sqrt(T); so it falls, far above
the least error possible. Corollary 7.1 promises sqrt(D) log(T) / sqrt(T) on fresh queries, which
needs a last phase that streams of this length never reach. Theorem 6.1 says that nobody does better
than 1 / sqrt(T), even with the oracle off: true of smooth noise, not of uniform noise, where
Chebyshev's fit of a line errs like 1 / T.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import linprog

from benchmarks.claims import Claim, show
from casemate.attack.one_bit import one_bit_limit
from casemate.attack.one_bit.bisection import BisectionSearch
from casemate.attack.one_bit.bisection_simulation import simulate
from casemate.attack.one_bit.laws import Law, RaisedCosine, Uniform
from casemate.attack.one_bit.limit import half_of_everything
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import near_basis
from casemate.papers import batch_claim

ONLINE = ((4, 2, 0.1), (16, 2, 0.1), (64, 4, 0.01))
BATCH = ((16, 2, 1.0, 10**5), (64, 4, 0.1, 10**6), (64, 4, 1.0, 10**6))
COUNTS = (300, 1_000, 3_000, 10_000)
RUNS = 100


def played(size: int, dimensions: int, half_width: float, count: int) -> tuple[float, ...]:
    """One stream: average error, limit, one half, and the error on fresh queries at the end."""
    rng = np.random.default_rng([size, count])
    stream, fresh = (near_basis(rng, size, dimensions, n) for n in (count, 10_000))
    w, law = rng.random(size), Uniform(size * half_width)
    secret, search = stream.basis @ w, BisectionSearch(size, dimensions, law, horizon=count)
    run = simulate(search, stream.coordinates, secret, law, rng)
    final = float(np.abs(fresh.coordinates @ (search.box.middle - secret)).mean())
    half = half_of_everything(fresh.queries, w)
    return run.error, one_bit_limit(stream, law).mean, half, final


def online(size: int, dimensions: int, half_width: float) -> Iterator[Claim]:
    what = f"Theorem 2.1, D, d, u = {size}, {dimensions}, {half_width}"
    errors = []
    for count in (10**5, 10**6):
        error, limit, half, _ = played(size, dimensions, half_width, count)
        errors.append(error)
        said = f"{error:.4f}; limit {limit:.5f}, ratio {error / limit:.0f}; one half {half:.2f}"
        yield Claim(f"{what}, T = {count}", "-", said)
    slope = math.log10(errors[1] / errors[0])
    yield Claim(f"{what}: slope of the error in T", "-.55 .. -.40", f"{slope:.2f} (one run)")


def batch(size: int, dimensions: int, half_width: float, count: int) -> Claim:
    *_, final = played(size, dimensions, half_width, count)
    what = f"Corollary 7.1, D, d, u, T = {size}, {dimensions}, {half_width}, {count}"
    return Claim(what, f"<= {batch_claim(size, count):.3f} (printed)", f"{final:.3f}")


def least_squares(queries: Floats, answers: Floats) -> Floats:
    found, *_ = np.linalg.lstsq(queries, answers)
    return np.asarray(found)


def least_worst(queries: Floats, answers: Floats) -> Floats:
    """Chebyshev's fit: the line whose largest residual is smallest."""
    side = np.ones((len(queries), 1))
    found = linprog(
        [0, 0, 1],
        A_ub=np.block([[queries, -side], [-queries, -side]]),
        b_ub=np.concatenate((answers, -answers)),
        bounds=[(None, None), (None, None), (0, None)],
    )
    assert found.x is not None
    return np.asarray(found.x[:2])


def without_oracle(
    fit: Callable[[Floats, Floats], Floats], law: Law, power: float, asked: str
) -> Claim:
    rng, secret, scaled = np.random.default_rng(0), np.array([0.3, 0.6]), []
    for count in COUNTS:
        errors = []
        for _ in range(RUNS if count < 3_000 else RUNS // 5):
            queries = np.column_stack((rng.random(count), np.ones(count)))
            fitted = fit(queries, queries @ secret + law.sample(rng, count))
            errors.append(np.abs(queries @ (fitted - secret)).mean())
        scaled.append(f"{np.mean(errors) * count**power:.2f}")
    name = fit.__name__.replace("_", " ")
    return Claim(f"Theorem 6.1, {law.name} noise, {name}, T = 300 .. 1e4", asked, " ".join(scaled))


def main() -> None:
    claims = [claim for setting in ONLINE for claim in online(*setting)]
    claims += [batch(*setting) for setting in BATCH]
    smooth, edged = RaisedCosine(1.0), Uniform(1.0)
    claims.append(without_oracle(least_squares, smooth, 0.5, "error sqrt(T) flat"))
    claims.append(without_oracle(least_worst, edged, 1.0, "error T flat (erratum)"))
    show(claims)


if __name__ == "__main__":
    main()
