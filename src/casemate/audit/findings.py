"""What the checks of one audit look for, and what they have found so far."""

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction

from casemate.audit.case import Case
from casemate.audit.checks.ranges import WholeNumbers
from casemate.audit.checks.rank import DeterminedByRank
from casemate.audit.checks.sensitive_cells import Dominance
from casemate.audit.classes.decide import KnownChanges
from casemate.audit.order.audit import Ordered
from casemate.audit.region.bounds import Bounds
from casemate.audit.result import (
    Approximate,
    Exposed,
    ExposedIfExact,
    Group,
    InsiderExposed,
    MissingValue,
    OpenKind,
    OpenReason,
    RemainingInterval,
    SensitiveCell,
)
from casemate.audit.second_tables import SecondTables
from casemate.audit.time_limit import Clock
from casemate.query.language import Scalar


@dataclass(frozen=True)
class AuditOptions:
    """What an audit looks for, and how long it may take.

    `protect` is how near is nearly known, `group_size` how large a group may be, `insiders` how
    many people may put together what they know, `certificates` for how many values a short
    certificate is looked for, `dominance` when a cell is sensitive, and `seconds` the limit for
    all searches together: for everything but reading, and what is decided by rank. With
    `approximate` it is found out what insiders nearly know, which takes long.
    With `rounding` the answers that a log gives count as rounded to the digits they are printed
    with; with `witness` second tables are looked for.
    """

    protect: Fraction = Fraction(1, 10)
    group_size: int = 5
    seconds: float = 300.0
    insiders: int = 1
    approximate: bool = False
    rounding: bool = False
    witness: bool = False
    certificates: int = 20
    dominance: Dominance = field(default_factory=Dominance)


@dataclass(eq=False, repr=False)
class Findings:
    """Everything found so far; a check reads what the checks before it found, and adds its own.

    `case` is what was published, less the answers that cannot be true. `known` are changes of the
    table that other logs left possible, to be tried first. What has no default is there once the
    first checks have run. `cut` has, for each search that was not finished, what it looks for and
    why it was not.
    """

    case: Case
    options: AuditOptions
    clock: Clock
    known: KnownChanges | None = None
    ranges: Bounds = field(init=False)
    by_rank: DeterminedByRank = field(init=False)
    whole_numbers: WholeNumbers = field(init=False)
    ranges_known: bool = False
    consistent: bool | None = None
    totals: tuple[Exposed, ...] = ()
    ordered: list[Ordered] = field(default_factory=list)
    exposed: tuple[Exposed, ...] = ()
    missing: tuple[MissingValue, ...] = ()
    undecided: set[Scalar] = field(default_factory=set)
    witness: SecondTables | None = None
    groups: tuple[Group, ...] = ()
    insider_exposed: tuple[InsiderExposed, ...] = ()
    bounds: tuple[RemainingInterval, ...] = ()
    tight: tuple[RemainingInterval, ...] = ()
    approximate: tuple[Approximate, ...] = ()
    sensitive_cells: tuple[SensitiveCell, ...] = ()
    exposed_if_exact: tuple[ExposedIfExact, ...] = ()
    notes: list[str] = field(default_factory=list)
    why_open: dict[tuple[OpenKind, str], set[Scalar]] = field(default_factory=dict)
    cut: dict[str, str] = field(default_factory=dict)
    late: bool = False  # some search came to the end of its time

    def leave_open(self, kind: OpenKind, records: Collection[Scalar], otherwise: str) -> None:
        """Note why records are not decided about: the limit, if it is reached, or `otherwise`."""
        if records:
            reason = self.why_over if self.late or self.clock.over else otherwise
            self.why_open.setdefault((kind, reason), set()).update(records)

    def cut_by_reason(self, among: Collection[str]) -> list[tuple[str, list[str]]]:
        """What was not looked for, of some searches, by why it was not."""
        found: dict[str, list[str]] = {}
        for what, why in self.cut.items():
            if what in among:
                found.setdefault(why, []).append(what)
        return list(found.items())

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended the audit before its time."""
        return self.clock.limit.stop.came

    @property
    def why_over(self) -> str:
        """Why no search goes on."""
        if self.interrupted:
            return "the audit was interrupted first"
        return f"the limit of {self.options.seconds:g} seconds was reached first"

    @property
    def reasons(self) -> tuple[OpenReason, ...]:
        """Why each of the undecided and the unchecked records is left open."""
        still: dict[OpenKind, set[Scalar]] = {
            "undecided": self.undecided,
            "unchecked": set(self.unchecked),
        }
        listed = (
            OpenReason(kind, tuple(sorted(records & still[kind], key=str)), reason)
            for (kind, reason), records in self.why_open.items()
        )
        return tuple(each for each in listed if each.records)

    @property
    def unchecked(self) -> tuple[Scalar, ...]:
        """The others about whose ranges nothing is said."""
        records = {self.case.name(column) for column in self.ranges.unchecked}
        return tuple(sorted(records - self.undecided, key=str))
