"""The sparse vector technique: any number of questions, paid for by the positive answers only.

A run draws one noise on the threshold and one on every comparison. As long as the answers are
"below" it goes on at no further cost; it halts after its last positive answer. Everything is an
integer: values and thresholds on a grid of the caller's, noise from a discrete Laplace law or, one
sided, from a geometric one. A `Calibration` says how much noise a run takes, what it costs, and how
accurate that leaves it.

Only value - threshold matters, so the threshold is a public number that comes with the question
and may change from one to the next. The noise on it is the one secret that outlives a question:
`state` and `restore` carry it over a restart. The state changes when a run is opened and at each
positive answer, never at a "below". The caller asks one question of a run at a time.

Source     The noise of AboveThreshold and NumericSparse behind source document 003 (Theorem 3.28
           as recalled there), and of the form without resampling: Lyu, Su and Li, "Understanding
           the Sparse Vector Technique for Differential Privacy", PVLDB 10(6), 2017, Algorithm 1.
Guarantee  The cost is computed from the scales in use, never from the epsilon that was asked for.
Cost       Constant time; floats choose a split or state an error, only rationals state a cost.
Departure  Noise is on the integers, so every error bound is an integer from its law's exact tail.
           One-sided noise costs the same and errs less: a comparison is never lowered, and a
           threshold only raised. docs/derivations/sparse_vector.md has the proofs.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from fractions import Fraction
from operator import index
from typing import Any, Self

from casemate.errors import PositivesSpent
from casemate.privacy.cost import Concentrated, Pure
from casemate.privacy.noise.law import geometric_bound, noise_bound, round_up
from casemate.privacy.noise.noise import Noise, draw

SHARE_STEPS = 4096  # a split chosen by a formula is a multiple of 1 / SHARE_STEPS


@dataclass(frozen=True)
class Calibration:
    """The noise of one run, for queries that move by at most `sensitivity` between neighbours.

    `monotone` promises that between two neighbours all queries move in the same direction.
    `one_sided` noise is never negative: geometric, P(x) proportional to exp(-x/scale) for x >= 0.

    >>> Calibration.of(Fraction(1))
    Calibration(threshold=Fraction(2, 1), query=Fraction(4, 1), positives=1, sensitivity=1, \
monotone=False, one_sided=False)
    """

    threshold: Fraction  # scale of the noise drawn once, on the threshold
    query: Fraction  # scale of the noise drawn for every comparison
    positives: int = 1  # c: positive answers before the run halts
    sensitivity: int = 1
    monotone: bool = False
    one_sided: bool = False

    def __post_init__(self) -> None:
        if self.threshold <= 0 or self.query <= 0:
            raise ValueError(f"scales must be positive, got {self.threshold} and {self.query}")
        if self.positives < 1 or self.sensitivity < 1:
            raise ValueError(
                f"need positives >= 1 and sensitivity >= 1, "
                f"got {self.positives} and {self.sensitivity}"
            )

    @classmethod
    def of(
        cls,
        epsilon: Fraction,
        share: Fraction = Fraction(1, 2),
        *,
        positives: int = 1,
        sensitivity: int = 1,
        monotone: bool = False,
        one_sided: bool = False,
    ) -> Self:
        """Spend at most `epsilon`, and `share` of it on the threshold; one half is the source's."""
        if epsilon <= 0 or not 0 < share < 1:
            raise ValueError(f"need epsilon > 0 and 0 < share < 1, got {epsilon} and {share}")
        shifts = _shifts(positives, monotone)
        threshold = round_up(sensitivity / (Fraction(epsilon) * share))
        query = round_up(shifts * sensitivity / (Fraction(epsilon) * (1 - share)))
        return cls(threshold, query, positives, sensitivity, monotone, one_sided)

    @property
    def epsilon(self) -> Fraction:
        """The exact worst-case loss of a run, gaps included."""
        shifts = _shifts(self.positives, self.monotone)
        return self.sensitivity * (1 / self.threshold + shifts / self.query)

    @property
    def cost(self) -> Pure:
        """What opening a run costs, whether or not it ever fires."""
        return Pure(self.epsilon)

    @property
    def concentrated_cost(self) -> Concentrated:
        """The same in zCDP: an epsilon-private step is epsilon^2/2-concentrated."""
        return Concentrated(self.epsilon**2 / 2)

    def error_bound(self, comparisons: int, beta: float, runs: int = 1) -> int:
        """Bound every error of `runs` runs at once, except with probability `beta`.

        A positive answer then means value >= threshold - bound, a negative one value <
        threshold + bound, and threshold + gap is within bound of the value. A two-sided question
        is two comparisons.
        """
        return self._joint(runs, beta / 2, comparisons, beta / 2)

    def error_bound_at(self, question: int, beta: float, runs: int = 1, sides: int = 2) -> int:
        """Bound the error at question 1, 2, 3, ... without knowing how many there will be.

        All of these hold at once except with probability `beta`: question i may fail with
        beta/(2 i^2), which adds up to beta pi^2/12, and the thresholds with beta/6.
        """
        if question < 1:
            raise ValueError(f"questions are numbered from 1, got {question}")
        return self._joint(runs, beta / 6, sides, beta / (2 * question**2))

    def _joint(self, runs: int, beta: float, comparisons: int, beta_of_comparisons: float) -> int:
        """The error where all noises keep to their bounds: one-sided ones only work against it."""
        if self.one_sided:
            return max(
                geometric_bound(self.threshold, runs, beta),
                geometric_bound(self.query, comparisons, beta_of_comparisons),
            )
        return noise_bound(self.threshold, runs, beta) + noise_bound(
            self.query, comparisons, beta_of_comparisons
        )

    def draw(self, noise: Noise, scale: Fraction) -> int:
        """One noise of a run, out of a source of discrete Laplace draws.

        What is not negative of such a draw is geometric, and so is what is, less one.
        """
        drawn = draw(noise, scale)
        return max(drawn, -1 - drawn) if self.one_sided else drawn


