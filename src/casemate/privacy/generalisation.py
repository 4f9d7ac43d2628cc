"""What partial privacy buys: answers that hold for the population, not only for the samples.

A mechanism whose answers are close to the samples' values, and which gives little of the samples
away, cannot be led by an adaptive adversary to answers far from the population's values.

Source     Source document 001, Lemmas 2, 4, 9 to 12 and Theorems 3 to 7, as calculators; the
           constants c, d > 0 and eta of the theorems are free.
Guarantee  Each function returns a `Bound`: the error of every answer exceeds `deviation` with
           probability at most `failure`. Datasets are neighbours when one sample is replaced.
           `best` has that of the statement it picks, with proved constants.
Cost       O(1). `best` picks the statement and its free constants: the two-constant statements are
           convex problems with closed solutions, and the one-constant ones spend whatever failure
           is left.
Departure  Constants are those that the proofs give; docs/derivations/partial_privacy.md has the
           arguments.
           - Theorems 3 and 4 print 2 kappa/m. Their proofs give kappa/m, and no factor below 1 is
             true: `test_no_smaller_factor_of_kappa_is_true`.
           - Lemmas 2 and 10 print beta/c. With c > 1 that is false for answers outside the query's
             range; beta/min(c, 1) is true: `test_the_printed_theorem_3_fails_for_c_above_1`.
           - Theorem 5 prints beta/d, which takes the queries to have range 1. For a range
             w = touched * sensitivity it is beta/min(d/w, 1):
             `test_the_printed_theorem_5_fails_for_queries_of_large_range`.
           - Theorem 7 is not always better than Theorem 4 at delta = 0 (a very small beta favours
             Theorem 4), so `best` tries both: `test_neither_theorem_4_nor_theorem_7_dominates`.
           - Propositions 1 and 2 are ours, for delta = 0: tanh(epsilon/4) in place of
             e^epsilon - 1, half the concentration term, and no sample counted twice.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

_ROUND_UP = 1 + 2**-48  # results are rounded up by this much, so that floating point never flatters


@dataclass(frozen=True)
class GeneralisationSetting:
    """What is known of a mechanism and of the queries put to it."""

    samples: int  # m
    epsilon: float
    alpha: float  # sample accuracy, with beta: Definition 2
    beta: float
    delta: float = 0.0
    leaked: int = 0  # kappa
    touched: int | None = None  # m-hat: on how many samples a query depends; None is all
    sensitivity: float | None = None  # Delta; None means linear queries, where it is 1/m

    def __post_init__(self) -> None:
        if self.samples < 1 or not 0 <= self.leaked <= self.samples:
            raise ValueError("need at least one sample, and between 0 and all of them leaked")
        if self.touched is not None and not 1 <= self.touched <= self.samples:
            raise ValueError(f"need touched between 1 and {self.samples}, got {self.touched}")
        if not (self.epsilon >= 0 and self.alpha >= 0):
            raise ValueError(f"need epsilon, alpha >= 0, got {self.epsilon} and {self.alpha}")
        if not (0 <= self.beta <= 1 and 0 <= self.delta <= 1):
            raise ValueError(f"need beta, delta in [0, 1], got {self.beta} and {self.delta}")
        if self.sensitivity is not None and not 0 < self.sensitivity < math.inf:
            raise ValueError(f"need a positive, finite sensitivity, got {self.sensitivity}")

    @property
    def reach(self) -> int:
        """On how many samples a query depends: m-hat in the source."""
        return self.samples if self.touched is None else self.touched

    @property
    def step(self) -> float:
        """How much one sample can change a query: Delta in the source."""
        return 1 / self.samples if self.sensitivity is None else self.sensitivity

    @property
    def width(self) -> float:
        """How far apart two values of one query can be."""
        return self.reach * self.step

    @property
    def is_linear(self) -> bool:
        """Whether the queries are linear."""
        return self.sensitivity is None


@dataclass(frozen=True)
class Bound:
    """Errors exceed `deviation` with probability at most `failure`."""

    statement: str
    deviation: float
    failure: float
    vacuous: bool  # true, but no better than what holds without any privacy
    free: tuple[float, ...] = ()  # the free constants used, in the theorem's order


# What the source states ------------------------------------------------------------------------


def lemma_9(setting: GeneralisationSetting, c: float) -> Bound:
    """How far the posterior mean of a linear query is from its population mean.

    Lemma 4 is the case where a query touches every sample; it prints 2 kappa/m.
    """
    _need_linear(setting, "Lemma 9")
    shift = setting.width * _growth(setting.epsilon) + setting.leaked * setting.step
    return _bound(
        "Lemma 9", setting, shift + 2 * c, over(setting.delta, c), (c,), of_posterior=True
    )


def lemma_11(setting: GeneralisationSetting, c: float) -> Bound:
    """How far the posterior mean of a low-sensitivity query is from its population mean."""
    shift = setting.width * (_growth(setting.epsilon) + 4 * c) + setting.leaked * setting.step
    failure = over(setting.delta * setting.samples / setting.reach, c)
    return _bound("Lemma 11", setting, shift, failure, (c,), of_posterior=True)


def lemma_12(setting: GeneralisationSetting, eta: float) -> Bound:
    """How far a linear query of the posterior's samples is from its population mean."""
    _need_linear(setting, "Lemma 12")
    _need_pure(setting, "Lemma 12")
    spread = math.sqrt(2 * setting.reach * _log_two_over(eta)) / setting.samples
    shift = setting.width * _growth(setting.epsilon) + setting.leaked * setting.step
    return _bound("Lemma 12", setting, shift + spread, eta, (eta,), of_posterior=True)


