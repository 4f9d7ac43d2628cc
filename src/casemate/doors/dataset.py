"""What belongs to one dataset: its identity, its ledger and transcript, its key and its secrets.

An answer is about an edition: the policy, by a digest of what shapes answers, and the data. A
`Doorway` is everything through which private data of one dataset can leave, held together; what
to ask, and how to spend a budget, is the business of those who hold one.
"""

import hashlib
import json
import os
import secrets as tokens
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from casemate.doors.measurement import Measurement
from casemate.doors.run_secrets import MemorySecrets, RunSecrets, SecretFile
from casemate.doors.transcript import (
    Edition,
    EntryKind,
    Measured,
    Opened,
    Transcript,
    open_transcript,
    opened_key,
)
from casemate.errors import Misconfigured
from casemate.privacy.book import flush_folder, open_private
from casemate.privacy.ledger import IN_MEMORY, Ledger, open_ledger
from casemate.privacy.noise import EXACT, Bits, Noise, Sources, discrete_gaussian, discrete_laplace
from casemate.table import Budget, CellFormat, Column, Policy, Table, Universe
from casemate.table.sources import choice_of_rows, typed_by_policy

LONGEST_NAME = 200
"""Characters of a dataset's name."""


def edition_of(policy: Policy, budget: Budget, rows: str | None = None) -> Edition:
    """The edition of a dataset: another grid, relation or version is another edition.

    It follows from the policy, and from what chooses the `rows` of a person who has several.
    The size of the budget has no part in it, so that it can be raised without starting anew. What
    is in the public table that a stand-in starts from is one of its facts.
    """
    facts = {
        "columns": [_facts(column) for column in typed_by_policy(policy).columns],
        "public": [[table.name, table.key] for table in policy.public_tables],
        "key": policy.key,
        "person": policy.person,
        "rows_per_person": policy.rows_per_person,
        "neighbours": budget.neighbours,
        "protects": budget.protects,
        "rows": rows,
    }
    if policy.answering.prior is not None:
        facts["prior"] = _content(Path(policy.answering.prior))
    written = json.dumps(facts, sort_keys=True, default=str, separators=(",", ":"))
    return Edition(hashlib.sha256(written.encode()).hexdigest(), policy.version)


def _content(path: Path) -> str:
    """A digest of a public file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as reason:
        raise Misconfigured(
            f"`answer.prior` names {path}, which cannot be read ({reason.strerror}); put it back"
        ) from reason


def _facts(column: Column) -> dict[str, Any]:
    """What of a column tells editions apart: whether values may be missing, not who knows where.

    A format that is not declared leaves no trace, so editions from before there were any go on.
    """
    facts = asdict(column) | {"nullable": column.nullable}
    unsaid = {"missing"} if column.format != CellFormat() else {"missing", "format"}
    return {name: fact for name, fact in facts.items() if name not in unsaid}


def dataset_of(policy: Policy) -> str:
    """The name a ledger knows a dataset by: that of its table or file, without folders."""
    where, _, table = policy.source.partition("#")
    return (table or Path(where).name)[:LONGEST_NAME] or "table"


def ledger_of(policy: Policy, budget: Budget) -> str | Path:
    """Where the ledger of a policy is; beside the policy's file unless it says otherwise."""
    if budget.ledger is None:
        return _default_ledger(policy)
    return budget.ledger if "://" in budget.ledger else Path(budget.ledger)


def _default_ledger(policy: Policy) -> Path:
    """Beside the policy's file; without one, named after the dataset in the folder one is in."""
    if policy.path is not None:
        return policy.path.parent / "casemate.ledger"
    return Path(f"{dataset_of(policy).replace(':', '-')}.ledger")


def secrets_of(policy: Policy, ledger: str | Path) -> Path:
    """The file beside which secrets are kept: the ledger, or where it would be by itself."""
    if isinstance(ledger, Path):
        return ledger
    return _default_ledger(policy)


# The key, which chooses the rows of a person that count: made once, kept for ever ---------------


KEY_SUFFIX = "-key"
KEY_BYTES = 32


def dataset_key(beside: Path) -> bytes:
    """The key kept beside a file, made now if there is none; only its owner may read it."""
    path = beside.with_name(beside.name + KEY_SUFFIX)
    try:
        if not os.path.lexists(path):
            _make_key(path)
        return _read_key(path)
    except OSError as reason:
        raise Misconfigured(
            f"the dataset's key {path} cannot be written ({reason.strerror}); keep the "
            f"ledger in a folder that can, with no link in its place"
        ) from reason


