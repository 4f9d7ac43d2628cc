"""What a log says about a table: every audit, repair and attack reads a log in this one way."""

from collections.abc import Sequence
from dataclasses import dataclass

from casemate.published.knowledge import Knowledge
from casemate.published.ranges import exact_ranges
from casemate.published.statements import Publication, publication, unique_columns
from casemate.query.parse import DIALECT, Logged, Unread
from casemate.table import Policy
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
    return LogEvidence(found, ranged.policy, ranged.notes)