def theorem_3(setting: GeneralisationSetting, c: float, d: float) -> Bound:
    """Linear queries, without regard to how few samples a query touches."""
    for_all_samples = theorem_4(replace(setting, touched=None), c, d)
    return _bound("Theorem 3", setting, for_all_samples.deviation, for_all_samples.failure, (c, d))


def theorem_4(setting: GeneralisationSetting, c: float, d: float) -> Bound:
    """Linear queries, each of which touches few samples."""
    shift = lemma_9(setting, d)
    deviation = setting.alpha + setting.width * c + shift.deviation
    failure = shift.failure + over(setting.beta, min(c, 1.0))
    return _bound("Theorem 4", setting, deviation, failure, (c, d))


def theorem_5(setting: GeneralisationSetting, c: float, d: float) -> Bound:
    """Low-sensitivity queries, each of which touches few samples."""
    shift = lemma_11(setting, c)
    failure = shift.failure + over(setting.beta, min(d / setting.width, 1.0))
    return _bound("Theorem 5", setting, setting.alpha + d + shift.deviation, failure, (c, d))


def theorem_6(setting: GeneralisationSetting, eta: float) -> Bound:
    """Linear queries at delta = 0, without regard to how few samples a query touches."""
    for_all_samples = theorem_7(replace(setting, touched=None), eta)
    return _bound("Theorem 6", setting, for_all_samples.deviation, for_all_samples.failure, (eta,))


def theorem_7(setting: GeneralisationSetting, eta: float) -> Bound:
    """Linear queries at delta = 0, each of which touches few samples."""
    deviation = setting.alpha + lemma_12(setting, eta).deviation
    return _bound("Theorem 7", setting, deviation, setting.beta + eta, (eta,))


# What we add, for delta = 0 --------------------------------------------------------------------


def posterior_tilt(setting: GeneralisationSetting) -> float:
    """How far any transcript moves the mean of a linear query, for certain."""
    _need_linear(setting, "posterior_tilt")
    _need_pure(setting, "posterior_tilt")
    exposed = min(setting.leaked, setting.reach)
    hidden = setting.reach - exposed
    return (hidden * math.tanh(setting.epsilon / 4) + exposed) * setting.step * _ROUND_UP


def proposition_1(setting: GeneralisationSetting, eta: float) -> Bound:
    """Theorem 7 with the exact tilt of a posterior and Hoeffding's constant."""
    spread = math.sqrt(setting.reach * _log_two_over(eta) / 2) / setting.samples
    deviation = setting.alpha + posterior_tilt(setting) + spread
    return _bound("Proposition 1", setting, deviation, setting.beta + eta, (eta,))


