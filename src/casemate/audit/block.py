"""Which people could live in a small block, from published statistics alone.

Source     Garfinkel, Abowd and Martindale, "Understanding Database Reconstruction Attacks on
           Public Data" (2018); the engine is `casemate.solve.block`.
Guarantee  `certain` lists people who are in every solution, each proved; nobody else is certain
           unless listed as undecided.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from casemate.audit.block_file import AGES, PublishedBlock, read_block
from casemate.solve.block import Certain, Solutions, certain, solve_block
from casemate.solve.block_model import Person
from casemate.solve.order_limit import Limit

LISTED = 1000
PATIENCE = 60.0


@dataclass(frozen=True)
class BlockAudited:
    """What the statistics of a block leave open.

    `tables` are solutions, all there are if `complete`; a person's values are named by `fields`.
    Whoever is `undecided` is in all tables found, and may be in all there are.
    """

    people: int
    fields: tuple[str, ...]
    tables: tuple[tuple[Person, ...], ...]
    complete: bool
    certain: tuple[Person, ...]
    undecided: tuple[Person, ...]
    seconds: float


def audit_block(
    path: Path,
    ages: tuple[int, int] = AGES,
    most: int = LISTED,
    seconds: float = PATIENCE,
) -> BlockAudited:
    """Enumerate up to `most` solutions of a file, and say who is in every one."""
    start, begun = time.process_time(), time.monotonic()
    published = read_block(path, ages)
    found = solve_block(published.block, Limit(seconds), most)
    left = max(seconds - (time.monotonic() - begun), 1e-3)
    shared = _certain(published, found, Limit(left))
    return BlockAudited(
        published.block.size,
        published.fields,
        tuple(_people(published, table) for table in found.tables),
        found.complete,
        _people(published, shared.people),
        _people(published, shared.undecided),
        time.process_time() - start,
    )


def _certain(published: PublishedBlock, found: Solutions, limit: Limit) -> Certain:
    """Who is in every solution: seen from all of them, or decided without them."""
    if found.complete:
        return Certain(found.common, ())
    return certain(published.block, limit, found.common if found.tables else None)


def _people(published: PublishedBlock, people: tuple[Person, ...]) -> tuple[Person, ...]:
    return people if published.aged else tuple(person[1:] for person in people)