def accuracy_share(
    comparisons: int, beta: float, *, positives: int = 1, runs: int = 1, monotone: bool = False
) -> Fraction:
    """Return the threshold's share of epsilon that makes `error_bound` least."""
    threshold = math.log(2 * runs / beta)
    return split_share(threshold, _shifts(positives, monotone) * math.log(2 * comparisons / beta))


def split_share(threshold: float, query: float) -> Fraction:
    """Return the share e1 of 1 that makes threshold/e1 + query/(1 - e1) least."""
    return _on_grid(math.sqrt(threshold) / (math.sqrt(threshold) + math.sqrt(query)))


def run_epsilon(rho: Fraction, runs: int) -> Fraction:
    """Return the most epsilon each of `runs` runs may spend within a total of `rho`, rounded down.

    >>> round(float(run_epsilon(Fraction(2436, 100_000), 30)), 4)
    0.0403
    """
    if rho <= 0 or runs < 1:
        raise ValueError(f"need rho > 0 and runs >= 1, got {rho} and {runs}")
    return Fraction(math.isqrt(math.floor(2 * Fraction(rho) / runs * 4**40)), 2**40)


def _shifts(positives: int, monotone: bool) -> int:
    """How many sensitivities the noise of the positive answers must hide."""
    return positives if monotone else 2 * positives


def _on_grid(share: float) -> Fraction:
    return Fraction(min(max(round(share * SHARE_STEPS), 1), SHARE_STEPS - 1), SHARE_STEPS)


# State: secrets as plain values that no repr shows ----------------------------------------------


