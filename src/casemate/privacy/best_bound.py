"""The tightest generalisation bound for a setting, with its free constants optimised.

Source     Source document 001, Theorems 3 to 7, whose constants c, d > 0 and eta are free.
Guarantee  That of the statement it picks, with proved constants; see `generalisation`.
Cost       O(1): the two-constant statements are convex problems with closed solutions, and the
           one-constant ones spend whatever failure is left.
"""

import math
from collections.abc import Callable, Collection, Mapping

from casemate.privacy.generalisation import (
    Bound,
    Setting,
    over,
    proposition_1,
    proposition_2,
    theorem_3,
    theorem_4,
    theorem_5,
    theorem_6,
    theorem_7,
    without_privacy,
)

_DOWN = 1 - 2**-44  # a failure budget is rounded down, so that what is spent stays within it


def best(setting: Setting, failure: float, among: Collection[str] | None = None) -> Bound:
    """The smallest deviation with at most this failure, over statements and free constants.

    `among` names the statements to try ("Theorem 3" to "Theorem 7", "Proposition 1" and "2");
    those that do not apply to the setting are passed over. Where none reaches the failure, the
    deviation is infinite.

    >>> setting = Setting(samples=10**6, epsilon=0.01, alpha=0.01, beta=1e-6, leaked=1000)
    >>> found = best(setting, failure=1e-3, among=["Theorem 3", "Theorem 7"])
    >>> found.statement, round(found.deviation, 4), found.vacuous
    ('Theorem 3', 0.0221, False)
    """
    if not 0 < failure < 1:
        raise ValueError(f"need a failure probability between 0 and 1, got {failure}")
    names = _OPTIMISED.keys() if among is None else among
    unknown = set(names) - _OPTIMISED.keys()
    if unknown:
        raise ValueError(f"no statement is called {sorted(unknown)}; there are {[*_OPTIMISED]}")
    if setting.beta > failure:
        return Bound("no statement", math.inf, failure, vacuous=True)
    tried = [_OPTIMISED[name](setting, failure * _DOWN) for name in names]
    usable = [bound for bound in tried if bound is not None and bound.failure <= failure]
    return min([*usable, without_privacy(setting)], key=lambda bound: bound.deviation)


Optimised = Callable[[Setting, float], Bound | None]


def _best_3(setting: Setting, budget: float) -> Bound | None:
    c, d = _cheapest_pair((1, setting.beta), (2, setting.delta), budget)
    return theorem_3(setting, c, d) if setting.is_linear else None


def _best_4(setting: Setting, budget: float) -> Bound | None:
    c, d = _cheapest_pair((setting.width, setting.beta), (2, setting.delta), budget)
    return theorem_4(setting, c, d) if setting.is_linear else None


def _best_5(setting: Setting, budget: float) -> Bound | None:
    excess = setting.delta * setting.samples / setting.reach
    width = setting.width  # in which d is counted
    part, c = _cheapest_pair((width, setting.beta), (4 * width, excess), budget)
    return theorem_5(setting, c, width * part)


def _best_eta(theorem: Callable[[Setting, float], Bound]) -> Optimised:
    def optimised(setting: Setting, budget: float) -> Bound | None:
        eta = budget - setting.beta
        applies = setting.is_linear and not setting.delta and eta > 0
        return theorem(setting, eta) if applies else None

    return optimised


def _best_tilt(setting: Setting, budget: float) -> Bound | None:
    if not setting.is_linear or setting.delta:
        return None
    return proposition_2(setting, setting.beta / budget)


_OPTIMISED: Mapping[str, Optimised] = {
    "Theorem 3": _best_3,
    "Theorem 4": _best_4,
    "Theorem 5": _best_5,
    "Theorem 6": _best_eta(theorem_6),
    "Theorem 7": _best_eta(theorem_7),
    "Proposition 1": _best_eta(proposition_1),
    "Proposition 2": _best_tilt,
}


def _cheapest_pair(
    first: tuple[float, float], second: tuple[float, float], budget: float
) -> tuple[float, float]:
    """Minimise A x + B y subject to a/min(x, 1) + b/y <= budget, for (A, a) and (B, b).

    Cauchy-Schwarz gives the minimum; where that has x > 1, this convex problem has it at x = 1.
    """
    (price_x, part_x), (price_y, part_y) = first, second
    root = math.sqrt(price_x * part_x) + math.sqrt(price_y * part_y)
    x = root * math.sqrt(part_x / price_x) / budget
    y = root * math.sqrt(part_y / price_y) / budget
    if x > 1:
        x, y = 1.0, over(part_y, max(budget - part_x, 0.0))
    return x, y
