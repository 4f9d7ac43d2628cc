"""What an answer is about: the policy, by a digest of what shapes answers, and the data.

The dataset's key, which chooses the rows of a person that count: made once, kept for ever.
"""

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from casemate.doors.entry import Edition
from casemate.errors import Misconfigured
from casemate.privacy.book import open_private
from casemate.table import Budget, Policy
from casemate.table.sources import typed_by_policy

MOST_NAME = 200
"""Characters of a dataset's name."""


def edition_of(policy: Policy, budget: Budget, rows: str | None = None) -> Edition:
    """The edition of a dataset: another grid, relation or version is another edition.

    It follows from the policy, and from what chooses the `rows` of a person who has several.
    The size of the budget has no part in it, so that it can be raised without starting anew.
    """
    facts = {
        "columns": [asdict(column) for column in typed_by_policy(policy).columns],
        "public": [[table.name, table.key] for table in policy.public_tables],
        "key": policy.key,
        "person": policy.person,
        "rows_per_person": policy.rows_per_person,
        "neighbours": budget.neighbours,
        "protects": budget.protects,
        "rows": rows,
    }
    written = json.dumps(facts, sort_keys=True, default=str, separators=(",", ":"))
    return Edition(hashlib.sha256(written.encode()).hexdigest(), policy.version)


def dataset_of(policy: Policy) -> str:
    """The name a ledger knows a dataset by: that of its table or file, without folders."""
    where, _, table = policy.source.partition("#")
    return (table or Path(where).name)[:MOST_NAME] or "table"


def ledger_of(policy: Policy, budget: Budget) -> str | Path:
    """Where the ledger of a policy is; beside the policy's file unless it says otherwise."""
    if budget.ledger is not None:
        return budget.ledger if "://" in budget.ledger else Path(budget.ledger)
    return _usual(policy)


def _usual(policy: Policy) -> Path:
    """Beside the policy's file; without one, named after the dataset in the folder one is in."""
    if policy.path is not None:
        return policy.path.parent / "casemate.ledger"
    return Path(f"{dataset_of(policy).replace(':', '-')}.ledger")


def secrets_of(policy: Policy, ledger: str | Path) -> Path:
    """The file beside which secrets are kept: the ledger, or where it would be by itself."""
    if isinstance(ledger, Path):
        return ledger
    return _usual(policy)


# Dataset key ------------------------------------------------------------------------------------


SUFFIX = "-key"
BYTES = 32


def dataset_key(beside: Path) -> bytes:
    """The key kept beside a file, made now if there is none; only its owner may read it."""
    path = beside.with_name(beside.name + SUFFIX)
    try:
        if not os.path.lexists(path):
            _make(path)
        return _read(path)
    except OSError as reason:
        raise Misconfigured(
            f"the dataset's key {path} cannot be written ({reason.strerror}); keep the "
            f"ledger in a folder that can, with no link in its place"
        ) from reason


def _make(path: Path) -> None:
    """Write a key as a whole, then give it its name unless another process was first.

    So nobody ever sees half a key: neither a process that comes at the same time, nor one after a
    crash.
    """
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(handle)
        with suppress(FileExistsError):
            os.link(new, path)
        _flush(path.parent)
    finally:
        new.unlink()


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> bytes:
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        key = file.read()
    if len(key) != BYTES:
        raise Misconfigured(
            f"{path} must hold the dataset's key of {BYTES} bytes; restore it from a copy"
        )
    return key
