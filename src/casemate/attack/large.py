"""Evidence about a table too long to write its equations down: predicates instead of rows.

Sums and averages of one private number over publicly chosen records are taken this way when there
are many of both: who is in which sum is decided again in every pass over the table's codes, where
it does not fit into memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from casemate.attack.noise_law import NoiseLaw
from casemate.attack.problem import Problem
from casemate.published.equations import Equations
from casemate.published.knowledge import Knowledge, about_people, prior_of
from casemate.published.large_numbers import is_large, numbers, summed
from casemate.published.people import People
from casemate.published.predicates import fitting
from casemate.published.publication import Column, Publication
from casemate.query.engine import engine_of
from casemate.query.expression import ColumnRef
from casemate.query.lineage import all_records
from casemate.query.linear import Unknown
from casemate.query.membership import Records
from casemate.query.render import render
from casemate.solve.rows import Floats
from casemate.solve.system import System
from casemate.table.schema import Column as TableColumn
from casemate.table.schema import ColumnType, Policy
from casemate.table.source import Source


@dataclass(frozen=True, eq=False)
class Large:
    """The names of the unknowns, and the problem they make."""

    equations: Equations  # without any row: only what the unknowns stand for
    problem: Problem


def large(
    found: Publication,
    policy: Policy,
    source: Source,
    knowledge: Knowledge,
    noise: NoiseLaw | None,
) -> Large | None:
    """Evidence without stored equations, where it is about one private number and is large."""
    names = {_summed_column(each, policy) for each in found.columns}
    if len(names) != 1 or None in names or not is_large(found, policy, source):
        return None
    (name,) = (each for each in names if each is not None)
    shown = numbers(found.columns, policy, source, at_once=True)
    listed = [each for each in shown if each.is_there]
    people = People.of(all_records(source), policy, source)
    low, high, whole = _box(name, policy, knowledge, people)
    problem = Problem(
        fitting([each.selection for each in listed], source),
        np.array([float(each.total) for each in listed]),
        low,
        high,
        np.full(len(low), whole),
        noise,
        np.array([float(1 / each.share) for each in listed]),
    )
    return Large(_named(name, people), problem)


def _summed_column(column: Column, policy: Policy) -> str | None:
    term = summed(column, policy)
    exact = not (column.form.rounded or column.within)
    return term.unknown.column if term is not None and term.unknown is not None and exact else None


def _named(name: str, people: People) -> Equations:
    """One unknown for each record, and no equation."""
    count = len(people.records)
    none = np.zeros(0, np.int64)
    places = np.arange(count, dtype=np.int64)
    return Equations(
        System(0, count, none, none, none),
        (),
        (),
        (),
        (),
        (),
        (),
        people.records,
        places,
        np.zeros(count, np.int64),
        (Unknown(name),),
        people,
    )


def _box(
    name: str, policy: Policy, knowledge: Knowledge, people: People
) -> tuple[Floats, Floats, bool]:
    """The range of every record's number: one for all, but for those of whom more is known."""
    about = about_people(name, knowledge, people)
    low, high, whole = prior_of(name, None, policy, about)
    count = len(people.records)
    lows = np.full(count, _end(low, -np.inf))
    highs = np.full(count, _end(high, np.inf))
    for record in about.known:
        place = people.place(record)
        if place is not None:
            low, high, _ = prior_of(name, record, policy, about)
            lows[place], highs[place] = _end(low, -np.inf), _end(high, np.inf)
    return lows, highs, whole


def _end(end: Fraction | None, missing: float) -> float:
    return missing if end is None else float(end)


def true_column(name: str, policy: Policy, source: Source) -> Floats:
    """The numbers of a private column, in the order of the records."""
    columns: Mapping[str, TableColumn] = {each.name: each for each in policy.columns}
    reference = ColumnRef(columns[name], columns[name].type or ColumnType.DOUBLE)
    series = Records(source).column(render(reference, engine_of(source)))
    return np.where(series.missing, 0, series.values).astype(np.float64)
