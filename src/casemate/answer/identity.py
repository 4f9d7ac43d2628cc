"""What an answer is about: the policy, by a digest of what shapes answers, and the data."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from casemate.doors.entry import Edition
from casemate.table.policy_types import typed_by_policy
from casemate.table.schema import Budget, Policy

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
