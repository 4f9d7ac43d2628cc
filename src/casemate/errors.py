"""Every error casemate raises on purpose.

CasemateError
    Refused              the request is understood, and granting it would break a guarantee
        BudgetExhausted  the ledger cannot pay for it; says what is left
            TooExact     the ledger cannot pay for an answer as exact; says what it can
        HorizonReached   a stream is longer than its mechanism was calibrated for
        PositivesSpent   a sparse vector has given all the positive answers it was calibrated for
            GateClosed   a dataset's questions can no longer be checked; says what is left
        RationSpent      a principal has found as many surprises as its ration allows
        LedgerDamaged    the ledger's history does not add up, so nothing can be charged to it
        TranscriptDamaged  the transcript's history does not add up, so nothing more can leave
        ScanFailed       private data could not be read; what was charged for it stays charged
        ClockWentBackwards  a tracker's clock shows less than the epoch its sites follow
        JournalRewound   a quota's journal is older than the orders its sites follow
        OtherWindow      a quota's site has used part of another window than its server's
    LedgerUnavailable    the ledger's store failed before the charge was known to be durable
    Unsupported          SQL outside the accepted fragment; says where and why
    Misconfigured        a policy, a source or an option is wrong; says which and what was expected
        UnknownSite      a tracker or a quota was not made for this site

A programmer's mistake (a negative epsilon) is a ValueError, not one of these. No message contains
a private value.
"""

import os
from fractions import Fraction

LONGEST_SHOWN = 255
"""Characters of a path or a name that is not there and yet repeated in a message."""

LONGEST_SCHEME = len("postgresql://")


class CasemateError(Exception):
    """Base of every error a user of casemate may want to catch."""


class Refused(CasemateError):
    """The request is understood, and granting it would break a guarantee."""


class BudgetExhausted(Refused):
    """The ledger cannot pay for what was asked."""

    def __init__(self, asked: Fraction, left: Fraction, unit: str) -> None:
        self.asked, self.left, self.unit = asked, left, unit
        super().__init__(
            f"this needs {float(asked):.6g} of {unit} and {float(left):.6g} is left; "
            f"ask for less, or raise the budget in the policy"
        )


class TooExact(BudgetExhausted):
    """The ledger cannot pay for an answer that is as exact as asked."""

    def __init__(
        self, within: str, asked: Fraction, left: Fraction, unit: str, best: str | None
    ) -> None:
        super().__init__(asked, left, unit)
        instead = "no width can be had for that" if best is None else f"--within {best} can be had"
        self.args = (
            f"within {within} needs {float(asked):.3g} of {unit} and {float(left):.3g} is left, so "
            f"nothing was charged; {instead}",
        )


class HorizonReached(Refused):
    """The stream is longer than the mechanism was calibrated for."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        super().__init__(
            f"this mechanism was calibrated for {horizon} items and has received them all; "
            f"start a new one, which spends its own epsilon"
        )


class PositivesSpent(Refused):
    """A sparse vector has given all the positive answers it was calibrated for."""

    def __init__(self, positives: int) -> None:
        self.positives = positives
        super().__init__(
            f"this mechanism was calibrated for {positives} positive answers and has given them "
            f"all; start a new one, which spends its own epsilon"
        )


class GateClosed(PositivesSpent):
    """The questions of a dataset can no longer be checked."""

    def __init__(self, positives: int, left: Fraction, unit: str) -> None:
        super().__init__(positives)
        self.left, self.unit = left, unit
        self.args = (
            f"the gate has found its {positives} surprises, so questions can no longer be checked; "
            f"{float(left):.6g} of {unit} is left: have this one measured if that is enough, or "
            f'let the stand-in answer with `exhausted = "unverified"` in the policy',
        )


class RationSpent(Refused):
    """A principal has found the stand-in wrong as often as its ration allows."""

    def __init__(self, ration: int) -> None:
        self.ration = ration
        super().__init__(
            f"this principal has used its ration of {ration} surprises, so no more of its "
            f"questions are checked; ask as another principal, or raise `ration` in the policy"
        )


class LedgerDamaged(Refused):
    """The ledger's history was altered or is incomplete."""


