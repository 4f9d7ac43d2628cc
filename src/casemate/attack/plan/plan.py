"""Plans: the questions an attacker would ask, chosen from the public columns alone.

Source     Source document 002 announces an attacker who chooses the fewest queries.
Guarantee  `verified` is set only after the plan's own SQL texts were read again and their
           combination was found, in integers, to be the record's value and nothing else. `optimal`
           means that no fewer queries of the language have a combination that is the value,
           whatever the numbers are. No private value is read.
Departure  A row is a record, also where a person has several rows: where a private column is
           constant for each person, shorter plans may exist, and nothing is claimed about them.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from casemate.attack.plan.everybody import ALL, plan_everybody
from casemate.attack.plan.result import Planned
from casemate.attack.plan.setting import PlanSetting, verify
from casemate.attack.plan.target import ShortestPlan, Targets
from casemate.errors import Misconfigured
from casemate.query.language import Scalar
from casemate.query.parse import DIALECT
from casemate.table import Policy, Table, opened_table


def plan_one(
    setting: PlanSetting, targets: Targets, record: Scalar, most: int | None, seconds: float
) -> Planned:
    """The shortest plan for a record that is found, of at most so many queries."""
    place, asked = setting.place(record), setting.secret.asked
    boxes = None if most is None else most // len(asked)
    found = ShortestPlan() if boxes == 0 else targets.plan(place, boxes, seconds)
    plan = Planned.blank(setting, setting.name(place), setting.language.twins(place))
    plan = replace(plan, lower_bound=setting.bound(found.at_least))
    if not found.terms:
        reason, impossible = _why(plan, found.impossible, most, setting.sure)
        return replace(plan, impossible=impossible, reason=reason)
    queries = setting.queries([box for _, box in found.terms])
    weights = tuple(i * weight for weight, _ in found.terms for i in asked)
    reading = setting.read(queries)
    wanted = [(place, dict(enumerate(weights)))]
    return replace(
        plan,
        queries=queries,
        combination=weights,
        counts=reading.counts,
        verified=verify(reading, setting.secret, wanted, setting.least),
        optimal=len(queries) == plan.lower_bound,
    )


def _why(plan: Planned, impossible: bool, most: int | None, sure: bool) -> tuple[str, bool]:
    """Why there is no plan, and whether that is proved."""
    whom, others, bound = f"record {plan.target}", len(plan.inseparable), plan.lower_bound or 0
    if impossible and others:
        return (
            f"{whom} agrees with {others} other{'s' if others > 1 else ''} in every public column "
            f"that queries can use, so none tells them apart"
        ), sure
    if impossible:
        least = plan.min_count
        return f"all queries with at least {least} records together do not determine {whom}", sure
    if most is not None and bound > most:
        return f"{whom} needs at least {bound} queries, and the limit is {most}", True
    limit = "" if most is None else f" of at most {most} queries"
    return (
        f"no plan{limit} for {whom} was found, and it is not proved that there is none; a longer "
        f"search may find one"
    ), False


# Planning against a table -----------------------------------------------------------------------


TIME_LIMIT_SECONDS, TIME_LIMIT_SECONDS_FOR_ALL = 10.0, 120.0
"""How long the search for a plan may take, for one record and for all of them."""


class Plan:
    """Plans against one table: one at a time with `of`, or many with a planner that stays.

    >>> plan = Plan.of("hospital", 2, min_count=3)
    >>> print(*plan.queries, sep="\\n")
    SELECT SUM("Blood sugar") FROM t
    SELECT SUM("Blood sugar") FROM t WHERE "ZIP" <= 43765
    >>> [str(weight) for weight in plan.combination], plan.verified, plan.optimal
    (['1', '-1'], True, True)
    """

    @staticmethod
    def of(
        table: Table | Policy | str | Path,
        target: Scalar,
        *,
        private: str | Sequence[str] = (),
        min_count: int = 1,
        max_queries: int | None = None,
        seconds: float | None = None,
        dialect: str = DIALECT,
        random: np.random.Generator | None = None,
    ) -> Planned:
        """Plan for one record of a table, by its key or row number, or for "all".

        Every query selects at least `min_count` records. `private` names the column to find out,
        where the table has no policy or several private columns. The search takes at most about
        so many seconds, 10 for one record and 120 for all; `random` draws the coordinates in which
        it compares queries.
        """
        names = [private] if isinstance(private, str) else list(private)
        if len(names) > 1:
            raise Misconfigured(f"a plan is for one private column; name one, not {len(names)}")
        with opened_table(table, () if isinstance(table, Table) else names) as found:
            column = names[0] if names else None
            planner = Planner(found, column, min_count=min_count, dialect=dialect, random=random)
            return planner.plan(target, max_queries, seconds)


class Planner:
    """Plans for one private column of an open table, whose public columns are read once.

    >>> with Table.open("hospital") as table:
    ...     planner = Planner(table, min_count=3)
    ...     print(*(len(planner.plan(record).queries) for record in range(1, 7)))
    2 2 2 2 2 2
    """

    def __init__(
        self,
        table: Table,
        private: str | None = None,
        *,
        min_count: int = 1,
        dialect: str = DIALECT,
        random: np.random.Generator | None = None,
    ) -> None:
        self.setting = PlanSetting.of(table, private, min_count, dialect)
        chosen = random or np.random.default_rng()
        self._targets = Targets(self.setting.language, min_count, chosen)

    def plan(
        self, target: Scalar, max_queries: int | None = None, seconds: float | None = None
    ) -> Planned:
        """The shortest plan that is found for a record, or for "all"."""
        start = time.process_time()
        if max_queries is not None and max_queries < 1:
            raise Misconfigured(f"a plan of at most {max_queries} queries is none; allow 1 or more")
        if seconds is None:
            seconds = TIME_LIMIT_SECONDS_FOR_ALL if target == ALL else TIME_LIMIT_SECONDS
        if not seconds > 0:
            raise Misconfigured(f"{seconds:g} seconds are no time to search; give more than 0")
        if target == ALL:
            found = plan_everybody(self.setting, self._targets, max_queries, seconds)
        else:
            found = plan_one(self.setting, self._targets, target, max_queries, seconds)
        return replace(found, seconds=time.process_time() - start)
