"""What the checks of one audit look for, and what they have found so far."""

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction

from casemate.audit.case import Case
from casemate.audit.checks.ranges import WholeNumbers
from casemate.audit.checks.rank import DeterminedByRank
from casemate.audit.checks.sensitive_cells import Dominance
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
    everything that is not decided by rank. With `approximate` it is found out what insiders nearly
    know, which takes long.
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

    `case` is what was published, less the answers that cannot be true. What has no default is
    there once the first checks have run.
    """

    case: Case
    options: AuditOptions
    clock: Clock
    ranges: Bounds = field(init=False)
    by_rank: DeterminedByRank = field(init=False)
    whole_numbers: WholeNumbers = field(init=False)
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

    def leave_open(self, kind: OpenKind, records: Collection[Scalar], otherwise: str) -> None:
        """Note why records are not decided about: the limit, if it is reached, or `otherwise`."""
        limit = f"the limit of {self.options.seconds:g} seconds was reached first"
        if records:
            reason = limit if self.clock.over else otherwise
            self.why_open.setdefault((kind, reason), set()).update(records)

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
        """The records about whose ranges nothing is said."""
        return tuple(sorted({self.case.name(column) for column in self.ranges.unchecked}, key=str))
