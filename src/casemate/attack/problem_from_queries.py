"""From SQL to a problem: the queries, their answers, and what the public columns tell.

Source     Source document 002, "Database reconstruction": published aggregates are equations in the
           private values. With the table's own private column the answers are computed, and noise
           may be laid over them; an outsider brings the published answers instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casemate.attack.features import Features
from casemate.attack.reconstruct.answers_file import Given, with_answers
from casemate.attack.reconstruct.problem import NoiseLaw, Problem
from casemate.attack.solvers.convex import RangeConstraints
from casemate.attack.subjects import Subjects
from casemate.errors import Misconfigured, Unsupported
from casemate.exact import Bound, Box, Floats, Rows, System
from casemate.published import (
    Equations,
    Knowledge,
    People,
    Publication,
    RefusedQuery,
    ShownColumn,
    about_people,
    box_of,
    equations,
    evidence_of,
    fitting,
    is_large,
    numbers,
    plain_sum_term,
    prior_of,
    region_of,
    true_values,
)
from casemate.query.engines import engine_of, render
from casemate.query.language import Call, ColumnRef, Literal, walk
from casemate.query.parse import DIALECT, Logged, Queries, Unread, parse_statement, read_queries
from casemate.query.records import Records, Unknown, all_records
from casemate.table import Column as TableColumn
from casemate.table import ColumnType, Missing, OutsideSource, Policy, Table
from casemate.table.sources import Source


def without_stored_rows(
    found: Publication,
    policy: Policy,
    source: Source,
    knowledge: Knowledge,
    noise: NoiseLaw | None,
) -> tuple[Equations, Problem] | None:
    """Evidence without stored equations, where it is about one private number and is large.

    Sums and averages over publicly chosen records are taken this way when there are many of both:
    predicates instead of rows. Who is in which sum is decided again in every pass over the table's
    codes, where it does not fit into memory. The equations have no row: they only say what the
    unknowns stand for.
    """
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
    return _equations_of_nothing(name, people), problem


def _summed_column(column: ShownColumn, policy: Policy) -> str | None:
    term = plain_sum_term(column, policy)
    exact = not (column.form.rounded or column.within)
    return term.unknown.column if term is not None and term.unknown is not None and exact else None


def _equations_of_nothing(name: str, people: People) -> Equations:
    """One unknown for each record, and no equation."""
    count = len(people.records)
    none = np.zeros(0, np.int64)
    places = np.arange(count, dtype=np.int64)
    kinds, unknowns = np.zeros(count, np.int64), (Unknown(name),)
    about = people.records, places, kinds, unknowns, people
    return Equations(System(0, count, none, none, none), (), (), (), (), (), (), *about)


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


# Evidence: queries about a table, read ----------------------------------------------------------


EXACT_ANSWER_SHARE = 1e-6
"""Beside rounded answers, an exact one counts as rounded to this share of the coarsest."""


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """The equations by name, the problem they make, and the table they are about."""

    equations: Equations
    problem: Problem
    publication: Publication
    policy: Policy
    source: Source
    own: bool  # whether the answers are the table's, so that the noise may be laid again

    @classmethod
    def of(
        cls,
        queries: Queries,
        table: Table,
        *,
        answers: Sequence[Given] | None = None,
        noise: NoiseLaw | None = None,
        knowledge: Knowledge | None = None,
        random: np.random.Generator | None = None,
        dialect: str = DIALECT,
    ) -> "Evidence":
        """What queries about a table tell, with these answers or the table's own."""
        entries = read_entries(queries, dialect)
        source, about = table.source, knowledge or Knowledge()
        policy = _with_categories(table.policy, entries, dialect)
        read = evidence_of(entries, policy, about, source, dialect)
        found, policy = _sums_only(read.publication), read.policy
        if answers is not None:
            found = with_answers(found, answers, source)
        elif found.told:
            found = replace(found, there=())
        _check(found, table)
        own = not found.told
        long = without_stored_rows(found, policy, source, about, noise)
        if long is not None:
            system, problem = long
        else:
            system = equations(found.columns, policy, source, found.there)
            problem = _problem(system, policy, about, noise)
        if own and noise is not None:
            problem = with_noise(problem, noise, random or np.random.default_rng())
        return cls(system, problem, found, policy, source, own)

    @property
    def outside(self) -> bool:
        """Whether this is an outsider's view: the table does not have the truth."""
        return isinstance(self.source, OutsideSource)

    @cached_property
    def truth(self) -> Floats | None:
        """The true values, where the table has them."""
        if self.outside:
            return None
        width = self.equations.system.columns
        if not self.equations.system.rows:
            return true_column(self.equations.unknowns[0].column, self.policy, self.source)
        values = true_values(self.equations, range(width), self.source)
        return np.array([float(values[column]) for column in range(width)])

    @cached_property
    def told(self) -> NDArray[np.bool_]:
        """Which unknowns any published number is about."""
        system, rows = self.equations.system, self.problem.equations
        if not system.rows:  # without stored equations, which add up and never take away
            return np.asarray(rows.transpose_times(np.ones(rows.height)) != 0)
        found = np.zeros(system.columns, np.bool_)
        found[system.column] = True
        return found

    def subjects(self, name: str, features: Features | None = None) -> Subjects:
        """Whose unknowns those of one private column are; scored is what anything was told of."""
        equations = self.equations
        names = np.array([each.column for each in equations.unknowns], object)[equations.unknown]
        scored, people = self.told & (names == name), equations.people.first
        known = features or Features(len(equations.records))
        return Subjects(equations.record, equations.unknown, scored, people, known)


