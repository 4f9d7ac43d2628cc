"""Small attacks through yes/no answers, with values that are easy to recognise in a report."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from casemate.attack.one_bit import OneBitAttack
from casemate.attack.one_bit.attack import OneBitFound, OneBitOptions
from casemate.attack.one_bit.choice import KnownNoise, OneBitLearnerName
from casemate.attack.one_bit.laws import Gaussian, Law, MixtureLaw, Shifted

PAY = (7654.125, 8765.375, 6543.625, 9876.875)
HOSTILE = "</td></style><script>alert('x')</script>\" onload=\"&amp;"
HUMPS = MixtureLaw((Shifted(Gaussian(400), -1000), Shifted(Gaussian(400), 1000)), (0.5, 0.5))


@cache
def found(
    noise: str | Law = "laplace:200",
    queries: int = 2_000,
    told: str = "law",
    column: str = "pay",
) -> OneBitFound:
    """An attack on four people, one a group."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        quoted = '"' + column.replace('"', '""') + '"'
        rows = [f"{place},{pay}" for place, pay in enumerate(PAY, start=1)]
        path.write_text("\n".join([f"id,{quoted}", *rows, ""]))
        return OneBitAttack.of(
            path,
            private=column,
            noise=noise,
            queries=queries,
            dimensions=4,
            bounds=(0.0, 10_000.0),
            options=OneBitOptions(OneBitLearnerName.AUTO, KnownNoise(told)),
            random=np.random.default_rng(7),
        )
