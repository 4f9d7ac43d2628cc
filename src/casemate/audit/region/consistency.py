"""Whether equations contradict each other, and which of them do.

Source     Source document 002, "Which records are exposed?", condition 1: rank(A) = rank([A | b]).
Method     Take what the equations add up to as one more column. The equations contradict each other
           iff that column is determined, and a certificate of it is a minimal contradictory set:
           multiples of the equations that add up to 0 on the left and not on the right.
"""

from math import lcm

import numpy as np

from casemate.exact import Certificate, RandomBytes, System, certify, exposure


def consistent(system: System, random: RandomBytes | None = None) -> bool:
    """Whether some values satisfy all equations at once.

    >>> consistent(System.of([[1, 1], [2, 2]], right=[3, 6]))
    True
    """
    extended = with_answers(system)
    return not exposure(extended, random).determined[-1]


def contradiction(system: System, random: RandomBytes | None = None) -> Certificate | None:
    """A minimal set of equations that contradict each other, with their multiples.

    None where there is no contradiction, or none with coefficients of a readable size.

    >>> contradiction(System.of([[1, 1], [2, 2]], right=[3, 7])).coefficients
    {0: -2, 1: 1}
    """
    extended = with_answers(system)
    found = exposure(extended, random)
    columns = [extended.columns - 1] if found.determined[-1] else []
    return next(certify(extended, found.block, columns), None)


def with_answers(system: System) -> System:
    """The system with its right side as a further column, all of it in integers."""
    if system.right is None:
        raise ValueError("consistency needs what each equation adds up to, and none was given")
    scale = lcm(*(answer.denominator for answer in system.right))
    wanted = [int(answer * scale) for answer in system.right]
    rows = [i for i, answer in enumerate(wanted) if answer]
    values = np.empty(len(rows), object)
    values[:] = [wanted[i] for i in rows]
    narrow = all(abs(value) < 2**62 for value in values)
    return System(
        system.rows,
        system.columns + 1,
        np.concatenate([system.row, np.array(rows, np.int64)]),
        np.concatenate([system.column, np.full(len(rows), system.columns, np.int64)]),
        np.concatenate([system.value, values.astype(np.int64) if narrow else values]),
    )
