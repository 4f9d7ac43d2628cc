"""Sessions whose noise comes from a tape beside the ledger, so that a new session reads on.

A statement that begins with `measure ` asks for a fresh measurement.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from casemate.answer import Session
from casemate.answer.dataset import assemble, open_durable
from casemate.answer.session import DIALECT
from casemate.privacy.noise import Sources, discrete_gaussian, discrete_laplace
from casemate.table import Table, Universe

MEASURE = "measure "


class Tape:
    """Pseudo-random bytes in a fixed order, and a file that says how many have been read."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._position = int(place.read_text()) if place.exists() else 0

    def __call__(self, size: int) -> bytes:
        """The next bytes, as a source of random bits gives them."""
        self._position += size
        return bytes(map(_byte, range(self._position - size, self._position)))

    def save(self) -> None:
        self._place.write_text(str(self._position))


def _byte(position: int) -> int:
    return hashlib.sha256(position.to_bytes(8, "big")).digest()[0]


@contextmanager
def on_tape(policy: Path) -> Iterator[Session]:
    """A durable session over this policy; the runs of its gate are named in order too."""
    table = Table.open(policy)
    found = open_durable(table)
    bits, doors = Tape(policy.with_name("tape")), found.doors
    laplace = partial(discrete_laplace, bits=bits)
    newest = doors.transcript.newest()
    names = count(0 if newest is None else newest.runs)
    doors = replace(
        doors,
        sources=Sources(partial(discrete_gaussian, bits=bits), laplace),
        noise=laplace,
        name=lambda: f"run-{next(names)}",
    )
    budget = table.policy.budget
    assert budget is not None, "a policy with a ledger has a budget"
    session = Session.__new__(Session)
    dataset = assemble(table, Universe.of(table.policy), budget, doors)
    session._begin(dataset, "", DIALECT, None)
    with session:
        yield session
    bits.save()


def asked(session: Session, statements: Sequence[str]) -> list[str]:
    """The bytes of each answer."""
    found = []
    for text in statements:
        answer = session.query(text.removeprefix(MEASURE), measure=text.startswith(MEASURE))
        found.append(repr((answer.columns, answer.rows)))
    return found