def _make_key(path: Path) -> None:
    """Write a key as a whole, then give it its name unless another process was first.

    So nobody ever sees half a key: neither a process that comes at the same time, nor one after a
    crash.
    """
    new = path.with_name(f"{path.name}.{tokens.token_hex(8)}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(tokens.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(handle)
        with suppress(FileExistsError):
            os.link(new, path)
        flush_folder(path.parent)
    finally:
        new.unlink()


def _read_key(path: Path) -> bytes:
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        key = file.read()
    if len(key) != KEY_BYTES:
        raise Misconfigured(
            f"{path} must hold the dataset's key of {KEY_BYTES} bytes; restore it from a copy"
        )
    return key


# The doorway ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Doorway:
    """The ledger, the transcript and the secret of one dataset, and where noise comes from."""

    ledger: Ledger
    transcript: Transcript
    secrets: RunSecrets
    edition: Edition
    sources: Sources = field(default_factory=Sources)
    noise: Noise = discrete_laplace
    name: Callable[[], str] = tokens.token_hex
    key: bytes | None = None  # chooses the rows of a person that count
    beside: Path | None = None  # the file beside which more may be kept
    ready: Callable[[], object] = lambda: None  # opens the table, before anything is charged

    @classmethod
    def durable(cls, table: Table, budget: Budget) -> Self:
        """The doors of a dataset whose ledger, transcript and secrets outlive the process."""
        where = ledger_of(table.policy, budget)
        beside = secrets_of(table.policy, where)
        key = dataset_key(beside) if Universe.of(table.policy).person is not None else None
        edition = _edition(table, budget, key)
        with ExitStack() as opened:
            ledger = opened.enter_context(_ledger(where, table.policy, budget, edition))
            transcript = opened.enter_context(open_transcript(where))
            secrets = SecretFile.beside(beside)
            made = cls(ledger, transcript, secrets, edition, key=key, beside=beside)
            opened.pop_all()  # what is open stays open
        return made

    @classmethod
    def in_memory(
        cls, table: Table, budget: Budget, key: bytes | None = None, bits: Bits | None = None
    ) -> Self:
        """The doors of a dataset that ends with the process, with noise from these bits."""
        edition, laplace = _edition(table, budget, key), partial(discrete_laplace, bits=bits)
        return cls(
            _ledger(IN_MEMORY, table.policy, budget, edition),
            open_transcript(IN_MEMORY),
            MemorySecrets(),
            edition,
            Sources(partial(discrete_gaussian, bits=bits), laplace),
            laplace,
            key=key,
        )

    @cached_property
    def measurement(self) -> Measurement:
        """The door through which noised cells leave."""
        return Measurement(self.ledger, self.transcript, self.edition, self.sources, self.ready)

    def opening(self, run: str) -> Opened:
        """What was said when a run of the gate was opened."""
        entry = self.transcript.find(opened_key(run))
        assert entry is not None, "a run that compared was opened"
        content = entry.content
        assert isinstance(content, Opened), "the key of an opening holds one"
        return content

    def vouch(self) -> None:
        """Name in the ledger what each charge bought, where a crash came before that was done.

        Nobody measures a table of the start again once it is in the transcript, so nobody else
        would.
        """
        for entry in self.transcript.of_kinds((EntryKind.TOTAL, EntryKind.MEASURED)):
            content = entry.content
            assert isinstance(content, Measured), "both kinds are measurements"
            if content.law != EXACT and self.ledger.outcome(entry.key) is None:
                self.ledger.record_output(entry.key, str(entry.head).encode())

    def close(self) -> None:
        """Let go of the transcript and the ledger."""
        self.transcript.close()
        self.ledger.close()


def _edition(table: Table, budget: Budget, key: bytes | None) -> Edition:
    """The edition of a table whose rows a key chooses, where a person may have several."""
    several = key is not None and table.policy.person is not None
    return edition_of(
        table.policy, budget, choice_of_rows(table.source, key) if several and key else None
    )


def _ledger(where: str | Path, policy: Policy, budget: Budget, edition: Edition) -> Ledger:
    return open_ledger(
        where,
        dataset=dataset_of(policy),
        policy=edition.policy,
        epsilon=budget.epsilon,
        delta=budget.delta,
        neighbours=budget.neighbours,
        protects=budget.protects,
    )
