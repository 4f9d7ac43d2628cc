"""Audits of tables too long to write their equations down: who follows by rank, proved for all.

Sums and averages of private numbers over publicly chosen records are audited this way when there
are many of both. What bounds, types and known values add to the equations is not looked for at this
size, and neither are groups nor insiders: the report says so, and a verdict that they could change
is `incomplete`.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.checks.contradiction import consistent
from casemate.audit.checks.rank import lowest_terms
from casemate.audit.checks.read_outright import read_outright
from casemate.audit.checks.reservations import as_if_labelled
from casemate.audit.result import (
    Audited,
    Exposed,
    Proof,
    PublishedCertificate,
    Verdict,
)
from casemate.exact import Certificate, Proved, RandomBytes, System
from casemate.exact import determine_sketched as exposed_by_rank
from casemate.published import (
    Knowledge,
    Number,
    People,
    Publication,
    numbers,
    plain,
    plain_sum_term,
    prior_of,
)
from casemate.query.engines import PROTECTED, RECORD_COLUMN, tables, values
from casemate.query.language import Scalar
from casemate.query.records import all_records
from casemate.query.sketch import CodedRecords, Only, SummedRecords
from casemate.table import ColumnType, Policy
from casemate.table.sources import Source, quote_name

MAX_PUBLISHED_NUMBERS = 20_000
"""Published numbers up to which their matrix on a few records is eliminated."""

NOT_SEARCHED = (
    "groups, insiders, dominance and approximate disclosure were not searched at this size"
)


@dataclass(frozen=True, eq=False)
class _Secret:
    """One private number of all records: the published sums of it, and what follows by rank."""

    name: str
    numbers: Sequence[Number]
    records: CodedRecords | SummedRecords
    proved: Proved

    @property
    def equations(self) -> int:
        """How many of the sums are over anybody."""
        return int(np.count_nonzero(self.records.totals))


def audit_large(
    found: Publication,
    policy: Policy,
    source: Source,
    knowledge: Knowledge,
    *,
    start: float,
    random: RandomBytes | None = None,
) -> Audited | None:
    """Decide by rank alone, and say what that leaves open; None if there are too many numbers."""
    listed = list(islice(numbers(found.columns, policy, source), MAX_PUBLISHED_NUMBERS + 1))
    if len(listed) > MAX_PUBLISHED_NUMBERS:
        return None
    names = list(dict.fromkeys(_name(each) for each in listed))
    secrets = [_decide_by_rank(name, listed, source, random) for name in names]
    people = People.of(_everybody(secrets, source), policy, source)
    consistent_sums = all(_agrees(secret) for secret in secrets) if found.told else None
    exposed: list[Exposed] = []
    for secret in secrets:
        exact = consistent_sums is not False and not is_double(secret.name, policy)
        by_rank = _exposed_values(secret, people, source, from_table=not found.told, exact=exact)
        exposed += [each for each in by_rank if not _was_known(each, policy, knowledge)]
    read = read_outright(found, policy, knowledge, people, source)
    exposed = list(read.beside(exposed))
    left_open = list(not_looked_for(found, policy, knowledge, len(people.records)))
    undeclared = _unbounded_notes(names, policy, knowledge)
    return Audited(
        verdict=Verdict.of((*exposed, *read.missing), (*left_open, *read.refused)),
        records=len(people.records),
        queries=found.queries,
        equations=sum(secret.equations for secret in secrets),
        rank=sum(secret.proved.rank for secret in secrets),
        consistent=consistent_sums,
        exposed=tuple(exposed),
        missing=read.missing,
        refused=read.refused,
        assumptions=(*undeclared, *left_open, NOT_SEARCHED, *as_if_labelled(found)),
        seconds=time.process_time() - start,
        people=people,
        statements=found.statements,
    )


def _name(number: Number) -> str:
    return "" if number.term.unknown is None else number.term.unknown.column


def _decide_by_rank(
    name: str, listed: Sequence[Number], source: Source, random: RandomBytes | None
) -> _Secret:
    own = [each for each in listed if _name(each) == name]
    selections = [each.selection for each in own]
    form = CodedRecords if source.dialect == "duckdb" else SummedRecords
    records = form(selections, source, random)
    return _Secret(name, own, records, exposed_by_rank(records, random))


def _everybody(secrets: Sequence[_Secret], source: Source) -> NDArray[Any]:
    """The identity of every record, in order."""
    names = (each.records.names for each in secrets if isinstance(each.records, CodedRecords))
    found = next(names, None)
    return all_records(source) if found is None else found


def _agrees(secret: _Secret) -> bool:
    """Whether the published sums can all be true: on records of full rank, so on all of them."""
    rows = secret.records.rows(secret.proved.core.places)
    row, column = np.nonzero(rows)
    right = tuple(each.total for each in secret.numbers)
    ones = np.ones(len(row), np.int64)
    return consistent(System(len(rows), rows.shape[1], row, column, ones, right))


# What is exposed ------------------------------------------------------------------------------


def _exposed_values(
    secret: _Secret, people: People, source: Source, *, from_table: bool, exact: bool
) -> Iterator[Exposed]:
    """Whose values follow; a combination gives one only where the numbers in it are exact."""
    proved, names = secret.proved, secret.records.names
    who = {place: plain(names[place]) for place in proved.by}
    uncertified = [
        name for place, name in who.items() if not (exact and place in proved.certificates)
    ]
    true_values = (
        _true_values(secret.name, uncertified, source) if uncertified and from_table else {}
    )
    where = {place: people.place(name) or 0 for place, name in who.items()}
    for place in sorted(where, key=where.__getitem__):
        certificate, value = None, true_values.get(who[place])
        if place in proved.certificates:
            combination = proved.certificates[place]
            certificate = _in_numbers(combination, secret.numbers)
            value = combination.value(_totals(combination, secret.numbers)) if exact else value
        query, person = secret.numbers[proved.by[place]].column.query, people.person(where[place])
        yield Exposed(who[place], person, secret.name, value, certificate, query, Proof.RANK)


def _totals(combination: Certificate, listed: Sequence[Number]) -> list[Fraction]:
    """The sums in a combination; one over nobody is never among them, and has no total."""
    used = combination.coefficients
    return [each.total if place in used else Fraction(0) for place, each in enumerate(listed)]


def _in_numbers(combination: Certificate, listed: Sequence[Number]) -> PublishedCertificate:
    """A combination of sums as one of the numbers that were published."""
    weights = {e: weight / listed[e].share for e, weight in combination.coefficients.items()}
    return lowest_terms(weights, combination.divisor, [each.place for each in listed])


def is_double(name: str, policy: Policy) -> bool:
    """Whether the sums of a column are rounded."""
    column = policy.column(name)
    return column is not None and column.type is ColumnType.DOUBLE


def _true_values(name: str, records: Sequence[Scalar], source: Source) -> dict[Scalar, Fraction]:
    """The table's own values of a private number."""
    some = Only(source, records)
    written = f"{quote_name(PROTECTED)}.{quote_name(name)}"
    frame = some.read(f"SELECT {RECORD_COLUMN} AS r, {written} AS v FROM {tables(some, ())}")
    pairs = zip(values(frame["r"]), values(frame["v"]), strict=True)
    return {record: Fraction(value or 0) for record, value in pairs}  # type: ignore[arg-type]  # a number


