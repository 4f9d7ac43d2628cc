"""Values that a log shows as they are, row by row: whose they are, and what is said of the rest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from casemate.audit.result import DerivationStep, Exposed, MissingValue, Proof, RowsShown
from casemate.published import (
    Knowledge,
    People,
    Publication,
    ReadValue,
    RefusedQuery,
    RowsRead,
    about_people,
    exact,
    prior_of,
    rows_read,
)
from casemate.query import Projection
from casemate.query.language import NUMBERS, Scalar
from casemate.query.records import possible_values
from casemate.table import Policy
from casemate.table.sources import Source


@dataclass(frozen=True, eq=False, repr=False)
class ReadOutright:
    """Values, and missing values, that rows show, and the refused statements in new words."""

    exposed: tuple[Exposed, ...]
    missing: tuple[MissingValue, ...]
    refused: tuple[RefusedQuery, ...]

    def beside(self, others: Sequence[Exposed]) -> tuple[Exposed, ...]:
        """All that is exposed; what can be read is not computed as well."""
        read = {(each.record, each.column) for each in self.exposed}
        rest = (e for e in others if e.total or (e.record, e.column) not in read)
        return (*self.exposed, *rest)

    def beside_missing(self, others: Sequence[MissingValue]) -> tuple[MissingValue, ...]:
        """The same of all who are known to have no value."""
        read = {(each.record, each.column) for each in self.missing}
        return (*self.missing, *(e for e in others if (e.record, e.column) not in read))


def read_outright(
    found: Publication, policy: Policy, knowledge: Knowledge, people: People, source: Source
) -> ReadOutright:
    """What the rows of all statements say, each value by the first that shows it."""
    known = _Known(policy, knowledge, people)
    seen: dict[tuple[int, str], tuple[RowsRead, ReadValue]] = {}
    reasons: dict[int, str | None] = {}
    equations = {each.query for each in (*found.columns, *found.ordered)}
    equations |= {each.query for each in found.there}
    others = equations - {each.query for each in found.read_out}
    for each in found.read_out:
        read = rows_read(each, people, source)
        for value in read.values:
            if not known.beforehand(value):
                seen.setdefault((value.place, value.column), (read, value))
        combined = read.query in equations or not read.selected or not others
        reasons[read.query] = _reason(read, each.rows, combined)
    shown = [seen[secret] for secret in sorted(seen)]
    return ReadOutright(
        tuple(_exposed(*each, policy, people) for each in shown if each[1].value is not None),
        tuple(_missing(*each, people) for each in shown if each[1].value is None),
        tuple(_reworded(found.refused, reasons)),
    )


class _Known:
    """Which numbers were known before anything was published."""

    def __init__(self, policy: Policy, knowledge: Knowledge, people: People) -> None:
        self._policy, self._knowledge, self._people = policy, knowledge, people
        self._about: dict[str, Knowledge] = {}

    def beforehand(self, value: ReadValue) -> bool:
        column = self._policy.column(value.column)
        if value.value is None:  # which is public, unless it is said to be secret
            return column is not None and not column.nullable
        if column is None or column.type not in NUMBERS or column.values is not None:
            return False
        if value.column not in self._about:
            about = about_people(value.column, self._knowledge, self._people)
            self._about[value.column] = about
        record = self._people.record(value.place)
        low, high, _ = prior_of(value.column, record, self._policy, self._about[value.column])
        return low is not None and low == high


def _exposed(read: RowsRead, value: ReadValue, policy: Policy, people: People) -> Exposed:
    return Exposed(
        people.record(value.place),
        people.person(value.place),
        value.column,
        _plain(value, policy),
        None,
        read.query,
        Proof.READ,
        derivation=(_step(read, value),),
    )


def _missing(read: RowsRead, value: ReadValue, people: People) -> MissingValue:
    place, step = value.place, _step(read, value)
    return MissingValue(
        people.record(place), people.person(place), value.column, read.query, (step,)
    )


def _plain(value: ReadValue, policy: Policy) -> Scalar | Fraction:
    """The value of a category as it is, and a number as a fraction."""
    column = policy.column(value.column)
    number = column is not None and column.type in NUMBERS and possible_values(column) is None
    return exact(value.value) if number else value.value


def _step(read: RowsRead, value: ReadValue) -> DerivationStep:
    records = "1 record" if read.selected == 1 else f"{read.selected:,} records"
    which = "some of " if read.some else "the " if read.selected == 1 else "each of "
    whose = (
        "the row can be of this record alone"
        if value.alike == 1
        else f"all {value.alike} rows that can be of this record show the same"
    )
    text = f"it shows {value.column} itself for {which}{records} that it selects"
    return DerivationStep(read.query, value.cell, f"{text}; {whose}")


# In words -----------------------------------------------------------------------------------------


def _reworded(
    refused: Sequence[RefusedQuery], reasons: Mapping[int, str | None]
) -> Iterator[RefusedQuery]:
    """The refused statements, those that show rows once each and with what that means."""
    told = set[int]()
    for each in refused:
        if each.query not in reasons:
            yield each
        elif each.query not in told:
            told.add(each.query)
            reason = reasons[each.query]
            if reason is not None:
                yield RowsShown(each.query, each.line, each.column, each.text, reason)


def _reason(read: RowsRead, shown: Projection, combined: bool) -> str | None:
    """What a statement that shows rows leaves open; None where it says no more than was found."""
    if read.whole and combined:
        return None
    names = " and ".join(sorted(read.columns or shown.private))
    if read.disputed:
        return f"it shows {names} itself, and its answer is not the table's; correct it"
    if not read.columns:
        return (
            f"it shows rows of something computed from {names}, or chosen by it; treat {names} of "
            f"the records that it selects as published"
        )
    if read.some:
        which = "and nothing here says for which"
        if read.values:
            named = len({each.place for each in read.values})
            which = f"and it is known here for which {named:,} of them at least"
        return (
            f"it shows {names} itself for some of {read.selected:,} records, {which}; treat all "
            f"of them as published"
        )
    if read.unnamed:
        return (
            f"it shows the values of {names} of {read.unnamed:,} records themselves, without "
            f"saying whose each is; treat them as published"
        )
    return (
        f"it shows {names} itself, and what else follows from its rows, or from them and other "
        f"statements together, was not decided"
    )