def read_entries(queries: Queries, dialect: str) -> list[Logged]:
    """The statements of a log, all of which must be readable."""
    entries = read_queries(queries, dialect)
    unread = [each for each in entries if isinstance(each, Unread)]
    if unread:
        where = f"{queries}, line" if isinstance(queries, str | Path) else "statement"
        raise Misconfigured(f"{where} {unread[0].line}: {unread[0].reason}; correct it")
    return [each for each in entries if isinstance(each, Logged)]


def _sums_only(found: Publication) -> Publication:
    """The publication without extremes and medians, which are no equations."""
    refused = [
        RefusedQuery(
            each.query,
            found.lines[each.query - 1],
            None,
            found.statements[each.query - 1],
            f"the column {each.output.name}: an extreme or a median is no equation",
        )
        for each in found.ordered
    ]
    listed = sorted([*found.refused, *refused], key=lambda each: each.query)
    return replace(found, ordered=(), refused=tuple(listed))


def _check(found: Publication, table: Table) -> None:
    """Refuse a log of which nothing can be used, or whose answers nobody has."""
    if not found.columns and not found.refused:
        raise Misconfigured("none of the queries is about a private column; see --private")
    if not found.columns:
        why = found.refused[0].reason
        raise Misconfigured(f"none of the queries can be used for a reconstruction: {why}")
    if not isinstance(table.source, OutsideSource):
        return
    without = [column.query for column in found.columns if not column.told]
    if without:
        raise Misconfigured(
            f"the table does not have the private column, and query {without[0]} has no answer; "
            "give the published numbers with --answers, or in a CSV sql,answer"
        )


# Private categories of which only the queries tell -------------------------------------------


def _with_categories(policy: Policy, entries: Sequence[Logged], dialect: str) -> Policy:
    """The policy in which private text without declared values has those that queries name."""
    bare = [c for c in policy.private() if c.type is ColumnType.TEXT and c.values is None]
    if not bare:
        return policy
    named: dict[str, set[str]] = {column.name: set() for column in bare}
    for entry in entries:
        try:
            compared = list(_text_comparisons(entry.sql, policy, dialect))
        except Unsupported:
            continue  # who reads the statement says so
        for name, value in compared:
            named.get(name, set()).add(value)
    columns = (
        replace(column, values=tuple(sorted(named[column.name])), missing=Missing.SECRET)
        if named.get(column.name)
        else column
        for column in policy.columns
    )
    return replace(policy, columns=tuple(columns))


def _text_comparisons(sql: str, policy: Policy, dialect: str) -> Iterator[tuple[str, str]]:
    """The private columns of a statement, each with a text that stands beside it."""
    for aggregate in parse_statement(sql, policy, dialect).aggregates:
        for node in walk(aggregate.membership):
            if not isinstance(node, Call):
                continue
            columns = [each for each in node.arguments if isinstance(each, ColumnRef)]
            values = [each.value for each in node.arguments if isinstance(each, Literal)]
            for column in columns:
                for value in values:
                    if column.private and isinstance(value, str):
                        yield column.column.name, value


# Equations in doubles -------------------------------------------------------------------------


def _problem(
    found: Equations, policy: Policy, knowledge: Knowledge, noise: NoiseLaw | None
) -> Problem:
    """The published equations as doubles; what is no equation becomes a limit."""
    box = box_of(found, policy, knowledge)
    equal = np.array([high is not None for high in found.high], np.bool_)
    middle, half = _middles(found)
    law, spread = noise, np.array([float(each) for each in found.factor])[equal]
    if noise is None and half[equal].any():
        law = NoiseLaw("uniform", 1.0)
        spread = np.maximum(half[equal], EXACT_ANSWER_SHARE * half[equal].max())
    return Problem(
        Rows.of(_rows_of(found.system, equal)),
        middle[equal],
        _floats(box.low, -np.inf),
        _floats(box.high, np.inf),
        np.array(box.integer, np.bool_),
        law,
        spread,
        _limits(found, box, policy, knowledge, np.zeros(0, np.bool_) if noise else ~equal),
        public=np.array([float(each) for each in found.public])[equal],
    )


def _middles(found: Equations) -> tuple[Floats, Floats]:
    """The middle of what each answer may be, and how far it may be from there."""
    pairs = zip(found.low, found.high, strict=True)
    ends = np.array([(float(low), float(low if high is None else high)) for low, high in pairs])
    low, high = ends.reshape(-1, 2).T
    return (low + high) / 2, (high - low) / 2


def _floats(values: Sequence[Bound], missing: float) -> Floats:
    return np.array([missing if each is None else float(each) for each in values])


def _rows_of(system: System, keep: NDArray[np.bool_]) -> System:
    place = np.cumsum(keep) - 1
    inside = keep[system.row]
    return System(
        int(keep.sum()),
        system.columns,
        place[system.row[inside]],
        system.column[inside],
        system.value[inside],
    )


def _limits(
    found: Equations,
    box: Box,
    policy: Policy,
    knowledge: Knowledge,
    published: NDArray[np.bool_],
) -> RangeConstraints | None:
    """What ties the secrets of a record together, and published inequalities."""
    region = region_of(found, box, policy, knowledge)
    keep = np.ones(region.system.rows, np.bool_)
    keep[: found.system.rows] = False
    keep[: len(published)] = published
    if not keep.any():
        return None
    chosen = np.flatnonzero(keep).tolist()
    low = _floats([region.low[row] for row in chosen], -np.inf)
    high = _floats([region.high[row] for row in chosen], np.inf)
    return RangeConstraints(Rows.of(_rows_of(region.system, keep)), low, high)


def with_noise(problem: Problem, noise: NoiseLaw, random: np.random.Generator) -> Problem:
    """The problem with noise laid over what was published, number by number."""
    shown = noise.laid_over(problem.answers / problem.spread + problem.public, random)
    return replace(problem, answers=problem.spread * (shown - problem.public), noise=noise)
