"""Replay a public transcript: check its chain, rebuild the stand-in from it alone, and compare.

Guarantee  Nothing private is opened, neither the table nor a secret, so whoever holds the policy
           and a copy of the transcript comes to the same stand-in, bit for bit.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casemate.answer.budget_plan import required_budget
from casemate.answer.planner.workload import policy_of, with_types
from casemate.answer.prior import PublicPrior
from casemate.doors import (
    Edition,
    EntryKind,
    PeopleTotal,
    TranscriptEntry,
    dataset_of,
    from_lines,
    ledger_of,
    read_transcript,
    secrets_of,
    to_lines,
    transcript_of,
)
from casemate.errors import LedgerDamaged, Misconfigured, TranscriptDamaged
from casemate.surrogate import KeptFit, StandIn
from casemate.table import Policy, Universe

SCHEMA = "casemate.replay/1"
SQLITE = b"SQLite format 3\0"
KEPT_DIFFERS = (
    "the stand-in that is kept beside the ledger is not the one that the transcript leads to; "
    "delete it, and it is made again"
)


@dataclass(frozen=True)
class Replay:
    """What a transcript says once it was read from its first entry to its last."""

    dataset: str
    entries: tuple[TranscriptEntry, ...]
    equal: bool  # with the other transcript, where there are two, and each with its own chain
    stand_in: str | None  # a digest of what it answers; None before the number of people has left
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> str | None:
        """The hash of the last entry, which vouches for all before it; None where there is none."""
        return self.entries[-1].hash.hex() if self.entries else None

    def lines(self) -> Iterator[str]:
        """The transcript as text, one JSON object a line: what a custodian publishes."""
        return to_lines(self.entries)


def replay(policy: str | Path | Policy, transcript: str | Path | None = None) -> Replay:
    """Replay the transcript beside a policy's ledger, a copy of it, or both and compare them.

    A copy is a file of lines, or the SQLite file of a ledger.
    """
    read, _ = with_types(policy_of(policy))
    own, given, notes = None, None, []
    try:
        own = read_transcript(ledger_of(read, required_budget(read)))
        given = None if transcript is None else _read_copy(Path(transcript))
    except (LedgerDamaged, TranscriptDamaged) as reason:
        notes.append(str(reason))
    if not own and given is None and not notes:
        raise Misconfigured(
            f"nothing has left {dataset_of(read)} yet, so there is no transcript to replay; "
            f"name a copy of one, or ask first"
        )
    entries = tuple((own if given is None else given) or ())
    if own is not None and given is not None and own != given:
        notes.append(_difference(own, given))
    built = _stand_in(read, entries), _stand_in(read, entries)
    digests = [None if each is None else _digest(each) for each in built]
    if digests[0] != digests[1]:
        notes.append("two stand-ins that were rebuilt from the same entries differ")
    if given is None and built[0] is not None and _kept_differs(read, built[0]):
        notes.append(KEPT_DIFFERS)
    return Replay(dataset_of(read), entries, not notes, digests[0], tuple(notes))


def _read_copy(path: Path) -> list[TranscriptEntry]:
    with path.open("rb") as file:
        is_ledger = file.read(len(SQLITE)) == SQLITE
    if is_ledger:
        entries = read_transcript(path.resolve(), copy=True)
    else:
        with path.open(encoding="ascii", errors="replace") as lines:
            entries = list(from_lines(lines))
    if not entries:
        raise TranscriptDamaged(
            f"{path} holds no entry of a transcript; ask whoever published it for a whole copy"
        )
    return entries


def _difference(own: Sequence[TranscriptEntry], given: Sequence[TranscriptEntry]) -> str:
    """The first entry in which two transcripts differ, in words."""
    both = min(len(own), len(given))
    place = next((i for i in range(both) if own[i] != given[i]), both)
    if place < both:
        return f"entry {place} is not the same in both transcripts"
    return f"the policy's own transcript has {len(own):,} entries and the copy {len(given):,}"


def _stand_in(policy: Policy, entries: Sequence[TranscriptEntry]) -> StandIn | None:
    """The stand-in that entries lead to; None before the number of people has left."""
    totals = [each.content for each in entries if each.kind == EntryKind.TOTAL]
    current = [
        each for each in totals if isinstance(each, PeopleTotal) and each.data == policy.version
    ]
    if not current:
        return None
    universe = Universe.of(policy)
    names = [attribute.name for attribute in universe.attributes]
    edition = Edition(current[-1].policy, current[-1].data)
    found = StandIn(names, universe.shape, edition, PublicPrior(policy, universe).make)
    try:
        found.catch_up(transcript_of(entries))
    except (ValueError, LookupError):
        raise Misconfigured(
            "the transcript is about other columns or bins than the policy; replay it with the "
            "policy that it was made with"
        ) from None
    return found


def _digest(found: StandIn) -> str:
    """A digest of the stand-in's counts over each attribute."""
    counts = (found.surrogate.marginal((axis,)) for axis in range(len(found.names)))
    return hashlib.sha256(b"".join(each.tobytes() for each in counts)).hexdigest()


def _kept_differs(policy: Policy, found: StandIn) -> bool:
    """Whether the stand-in that is kept beside the ledger says that it is this one, and is not."""
    beside = secrets_of(policy, ledger_of(policy, required_budget(policy)))
    kept = KeptFit.beside(beside).read(found.name)
    if kept is None or kept[0] != found.head:
        return False  # none, or an older one, which is not used as it is
    fitted = found.surrogate.fitted()
    return kept[1].keys() != fitted.keys() or any(
        kept[1][name].tobytes() != each.tobytes() for name, each in fitted.items()
    )


# Rendering --------------------------------------------------------------------------------------


def as_text(found: Replay) -> str:
    """What a replay found as lines to read."""
    verdict = "the chain of hashes verifies" if found.equal else "it does not agree"
    lines = [
        f"{found.dataset}: {len(found.entries):,} entries replayed; {verdict}",
        f"head      {found.head or 'none'}",
        f"stand-in  {found.stand_in or 'none: the number of people has not left yet'}",
    ]
    return "\n".join([*lines, *(f"note: {each}" for each in found.notes)])


def as_json(found: Replay) -> dict[str, Any]:
    """What a replay found as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "dataset": found.dataset,
        "head": found.head,
        "equal": found.equal,
        "entries": len(found.entries),
        "stand_in": found.stand_in,
        "notes": list(found.notes),
    }
