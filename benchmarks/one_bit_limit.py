"""Claim: what a noisy yes/no answer carries, law by law, and what working out the limit costs.

Noise has deviation 1 (Cauchy's has quartiles at 1): the information of a bit at the median, of the
whole answer, how much larger errors are behind the oracle, and where the best threshold is. Then
oracles with K answers about Gaussian noise, and the time of one limit on a long stream.
"""

import math
import time

import numpy as np

from benchmarks.claims import Claim, show
from casemate.attack.one_bit import one_bit_limit
from casemate.attack.one_bit.laws import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    Logistic,
    MixtureLaw,
    RaisedCosine,
    Shifted,
    StudentT,
    Triangular,
    Truncated,
    Uniform,
)
from casemate.attack.one_bit.limit import (
    bit_information,
    edge_pays_after,
    full_information,
    level_information,
)
from casemate.attack.one_bit.streams import Stream, generic, near_basis

ROOT3 = math.sqrt(3)
WAVE = 1 / math.sqrt(1 / 3 - 2 / math.pi**2)  # half width of a raised cosine of deviation 1
HUMPS = MixtureLaw((Shifted(Gaussian(0.4), -1.0), Shifted(Gaussian(0.4), 1.0)), (0.5, 0.5))
LAWS: dict[str, tuple[Law, float, str]] = {  # with their variances
    "Gaussian": (Gaussian(1.0), 1.0, ".637, 1, 1.253, median"),
    "Laplace": (Laplace(1 / math.sqrt(2)), 1.0, "2, 2, 1.000, median"),
    "logistic": (Logistic(ROOT3 / math.pi), 1.0, ".822, 1.097, 1.155, median"),
    "Student, 3 degrees": (StudentT(3.0, 1 / ROOT3), 1.0, "1.62, 2, 1.111, median"),
    "Cauchy": (Cauchy(1.0), 1.0, "-"),
    "triangular": (Triangular(math.sqrt(6)), 1.0, ".667, -, -, median"),
    "raised cosine": (RaisedCosine(WAVE), 1.0, "-"),
    "uniform": (Uniform(ROOT3), 1.0, ".333, inf, -, none"),
    "Gaussian cut at 2": (Truncated(Gaussian(1.0), -2.0, 2.0), 0.77374, ".541, inf, -, none"),
    "Gaussian cut at 3": (Truncated(Gaussian(1.0), -3.0, 3.0), 0.97334, ".623, inf, -, none"),
    "exponential": (Exponential(1.0), 1.0, "1, inf, -, none"),
    "two humps": (HUMPS, 1.0, "supremum, 194 times the median"),
}
LEVELS = {2: ".637", 3: ".810", 4: ".883", 8: ".966", 16: ".991"}
SETTINGS = {
    (16, 2, 1.0, 10**5): ".109",
    (64, 4, 0.1, 10**6): ".0200",
    (256, 8, 0.1, 10**6): ".1125",
}


def law_claim(name: str) -> Claim:
    law, variance, asked = LAWS[name]
    bit, full = bit_information(law), full_information(law)
    price = math.sqrt(full / bit.best) if math.isfinite(bit.best) else math.nan
    said = f"{bit.median * variance:.3f}, {full * variance:.3f}, {price:.3f}, {bit.kind}"
    if bit.kind == "supremum":
        said += f", {bit.best / bit.median:.1f} times the median at {bit.offset:+.3f}"
    if math.isfinite(paid := edge_pays_after(law)):
        said += f"; the edge pays after about {paid:.2g} queries"
    return Claim(name, asked, said)


def stream_claim(setting: tuple[int, int, float, int]) -> Claim:
    size, dimensions, half_width, count = setting
    stream = near_basis(np.random.default_rng(0), size, dimensions, count)
    limit = one_bit_limit(stream, Uniform(size * half_width))
    what = f"median limit, uniform noise, D, d, u, T = {size}, {dimensions}, {half_width}, {count}"
    return Claim(what, SETTINGS[setting], f"{limit.mean:.4f}")


def speed_claim(dimensions: int, count: int) -> Claim:
    stream = generic(np.random.default_rng(0), 64, dimensions, count)
    one_bit_limit(Stream(stream.basis, stream.coordinates[:10]), Gaussian(1.0))  # compiled
    start = time.process_time()
    one_bit_limit(stream, Gaussian(1.0))
    spent = time.process_time() - start
    what = f"limit, full limit, van Trees' bound and baseline, d = {dimensions}, T = {count}"
    return Claim(what, "-", f"{spent:.2f} s of CPU, {spent / count * 1e9:.0f} ns a query")


def main() -> None:
    claims = [law_claim(name) for name in LAWS]
    for levels, asked in LEVELS.items():
        best = level_information(Gaussian(1.0), levels).best
        claims.append(Claim(f"{levels} answers about Gaussian noise", asked, f"{best:.4f}"))
    claims += [stream_claim(setting) for setting in SETTINGS]
    claims += [speed_claim(dimensions, 10**6) for dimensions in (4, 16)]
    show(claims)


if __name__ == "__main__":
    main()
