"""Plans: the questions an attacker would ask, chosen from the public columns alone.

Source     Source document 002 announces an attacker who chooses the fewest queries.
Guarantee  `verified` is set only after the plan's own SQL texts were read again and their
           combination was found, in integers, to be the record's value and nothing else. `optimal`
           means that no fewer queries of the language have a combination that is the value,
           whatever the numbers are. No private value is read.
Departure  A row is a record, also where a person has several rows: where a private column is
           constant for each person, shorter plans may exist, and nothing is claimed about them.

The plan for one record, written, read back and checked; or why there is none.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from casemate.attack.plan.check import proved
from casemate.attack.plan.everybody import ALL, plan_everybody
from casemate.attack.plan.result import Planned
from casemate.attack.plan.setting import PlanSetting
from casemate.attack.plan.target import ShortestPlan, Targets
from casemate.errors import Misconfigured
from casemate.query.language import Scalar
from casemate.query.parse import DIALECT
from casemate.table import Table, opened_table


def plan_one(
    setting: PlanSetting, targets: Targets, record: Scalar, most: int | None, seconds: float
) -> Planned:
    """The shortest plan for a record that is found, of at most so many queries."""
    place = setting.place(record)
    boxes = None if most is None else most // len(setting.secret.asked)
    found = ShortestPlan() if boxes == 0 else targets.plan(place, boxes, seconds)
    twins = tuple(setting.name(each) for each in setting.language.twins(place))
    plan = replace(setting.blank, target=setting.name(place), inseparable=twins)
    if found.terms:
        return _written(plan, found, place, setting)
    return _nothing(plan, found, most, setting)


def _written(plan: Planned, found: ShortestPlan, place: int, setting: PlanSetting) -> Planned:
    queries = setting.queries([box for _, box in found.terms])
    weights = [i * weight for weight, _ in found.terms for i in setting.secret.asked]
    reading = setting.read(queries)
    wanted = [(place, dict(enumerate(weights)))]
    bound = setting.bound(found.at_least)
    return replace(
        plan,
        queries=queries,
        combination=tuple(weights),
        counts=reading.counts,
        verified=proved(reading, setting.secret, wanted, setting.least),
        lower_bound=bound,
        optimal=len(queries) == bound,
    )


def _nothing(plan: Planned, found: ShortestPlan, most: int | None, setting: PlanSetting) -> Planned:
    """Why there is no plan, and whether that is proved."""
    bound = setting.bound(found.at_least)
    if found.impossible:
        reason, proved_ = _why_impossible(plan, setting), setting.sure
    elif most is not None and bound > most:
        reason = f"record {plan.target} needs at least {bound} queries, and the limit is {most}"
        proved_ = True
    else:
        limit = "" if most is None else f" of at most {most} queries"
        reason = (
            f"no plan{limit} for record {plan.target} was found, and it is not proved that there "
            f"is none; a longer search may find one"
        )
        proved_ = False
    return replace(plan, impossible=proved_, reason=reason, lower_bound=bound)


def _why_impossible(plan: Planned, setting: PlanSetting) -> str:
    others, least = len(plan.inseparable), setting.least
    if others:
        whom = f"{others} other{'s' if others > 1 else ''}"
        return (
            f"record {plan.target} agrees with {whom} in every public column that queries can "
            f"use, so none tells them apart"
        )
    return (
        f"all queries with at least {least} records together do not determine record {plan.target}"
    )


# Plan -------------------------------------------------------------------------------------------


SECONDS, SECONDS_FOR_ALL = 10.0, 120.0
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
        table: Table | str | Path,
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
        with opened(table, private) as (found, column):
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
            seconds = SECONDS_FOR_ALL if target == ALL else SECONDS
        if not seconds > 0:
            raise Misconfigured(f"{seconds:g} seconds are no time to search; give more than 0")
        if target == ALL:
            found = plan_everybody(self.setting, self._targets, max_queries, seconds)
        else:
            found = plan_one(self.setting, self._targets, target, max_queries, seconds)
        return replace(found, seconds=time.process_time() - start)


@contextmanager
def opened(
    table: Table | str | Path, private: str | Sequence[str]
) -> Iterator[tuple[Table, str | None]]:
    """The table, opened if it is a path, and the private column that is named, if one is."""
    names = [private] if isinstance(private, str) else list(private)
    if len(names) > 1:
        raise Misconfigured(f"a plan is for one private column; name one, not {len(names)}")
    name = names[0] if names else None
    with opened_table(table, () if isinstance(table, Table) else names) as found:
        yield found, name
