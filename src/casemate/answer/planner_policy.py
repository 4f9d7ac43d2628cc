"""What a policy alone says of a table: its budget and the types of its columns, never opened."""

from pathlib import Path

from casemate.errors import Misconfigured
from casemate.table.policy import load_policy
from casemate.table.policy_types import typed_by_policy
from casemate.table.schema import Budget, Policy, Role
from casemate.table.shipped import names, shipped
from casemate.table.toml import listed


def policy_of(where: str | Path | Policy) -> Policy:
    """A policy, read from its file if need be, or that of a shipped table."""
    if isinstance(where, Policy):
        return where
    if str(where).lower().endswith(".toml"):
        return load_policy(where, absent=True)
    found = shipped(str(where))
    if found is None:
        raise Misconfigured(
            f"{where} is no policy; planning never opens a table, so it needs a policy (.toml) or "
            f"the name of a shipped table: {listed(names())}"
        )
    return found.policy


def budget_of(policy: Policy) -> Budget:
    """The budget of a policy that has one."""
    if policy.budget is None:
        raise Misconfigured(
            "there is no budget to plan with; add a section [budget] with `epsilon` to the policy"
        )
    return policy.budget


def with_types(policy: Policy) -> tuple[Policy, tuple[str, ...]]:
    """The policy with the types that it gives, and a note on each column that has none."""
    typed = typed_by_policy(policy)
    return typed, tuple(
        f"the type of {column.name} does not follow from the policy, so no question can use it; "
        f"declare `type`, and `values` or bounds"
        for column in typed.columns
        if column.type is None and column.role is not Role.IDENTIFIER
    )
