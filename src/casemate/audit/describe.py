"""Who is meant: public attributes that nobody else has together, and the titles of statements.

An exposed record is described by the smallest set of public columns, three at most, whose values
its person alone has. Of sets that are equally small one of columns that the statements use comes
first, and then one of columns with few values: "the only one with RAC1P 7" says more than a weight
of five digits. A column that is different in every row is a key in all but name, and is used only
if a statement uses it.

Cost  One pass over the records for each set of columns, and of so many columns that there are at
      most `MAX_SETS` sets and `MAX_ROWS_READ` rows in all passes; those of the statements first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from casemate.audit.result import Audited, Description, Exposed, MissingValue
from casemate.published import People, Publication
from casemate.query.engines import PROTECTED, RECORD_COLUMN, tables, values
from casemate.query.language import ColumnRef, Scalar, columns_of
from casemate.query.parse import Logged, Unread
from casemate.table import RELEASE, Policy, Role
from casemate.table.sources import Series, Source, quote_name

MAX_COLUMNS = 3
MAX_SETS = 3_000
MAX_ROWS_READ = 50_000_000

Places = NDArray[np.int64]
Finding = TypeVar("Finding", Exposed, MissingValue)


def with_descriptions(
    audited: Audited,
    log: Sequence[Logged | Unread],
    publication: Publication,
    policy: Policy,
    source: Source,
) -> Audited:
    """The result, with the titles of its statements, and with who is meant in public words."""
    titles = tuple(each.title if isinstance(each, Logged) else None for each in log)
    people = audited.people
    findings: tuple[Exposed | MissingValue, ...] = (*audited.exposed, *audited.missing)
    places = {_place(each, people) for each in findings}
    targets = np.array(sorted(place for place in places if place is not None), np.int64)
    found = _descriptions(targets, people, publication, policy, source) if len(targets) else {}

    def described(each: Finding) -> Finding:
        return replace(each, described=found.get(_place(each, people)))

    exposed, missing = map(described, audited.exposed), map(described, audited.missing)
    return replace(audited, titles=titles, exposed=tuple(exposed), missing=tuple(missing))


def _place(each: Exposed | MissingValue, people: People) -> int | None:
    """The row that stands for a finding: the first one, where all rows of a person are meant."""
    return people.first_of(each.person) if each.record is None else people.place(each.record)


# Sets of public columns ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Attribute:
    """A public column: its values in the order of the records, as codes of the targets' values."""

    name: str
    seen: Sequence[Scalar]
    codes: Places  # from 1; 0 for a value that no target has
    distinct: int
    is_used: bool

    @property
    def rank(self) -> tuple[bool, int]:
        """What is better to describe somebody by comes first."""
        return not self.is_used, self.distinct


def _descriptions(
    targets: Places, people: People, publication: Publication, policy: Policy, source: Source
) -> dict[int | None, Description]:
    """For each target the smallest set of columns whose values its person alone has."""
    attributes = _attributes(targets, publication, policy, source)
    found: dict[int | None, Description] = {}
    for chosen in _sets(attributes):
        alone = _is_alone(chosen, targets, people)
        for place in targets[alone].tolist():
            found[place] = tuple((each.name, each.seen[place]) for each in chosen)
        targets = targets[~alone]
        if not len(targets):
            break
    return found


def _attributes(
    targets: Places, publication: Publication, policy: Policy, source: Source
) -> list[_Attribute]:
    keys = {policy.key, policy.person, RELEASE}
    public = [c.name for c in policy.columns if c.role is Role.PUBLIC and c.name not in keys]
    used = _used(publication)
    public = sorted(public, key=lambda name: name not in used)
    wanted = [(name, f"{quote_name(PROTECTED)}.{quote_name(name)}") for name in public]
    rows = source.read(f"SELECT count(*) AS n FROM {tables(source, ())}")["n"].values[0]
    wanted = wanted[: _most_columns(int(rows))]
    selected = "".join(f", {text} AS c{i}" for i, (_, text) in enumerate(wanted))
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r{selected} FROM {tables(source, ())}")
    order = np.argsort(frame["r"].values, kind="stable")
    read = [
        _attribute(name, frame[f"c{i}"], order, targets, name in used)
        for i, (name, _) in enumerate(wanted)
    ]
    return sorted(
        (each for each in read if each.is_used or each.distinct < rows), key=lambda each: each.rank
    )


def _most_columns(rows: int) -> int:
    """Of how many columns all small sets can be looked at."""
    sets = min(MAX_SETS, MAX_ROWS_READ // max(1, rows))
    columns = 1
    while sum(comb(columns + 1, size) for size in range(1, MAX_COLUMNS + 1)) <= sets:
        columns += 1
    return columns


def _used(publication: Publication) -> set[str]:
    """The columns of the table that the statements select and group by."""
    selects = [each.select for each in (*publication.columns, *publication.ordered)]
    expressions = [e for select in selects for e in (select.predicate, *select.keys)]
    expressions += [each.predicate for select in selects for each in select.aggregates]
    refs = frozenset[ColumnRef]().union(*map(columns_of, set(expressions)))
    return {ref.column.name for ref in refs if not ref.alias}


def _attribute(
    name: str, series: Series, order: NDArray[np.intp], targets: Places, is_used: bool
) -> _Attribute:
    seen = values(Series(series.values[order], series.missing[order]))
    of_targets = dict.fromkeys(seen[place] for place in targets.tolist())
    code_of = {value: code for code, value in enumerate(of_targets, start=1)}
    codes = np.fromiter((code_of.get(value, 0) for value in seen), np.int64, len(seen))
    return _Attribute(name, seen, codes, len(set(seen)), is_used)


def _sets(attributes: Sequence[_Attribute]) -> Iterable[tuple[_Attribute, ...]]:
    """Small sets first, and those of columns that the statements use."""
    for size in range(1, MAX_COLUMNS + 1):
        sets = combinations(attributes, size)
        yield from sorted(sets, key=lambda chosen: sum(not each.is_used for each in chosen))


def _is_alone(chosen: Sequence[_Attribute], targets: Places, people: People) -> NDArray[np.bool_]:
    """Whether only rows of the same person have a target's values in all of these columns."""
    likely = np.flatnonzero(np.logical_and.reduce([each.codes > 0 for each in chosen]))
    wanted, which = np.unique(_combined(chosen, targets), return_inverse=True)
    codes = _combined(chosen, likely)
    place = np.minimum(np.searchsorted(wanted, codes), len(wanted) - 1)
    counts = np.bincount(place[wanted[place] == codes], minlength=len(wanted))
    if people.alone:
        alone: NDArray[np.bool_] = counts[which] == 1
        return alone
    own = [people.rows(first) for first in people.first[targets].tolist()]
    same = [
        np.count_nonzero(_combined(chosen, rows) == code)
        for rows, code in zip(own, wanted[which], strict=True)
    ]
    return np.asarray(counts[which] == same)


def _combined(chosen: Sequence[_Attribute], rows: Places) -> Places:
    """One code for the values of some rows in all of these columns."""
    codes = np.zeros(len(rows), np.int64)
    for each in chosen:
        codes = codes * (int(each.codes.max()) + 1) + each.codes[rows]
    return codes