def _was_known(exposed: Exposed, policy: Policy, knowledge: Knowledge) -> bool:
    """Whether a value was known before anything was published."""
    low, high, _ = prior_of(exposed.column, exposed.record, policy, knowledge)
    return low is not None and low == high


# What is left open ----------------------------------------------------------------------------


def not_looked_for(
    found: Publication, policy: Policy, knowledge: Knowledge, records: int
) -> Iterator[str]:
    """What was not looked for and could have exposed somebody, in sentences."""
    terms = [plain_sum_term(column, policy) for column in found.columns]
    names = dict.fromkeys(t.unknown.column for t in terms if t is not None and t.unknown)
    for name in names:
        low, high, _ = prior_of(name, None, policy, knowledge)
        if low is not None or high is not None or knowledge.known:
            yield (
                f"what bounds, types and known values add was not checked for {name} of any of "
                f"the {records:,} records: at this size only what sums alone give away was decided"
            )
    rounded = sum(column.form.rounded or bool(column.within) for column in found.columns)
    if rounded:
        yield f"{rounded:,} columns of rounded numbers were not used at this size"
    if policy.person not in (None, policy.key):
        yield "what the rows of one person add up to was not searched at this size"


def _unbounded_notes(names: Sequence[str], policy: Policy, knowledge: Knowledge) -> Iterator[str]:
    for name in names:
        low, high, _ = prior_of(name, None, policy, knowledge)
        if low is None and high is None:
            yield f"{name} has no declared bounds, so any number was taken to be possible"
