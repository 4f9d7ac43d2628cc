"""What a log says about a table: every audit, repair and attack reads a log in this one way.

Whether somebody's value is missing is secret or public, as the policy says. What is public is no
unknown: `verified_equations` leaves out whoever is known to have no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.errors import Misconfigured, Unsupported
from casemate.published.knowledge import Knowledge
from casemate.published.ranges import exact_ranges
from casemate.published.statements import (
    Publication,
    RefusedQuery,
    publication,
    unique_columns,
)
from casemate.query.engines import PROTECTED, tables
from casemate.query.parse import DIALECT, Logged, Unread, parse_statement
from casemate.table import Column, ColumnType, Missing, Policy, why_text
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
    explained = _with_text_explained(found, policy, source, dialect)
    return LogEvidence(explained, ranged.policy, ranged.notes)


def _with_text_explained(
    found: Publication, policy: Policy, source: Source, dialect: str
) -> Publication:
    """The log with the reason why a column is text, for what is read once it is one of numbers.

    A log of which nothing is read for that reason is refused: it would look like an audit.
    """
    written = " ".join(each.text.casefold() for each in found.refused)
    named = [
        each
        for each in policy.columns
        if each.type is ColumnType.TEXT and each.name.casefold() in written
    ]
    why = {each: why_text(source, each) for each in named}
    sentences = {column: each.sentence for column, each in why.items() if each is not None}
    refused = tuple(_explained(each, policy, sentences, dialect) for each in found.refused)
    changed = [each.reason for each, old in zip(refused, found.refused, strict=True) if each != old]
    if changed and len({each.query for each in refused}) == found.queries:
        raise Misconfigured(changed[0])
    return replace(found, refused=refused)


def _explained(
    refused: RefusedQuery, policy: Policy, sentences: dict[Column, str], dialect: str
) -> RefusedQuery:
    about = [each for each in sentences if each.name.casefold() in refused.text.casefold()]
    if not about:
        return refused
    numbers = (
        replace(each, type=ColumnType.DECIMAL, values=None) if each in about else each
        for each in policy.columns
    )
    try:
        parse_statement(refused.text, replace(policy, columns=tuple(numbers)), dialect)
    except Unsupported:
        return refused
    told = "; ".join(sentences[each] for each in about)
    return replace(refused, reason=f"{refused.reason}: {told}")


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


def with_missingness(policy: Policy, source: Source) -> tuple[Policy, dict[str, str]]:
    """What is taken for granted about missing values, and a sentence on each column declared so.

    The sentences are the same whether anybody has no value or not. Without a policy file nobody has
    said whether it is secret who has no value: it is taken to be.
    """
    declared = policy.private()
    if policy.path is None:
        counts = missing_counts(declared, source)
        some = [column for column in declared if column.name in counts]
        policy = _with_missing(policy, {Missing.NONE: Missing.SECRET}, some)
    sentences = {
        Missing.SECRET: "whether {} is missing was taken to be secret",
        Missing.PUBLIC: "who has no {} was taken to be known to everybody",
    }
    return policy, {
        each.name: sentences[each.missing].format(each.name)
        for each in declared
        if each.missing in sentences
    }


def _with_missing(
    policy: Policy, instead: dict[Missing, Missing], columns: Sequence[Column]
) -> Policy:
    changed = tuple(
        replace(each, missing=instead.get(each.missing, each.missing)) if each in columns else each
        for each in policy.columns
    )
    return replace(policy, columns=changed)
