"""What a log says about a table: every audit, repair and attack reads a log in this one way.

Whether somebody's value is missing is secret or public, as the policy says. What is public is no
unknown: `verified_equations` leaves out whoever is known to have no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.published.knowledge import Knowledge
from casemate.published.ranges import exact_ranges
from casemate.published.statements import Publication, publication, unique_columns
from casemate.query.engines import PROTECTED, tables
from casemate.query.parse import DIALECT, Logged, Unread
from casemate.table import Column, Missing, Policy
from casemate.table.sources import Source, quote_name


@dataclass(frozen=True)
class LogEvidence:
    """A log as it was read, the policy with the ranges it was read in, and what that assumes."""

    publication: Publication
    policy: Policy
    assumed: tuple[str, ...]


def evidence_of(
    log: Sequence[Logged | Unread],
    policy: Policy,
    knowledge: Knowledge,
    source: Source,
    dialect: str = DIALECT,
    *,
    rounding: bool = False,
) -> LogEvidence:
    """Read a log in the ranges where its formulas are exact.

    With `rounding` an answer that the log gives counts as rounded to the digits it has there.
    """
    ranged = exact_ranges(log, _as_unknowns(policy), knowledge, source, dialect)
    unique = unique_columns(log, ranged.policy, source)
    found = publication(log, ranged.policy, dialect, rounding, unique)
    return LogEvidence(found, ranged.policy, ranged.notes)


# Who has no value -------------------------------------------------------------------------------


def _as_unknowns(policy: Policy) -> Policy:
    """The policy in which a value may be missing only where that is secret."""
    return _with_missing(policy, {Missing.PUBLIC: Missing.NONE}, policy.private())


def missing_counts(columns: Sequence[Column], source: Source) -> dict[str, int]:
    """In how many records each of the columns has no value, where that is any."""
    if not columns:
        return {}
    counts = ", ".join(
        f"count(*) - count({quote_name(PROTECTED)}.{quote_name(column.name)}) AS m{place}"
        for place, column in enumerate(columns)
    )
    frame = source.read(f"SELECT {counts} FROM {tables(source, ())}")
    found = {each.name: int(frame[f"m{i}"].values[0]) for i, each in enumerate(columns)}
    return {name: count for name, count in found.items() if count}


def with_missingness(policy: Policy, source: Source) -> tuple[Policy, tuple[str, ...]]:
    """What is taken for granted about missing values, and a sentence on each column that has some.

    Without a policy file nobody has said whether it is secret who has no value: it is taken to be.
    """
    counts = missing_counts(policy.private(), source)
    declared = policy.private()
    if policy.path is None:
        some = [column for column in declared if column.name in counts]
        policy = _with_missing(policy, {Missing.NONE: Missing.SECRET}, some)
    sentences = {
        Missing.SECRET: "whether {} is missing was taken to be secret",
        Missing.PUBLIC: "who has no {} was taken to be known to everybody",
    }
    said = ((each.name, sentences.get(each.missing)) for each in declared)
    notes = (
        f"{sentence.format(name)} (it is in {counts[name]:,} records)"
        for name, sentence in said
        if sentence and name in counts
    )
    return policy, tuple(notes)


def _with_missing(
    policy: Policy, instead: dict[Missing, Missing], columns: Sequence[Column]
) -> Policy:
    changed = tuple(
        replace(each, missing=instead.get(each.missing, each.missing)) if each in columns else each
        for each in policy.columns
    )
    return replace(policy, columns=changed)