def proposition_2(setting: GeneralisationSetting, c: float) -> Bound:
    """Theorem 4 at delta = 0 with the exact tilt of a posterior."""
    deviation = setting.alpha + setting.width * c + posterior_tilt(setting)
    failure = over(setting.beta, min(c, 1.0))
    return _bound("Proposition 2", setting, deviation, failure, (c,))


def without_privacy(setting: GeneralisationSetting) -> Bound:
    """What sample accuracy gives by itself: the yardstick that makes other bounds vacuous."""
    return _bound("no privacy", setting, setting.alpha + setting.width, setting.beta, ())


# Shared arithmetic -----------------------------------------------------------------------------


def _bound(
    statement: str,
    setting: GeneralisationSetting,
    deviation: float,
    failure: float,
    free: tuple[float, ...],
    *,
    of_posterior: bool = False,
) -> Bound:
    without = setting.width if of_posterior else setting.alpha + setting.width
    vacuous = deviation >= without or failure >= 1
    return Bound(statement, deviation * _ROUND_UP, failure * _ROUND_UP, vacuous, free)


def _growth(epsilon: float) -> float:
    return math.expm1(epsilon) if epsilon < 700 else math.inf


def over(part: float, constant: float) -> float:
    """The failure that a free constant leaves, where nothing stays nothing even over zero."""
    if constant < 0:
        raise ValueError(f"a free constant must not be negative, got {constant}")
    if not part:
        return 0.0
    return part / constant if constant else math.inf


def _log_two_over(eta: float) -> float:
    if not 0 < eta <= 1:
        raise ValueError(f"need eta in (0, 1], got {eta}")
    return math.log(2 / eta)


def _need_linear(setting: GeneralisationSetting, statement: str) -> None:
    if not setting.is_linear:
        raise ValueError(f"{statement} is about linear queries; use Theorem 5 for a sensitivity")


def _need_pure(setting: GeneralisationSetting, statement: str) -> None:
    if setting.delta:
        raise ValueError(f"{statement} needs delta = 0, got {setting.delta}; use Theorem 4")


# The tightest bound, with its free constants optimised ------------------------------------------


_ROUND_DOWN = 1 - 2**-44  # a failure budget is rounded down, so that what is spent stays within it


def best(
    setting: GeneralisationSetting, failure: float, among: Collection[str] | None = None
) -> Bound:
    """The smallest deviation with at most this failure, over statements and free constants.

    `among` names the statements to try ("Theorem 3" to "Theorem 7", "Proposition 1" and "2");
    those that do not apply to the setting are passed over. Where none reaches the failure, the
    deviation is infinite.

    >>> setting = GeneralisationSetting(
    ...     samples=10**6, epsilon=0.01, alpha=0.01, beta=1e-6, leaked=1000
    ... )
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
    bounds = [_OPTIMISED[name](setting, failure * _ROUND_DOWN) for name in names]
    usable = [bound for bound in bounds if bound is not None and bound.failure <= failure]
    return min([*usable, without_privacy(setting)], key=lambda bound: bound.deviation)


Optimised = Callable[[GeneralisationSetting, float], Bound | None]


def _best_3(setting: GeneralisationSetting, budget: float) -> Bound | None:
    c, d = _cheapest_pair((1, setting.beta), (2, setting.delta), budget)
    return theorem_3(setting, c, d) if setting.is_linear else None


def _best_4(setting: GeneralisationSetting, budget: float) -> Bound | None:
    c, d = _cheapest_pair((setting.width, setting.beta), (2, setting.delta), budget)
    return theorem_4(setting, c, d) if setting.is_linear else None


def _best_5(setting: GeneralisationSetting, budget: float) -> Bound | None:
    excess = setting.delta * setting.samples / setting.reach
    width = setting.width  # in which d is counted
    part, c = _cheapest_pair((width, setting.beta), (4 * width, excess), budget)
    return theorem_5(setting, c, width * part)


def _best_eta(theorem: Callable[[GeneralisationSetting, float], Bound]) -> Optimised:
    def spend_failure(setting: GeneralisationSetting, budget: float) -> Bound | None:
        eta = budget - setting.beta
        applies = setting.is_linear and not setting.delta and eta > 0
        return theorem(setting, eta) if applies else None

    return spend_failure


def _best_tilt(setting: GeneralisationSetting, budget: float) -> Bound | None:
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