class TranscriptDamaged(Refused):
    """The transcript's history was altered or is incomplete."""


class ScanFailed(Refused):
    """Private data could not be read, and why is not said, because it may depend on the data."""

    def __init__(self) -> None:
        super().__init__(
            "the protected table could not be read for this question; what it costs stays charged, "
            "and asking again charges nothing more"
        )


class LedgerUnavailable(CasemateError):
    """The ledger's store failed, so nothing may leave; the same key can be tried again."""


class Unsupported(CasemateError):
    """SQL outside the accepted fragment, with the place where it leaves it."""

    def __init__(self, reason: str, sql: str = "", line: int = 0, column: int = 0) -> None:
        self.reason, self.sql, self.line, self.column = reason, sql, line, column
        super().__init__(self._message())

    def _message(self) -> str:
        if not self.line:
            return self.reason
        text = self.sql.splitlines()[self.line - 1]
        start = max(0, self.column - 61)  # keep the caret in sight on very long lines
        shown = text[start : start + 100].replace("\t", " ")
        caret = " " * (self.column - 1 - start) + "^"
        return f"line {self.line}, column {self.column}: {self.reason}\n  {shown}\n  {caret}"


class Misconfigured(CasemateError):
    """A policy, a source or an option is wrong."""


class ClockWentBackwards(Refused):
    """The clock shows less than the epoch that sites already follow."""

    def __init__(self, behind: float) -> None:
        super().__init__(
            f"the clock is {behind:.6g} s behind the epoch that sites follow, so a new round would "
            f"be ignored and none was called; set the clock, or stop the other server"
        )


class JournalRewound(Refused):
    """A site follows orders that this server has never given."""

    def __init__(self) -> None:
        super().__init__(
            "a site follows an order that is not in this quota's journal, which must be an old "
            "copy; nothing is leased any more: put the newest journal back, or begin a new quota"
        )


class OtherWindow(Refused):
    """An order came from a server that does not know what this site has used."""

    def __init__(self, site: str) -> None:
        super().__init__(
            f"site {site!r} has used part of another window of this quota, whose server is not the "
            f"one that answers; put that server's journal back, or give the site a new journal"
        )


class UnknownSite(Misconfigured):
    """A site was named that this tracker or quota was not made for."""

    def __init__(self, site: str) -> None:
        super().__init__(
            f"site {site!r} is none of the sites here; add it to `sites`, or check its name"
        )


def _may_be_shown(text: str) -> bool:
    return len(text) <= LONGEST_SHOWN and text.isprintable()


def shown_name(given: object) -> str:
    """A name as a message may repeat it; of what is no name, its type.

    >>> shown_name("pay"), shown_name("name,pay\\nana,52000"), shown_name([52000])
    ('pay', 'of type str', 'of type list')
    """
    if isinstance(given, str | int) and _may_be_shown(str(given)):
        return str(given)
    return f"of type {type(given).__name__}"


def checked_path(given: object, expected: str) -> str:
    """A path as text; what is none, or unlikely to be one, is refused before any of it is shown.

    A table that is given in place of its path, or the text of a file in place of its name, would
    be quoted by the message that there is no such file.

    >>> checked_path({"pay": [52_000]}, "a file")
    Traceback (most recent call last):
        ...
    casemate.errors.Misconfigured: expected a file, got an object of type dict
    """
    if not isinstance(given, str | os.PathLike):
        raise Misconfigured(f"expected {expected}, got an object of type {type(given).__name__}")
    path = os.fspath(given)
    if isinstance(path, bytes):
        raise Misconfigured(f"expected {expected}, got an object of type bytes")
    if not _may_be_shown(path) and not os.path.exists(path) and "://" not in path[:LONGEST_SCHEME]:
        raise Misconfigured(
            f"expected {expected}, got a text that is too long for a path or has control characters"
        )
    return path
