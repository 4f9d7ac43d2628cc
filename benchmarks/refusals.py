"""Claims: refusals of an auditor that looks give values away, and those of the online one do not.

People in blocks of four with different values. Somebody asks for the maximum of a block, then for
the maximum of three of the four; where the second is refused, they guess that the one left out has
the maximum of the four. The auditor that looks refuses when the true answer would expose somebody;
the online one when some possible answer would. Its guesses are right one time in four, as without
asking, up to three standard errors.
"""

import math
from random import Random

from benchmarks.claims import Claim, show
from casemate.audit.order.case import ExposedValue
from casemate.audit.order.decide import audit_order
from casemate.audit.order.online import OnlineExtremes
from casemate.exact import Domain, OrderQuestion

BLOCKS = 2_000
SEED = 20_050_613


def looks(values: list[int], left_out: int) -> bool:
    """Whether the true answers of both questions expose somebody."""
    three = [place for place in range(4) if place != left_out]
    asked = [
        OrderQuestion.of("max", range(4), max(values)),
        OrderQuestion.of("max", three, max(values[place] for place in three)),
    ]
    return bool(audit_order(asked, Domain.of(4, integer=False), values).positions(ExposedValue))


def simulates(values: list[int], left_out: int) -> bool:
    """Whether some possible answer to the second question would expose somebody."""
    auditor = OnlineExtremes(4)
    auditor.record("max", range(4), max(values))
    return auditor.would_expose("max", [place for place in range(4) if place != left_out])


def main() -> None:
    rng = Random(SEED)
    blocks = [(rng.sample(range(10**6), 4), rng.randrange(4)) for _ in range(BLOCKS)]
    found = {}
    for refuses in (looks, simulates):
        refused = [(values, left) for values, left in blocks if refuses(values, left)]
        right = sum(values[left] == max(values) for values, left in refused)
        found[refuses] = len(refused), right
    (seen, right), (blind, guessed) = found[looks], found[simulates]
    errors = (guessed / blind - 1 / 4) / math.sqrt(1 / 4 * 3 / 4 / blind)
    show(
        [
            Claim("guesses right of refusals, by looking", "all", f"{right} of {seen}"),
            Claim("guesses right of refusals, online", "1 in 4", f"{guessed} of {blind}"),
            Claim("standard errors from 1 in 4", "within 3", f"{errors:+.1f}"),
        ]
    )
