"""What a log says about a table: every audit, repair and attack reads a log in this one way."""

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
from casemate.query.parse import DIALECT, Logged, Unread, parse_statement
from casemate.table import Column, ColumnType, Policy, why_text
from casemate.table.sources import Source


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
    ranged = exact_ranges(log, policy, knowledge, source, dialect)
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
