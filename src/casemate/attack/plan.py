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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from casemate.attack.plan_everybody import ALL, plan_everybody
from casemate.attack.plan_one import plan_one
from casemate.attack.plan_result import Planned
from casemate.attack.plan_setting import Setting
from casemate.attack.plan_target import Targets
from casemate.errors import Misconfigured
from casemate.query.expression import Scalar
from casemate.query.sql import DIALECT
from casemate.table.table import Table, opened_table

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
        self.setting = Setting.of(table, private, min_count, dialect)
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
