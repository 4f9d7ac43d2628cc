"""What a few records give away together: totals of small groups, and values that insiders learn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from casemate.audit.case import Case
from casemate.audit.claims import proofs
from casemate.audit.determined import Determined
from casemate.audit.groups import claimed_groups, proved_groups
from casemate.audit.insiders import LISTED, Learning, claimed_insiders, proved_insiders
from casemate.audit.learned import Learners
from casemate.audit.parts import parts
from casemate.audit.result import Exposed, Group, InsiderExposed
from casemate.solve.bounds import Bounds


@dataclass(frozen=True)
class Together:
    """Totals, who learns what from whom, and sentences about what was not searched."""

    groups: tuple[Group, ...] = ()
    insiders: tuple[InsiderExposed, ...] = ()
    notes: tuple[str, ...] = ()


def together(
    case: Case,
    known: Determined,
    left: Bounds,
    shown: Sequence[Exposed],
    *,
    group_size: int,
    insiders: int,
) -> Together:
    """Look for groups of up to so many people, and for so many insiders."""
    small = parts(case, known, max(group_size, insiders + 1))
    if not small.listed:
        return Together()
    found = small.exposure(known.found)
    groups = claimed_groups(small, found, group_size)
    inside = claimed_insiders(case, known, small, found, insiders)
    proved = proofs(case, known, small, [*groups.claims(), *inside.claims()])
    learning = proved_insiders(inside, small, proved)
    learners = Learners(case, small, found.determined, left)
    listed, cut = learners.listed(learning, insiders, shown)
    return Together(
        proved_groups(case, small, groups, proved, shown),
        listed,
        (*groups.notes, *inside.notes, *_more_notes(learning, cut)),
    )


def _more_notes(learning: Learning, cut: bool) -> Iterator[str]:
    if learning.unproved:
        yield (
            f"values that insiders may learn and that are left out, because the multiples that "
            f"would prove them have too many digits: {learning.unproved}"
        )
    if cut or learning.shortened:
        yield f"of the insiders who learn one value at most {LISTED} are listed"
