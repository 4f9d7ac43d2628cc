"""Plans that look at each answer before they ask on, and stop as soon as everything is known.

Guarantee  The result is right as long as answers are exact and the values keep to the column's
           declared bounds. Never more queries than the plan that does not look, plus one.
Method     Where a public column tells all records apart and the bounds are known, sets are halved
           (`plan_splitting`). Elsewhere the queries of the fixed plan are asked in turn; one whose
           answer follows from what is settled is passed over, and a set whose sum is at an end of
           what is possible settles everybody in it.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from casemate.attack.plan import Planner
from casemate.attack.plan_oracle import Asking, Oracle
from casemate.attack.plan_result import Planned
from casemate.attack.plan_setting import Setting
from casemate.attack.plan_settling import Settling
from casemate.attack.plan_splitting import Splitting
from casemate.errors import Misconfigured
from casemate.query.expression import Scalar


@dataclass(frozen=True)
class Learned:
    """What an adaptive plan found out, and the queries that it asked, with their answers."""

    values: dict[Scalar, Scalar | Fraction] = field(repr=False)
    queries: tuple[str, ...]
    answers: tuple[Fraction, ...] = field(repr=False)


class AdaptivePlan:
    """A plan for one record, or for "all", that asks an oracle query by query."""

    def __init__(self, planner: Planner, target: Scalar, seconds: float | None = None) -> None:
        self.fixed: Planned = planner.plan(target, None, seconds)
        self._setting: Setting = planner.setting
        if not self.fixed.queries:
            raise Misconfigured(f"there is nothing to ask: {self.fixed.reason}")

    @property
    def most(self) -> int:
        """The most queries that it asks: one more than the fixed plan has."""
        return len(self.fixed.queries) + 1

    def run(self, oracle: Oracle) -> Learned:
        """Ask until everything that the fixed plan determines is known."""
        asking = Asking(oracle)
        splitting = self._splitting(asking)
        if splitting is None:
            found = Settling(self._setting, self.fixed, asking).run()
        else:
            found = dict(enumerate(splitting.run()))
        names = {self._setting.name(place): value for place, value in found.items()}
        return Learned(
            {record: self.fixed.shown(value) for record, value in names.items()},
            tuple(asking.answers),
            tuple(asking.answers.values()),
        )

    def _splitting(self, asking: Asking) -> Splitting | None:
        """Halving, where any set may be asked for and the values have ends."""
        subsets, secret = self._setting.subsets, self._setting.secret
        if self.fixed.combination or subsets is None or secret.bounds is None:
            return None
        return Splitting(subsets, asking, *secret.bounds, secret.bits) if subsets.any_set else None