@dataclass(frozen=True)
class RunState:
    """All that a run is between two questions; keep it with the custodian's secrets."""

    calibration: Calibration
    noise: int | None = field(repr=False)  # on the threshold; gone once the run has halted
    positives: int = 0

    def as_secret(self) -> dict[str, Any]:
        """Plain values for JSON, the noise on the threshold among them."""
        return asdict(self, dict_factory=_plain)

    @classmethod
    def from_secret(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `as_secret` wrote."""
        return cls(**{**plain, "calibration": _calibration(plain["calibration"])})


@dataclass(frozen=True)
class SparseVectorState:
    """A sequence of runs between two questions; secret while a run is open."""

    calibration: Calibration
    runs: int
    opened: int = 0
    run: RunState | None = None

    def as_secret(self) -> dict[str, Any]:
        """Plain values for JSON, the open run's threshold noise among them."""
        return asdict(self, dict_factory=_plain)

    @classmethod
    def from_secret(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `as_secret` wrote."""
        run = RunState.from_secret(plain["run"]) if plain["run"] else None
        return cls(**{**plain, "calibration": _calibration(plain["calibration"]), "run": run})


def _plain(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: str(v) if isinstance(v, Fraction) else v for name, v in fields}


def _calibration(plain: Mapping[str, Any]) -> Calibration:
    scales = {name: Fraction(plain[name]) for name in ("threshold", "query")}
    return Calibration(**{**plain, **scales})


# The mechanisms ---------------------------------------------------------------------------------


class Side(Enum):
    """Which deviations a question looks for."""

    ABOVE = "above"  # value >= threshold: one comparison
    EITHER = "either"  # then, if that did not fire, -value >= threshold: two comparisons
    MAGNITUDE = "magnitude"  # |value| >= threshold with the noise outside: one, but no sign

    def comparisons(self, value: int) -> tuple[tuple[int, int], ...]:
        """The sign and the number of each comparison, in order."""
        if self is Side.MAGNITUDE:
            return ((0, abs(value)),)
        return ((1, value),) if self is Side.ABOVE else ((1, value), (-1, -value))


@dataclass(frozen=True)
class Positive:
    """A positive answer; threshold + gap is a noisy reading of sign * value, at no extra cost.

    The reading is conditional on having fired, so it is never below the threshold. The sign is 0
    when the question was about the magnitude.
    """

    sign: int
    gap: int


class AboveThreshold:
    """One run: one noise on the threshold, halting at its last permitted positive answer.

    Source     AboveThreshold, the step that NumericSparse of source document 003 repeats. With
               `calibration.positives` = c > 1 it is the form without resampling of Lyu, Su and Li
               (Algorithm 1): the same threshold noise serves c positives, on wider query noise.
    Guarantee  `calibration.epsilon`-differentially private for adaptively chosen questions whose
               values move by at most `sensitivity` between neighbours, gaps included (Ding, Wang,
               Zhang and Kifer, PVLDB 13(3), 2019). `calibration.error_bound` is its accuracy.
    Cost       One draw per comparison, constant memory.
    Departure  The source answers yes or no. The gap is free, so it is answered too:
               `test_a_run_loses_at_most_its_epsilon`. Its split into halves is the default of
               `Calibration.of`; `accuracy_share` is a better one.

    >>> from casemate.privacy.noise.noise import silence
    >>> run = AboveThreshold(Calibration.of(Fraction(1)), silence)
    >>> run.ask(3, threshold=10), run.ask(12, threshold=10), run.halted
    (None, Positive(sign=1, gap=2), True)
    """

    def __init__(self, calibration: Calibration, noise: Noise) -> None:
        self._noise = noise
        self._state = RunState(calibration, calibration.draw(noise, calibration.threshold))

    @classmethod
    def restore(cls, state: RunState, noise: Noise) -> Self:
        """Go on with a run where `state` left it: the same threshold noise, nothing drawn."""
        run = cls.__new__(cls)
        run._noise, run._state = noise, state
        return run

    def state(self) -> RunState:
        """What `restore` needs; a secret while the run is open."""
        return self._state

    @property
    def calibration(self) -> Calibration:
        """The noise in use, which is public."""
        return self._state.calibration

    @property
    def cost(self) -> Pure:
        """What this run costs from the moment it is opened."""
        return self.calibration.cost

    @property
    def halted(self) -> bool:
        """Whether all permitted positive answers have been given."""
        return self._state.noise is None

    def ask(self, value: int, threshold: int, side: Side = Side.ABOVE) -> Positive | None:
        """Compare a private value with a public threshold; None means "below"."""
        _require_one_sided(self.calibration, side)
        secret = self._state.noise
        if secret is None:
            raise PositivesSpent(self.calibration.positives)
        for sign, number in side.comparisons(index(value)):
            noisy = number + self.calibration.draw(self._noise, self.calibration.query)
            gap = noisy - index(threshold) - secret
            if gap >= 0:
                self._count_positive()
                return Positive(sign, gap)
        return None

    def _count_positive(self) -> None:
        positives = self._state.positives + 1
        last = positives == self.calibration.positives
        noise = None if last else self._state.noise
        self._state = replace(self._state, noise=noise, positives=positives)


class GapSparseVector:
    """A sequence of runs, each opened by the first question after the one before halted.

    Source     The sparse vector with resampling that NumericSparse of source document 003 is made
               of; the gaps replace its second draw (Ding, Wang, Zhang and Kifer, PVLDB 13(3)).
    Guarantee  Each run is `calibration.epsilon`-private and their costs add up, in pure epsilon
               or in zCDP. A run is paid for when it is opened, whether or not it fires.
    Cost       One draw per comparison and one per run, constant memory.
    Departure  No budget is spent on numeric answers: threshold + gap is one already
               (`test_threshold_plus_gap_is_the_value_when_noise_is_silent`). The next run is
               opened by the next question, so a run that nobody uses costs nothing.

    >>> from casemate.privacy.noise.noise import silence
    >>> gate = GapSparseVector(Calibration.of(Fraction(1, 10)), runs=2, noise=silence)
    >>> [gate.ask(value, threshold=10, side=Side.EITHER) for value in (4, -13, 10)]
    [None, Positive(sign=-1, gap=3), Positive(sign=1, gap=0)]
    >>> gate.cost, gate.closed
    (Pure(epsilon=Fraction(1, 5)), True)
    """

    def __init__(self, calibration: Calibration, runs: int, noise: Noise) -> None:
        if runs < 1:
            raise ValueError(f"need runs >= 1, got {runs}")
        self.calibration = calibration
        self.runs = runs
        self._noise = noise
        self._opened = 0
        self._run: AboveThreshold | None = None

    @classmethod
    def restore(cls, state: SparseVectorState, noise: Noise) -> Self:
        """Go on where `state` left it, within the run that was open."""
        sparse = cls(state.calibration, state.runs, noise)
        sparse._opened = state.opened
        sparse._run = AboveThreshold.restore(state.run, noise) if state.run else None
        return sparse

    def state(self) -> SparseVectorState:
        """What `restore` needs; a secret while a run is open."""
        run = self._run.state() if self._run else None
        return SparseVectorState(self.calibration, self.runs, self._opened, run)

    @property
    def cost(self) -> Pure:
        """The cost of all the runs."""
        return Pure(self.runs * self.calibration.epsilon)

    @property
    def concentrated_cost(self) -> Concentrated:
        """The cost of all the runs in zCDP."""
        return Concentrated(self.runs * self.calibration.concentrated_cost.rho)

    @property
    def opened(self) -> int:
        """How many runs have been opened, and so are spent."""
        return self._opened

    @property
    def closed(self) -> bool:
        """Whether every run has halted."""
        return self._opened == self.runs and self._run is None

    def ask(self, value: int, threshold: int, side: Side = Side.ABOVE) -> Positive | None:
        """Compare a private value with a public threshold; None means "below"."""
        _require_one_sided(self.calibration, side)
        run = self._run or self._open()
        positive = run.ask(value, threshold, side)
        if run.halted:
            self._run = None
        return positive

    def error_bound(self, comparisons: int, beta: float) -> int:
        """Bound every error of all runs at once, except with probability `beta`."""
        return self.calibration.error_bound(comparisons, beta, self.runs)

    def _open(self) -> AboveThreshold:
        if self.closed:
            raise PositivesSpent(self.runs * self.calibration.positives)
        self._opened += 1
        self._run = AboveThreshold(self.calibration, self._noise)
        return self._run


class NumericSparse:
    """At most `positives` positive answers, each with a fresh noisy number.

    Source     NumericSparse, on which OnlineIC of source document 003 stands, with the split for
               delta = 0: 8/9 of epsilon for the comparisons, 1/9 for the numbers.
    Guarantee  `cost`, at most epsilon-differential privacy for adaptively chosen questions whose
               values move by at most `sensitivity`; Theorem 3.28, as document 003 recalls it,
               bounds all errors by 9 c (ln k + ln(4 c / beta)) / epsilon: see `error_bound`.
    Cost       One draw per comparison and two per positive answer.
    Departure  `error_bound` is derived from the tails of the noise in use and is smaller than the
               theorem's (`test_the_derived_bound_is_below_the_one_of_theorem_3_28`). Prefer
               `GapSparseVector`, whose numbers are free.

    >>> from casemate.privacy.noise.noise import silence
    >>> sparse = NumericSparse(positives=1, epsilon=Fraction(1), noise=silence)
    >>> sparse.ask(3, threshold=10), sparse.ask(12, threshold=10), sparse.cost
    (None, 12, Pure(epsilon=Fraction(1, 1)))
    """

    def __init__(
        self, positives: int, epsilon: Fraction, noise: Noise, sensitivity: int = 1
    ) -> None:
        if positives < 1 or epsilon <= 0:
            raise ValueError(f"need positives >= 1 and epsilon > 0, got {positives} and {epsilon}")
        epsilon_per_positive = Fraction(epsilon) / positives
        calibration = Calibration.of(epsilon_per_positive * 8 / 9, sensitivity=sensitivity)
        self.epsilon = Fraction(epsilon)
        self.answer_scale = round_up(sensitivity / (epsilon_per_positive / 9))
        self._noise = noise
        self._comparisons = GapSparseVector(calibration, positives, noise)

    @classmethod
    def restore(cls, state: SparseVectorState, epsilon: Fraction, noise: Noise) -> Self:
        """Go on where `state` left it; `epsilon` is the one the mechanism was made with."""
        sparse = cls(state.runs, epsilon, noise, state.calibration.sensitivity)
        if sparse.calibration != state.calibration:
            raise ValueError(f"the state was not made with an epsilon of {epsilon}")
        sparse._comparisons = GapSparseVector.restore(state, noise)
        return sparse

    def state(self) -> SparseVectorState:
        """What `restore` needs; a secret while a run is open."""
        return self._comparisons.state()

    @property
    def calibration(self) -> Calibration:
        """The noise of the comparisons."""
        return self._comparisons.calibration

    @property
    def closed(self) -> bool:
        """Whether all positive answers have been given."""
        return self._comparisons.closed

    @property
    def cost(self) -> Pure:
        """The cost of all comparisons and all numbers."""
        numbers = self._comparisons.runs * self.calibration.sensitivity / self.answer_scale
        return Pure(self._comparisons.cost.epsilon + numbers)

    def ask(self, value: int, threshold: int, side: Side = Side.ABOVE) -> int | None:
        """Return a noisy value if the comparison fires, else None."""
        if self._comparisons.ask(value, threshold, side) is None:
            return None
        return index(value) + draw(self._noise, self.answer_scale)

    def error_bound(self, comparisons: int, beta: float) -> int:
        """Bound every error, of comparisons and of numbers, except with probability `beta`."""
        numbers = noise_bound(self.answer_scale, self._comparisons.runs, beta / 2)
        return max(numbers, self._comparisons.error_bound(comparisons, beta / 2))


def _require_one_sided(calibration: Calibration, side: Side) -> None:
    if calibration.monotone and side is not Side.ABOVE:
        raise ValueError(
            f"a calibration for monotone queries allows only one-sided questions, "
            f"got side={side.value!r}: a deviation and its negative move in opposite directions"
        )
