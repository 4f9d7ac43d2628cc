"""`casemate policy`: write a first policy from the data, and check one against them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from casemate.errors import Misconfigured
from casemate.report.terminal import OutputOptions, SourceOptions

if TYPE_CHECKING:
    from casemate.table import ColumnReview, Policy, Review, Universe


app = App(name="policy", help="Write or check the policy of a protected table.")

SCHEMA = "casemate.policy/1"
DRAFT_SCHEMA = "casemate.policy-draft/1"
FOR_THE_CUSTODIAN = (
    "These counts are exact and of protected data: they are for the custodian, not for publication."
)


@app.command
def init(
    table: Annotated[str, Parameter(help="A file, a pattern, a URL, or a shipped table.")],
    /,
    *,
    cells: SourceOptions | None = None,
    output: OutputOptions | None = None,
) -> None:
    """Write a first policy from the data, for you to correct; nothing in it is private yet."""
    from casemate.table import Table, draft, plain_source

    output = output or OutputOptions()
    if output.output is not None and output.output.exists():
        raise Misconfigured(
            f"{output.output} is there already, and what you wrote in it would be lost; "
            f"give --output another name, or delete it first"
        )
    place = plain_source(table, **(cells or SourceOptions()).keywords())
    with output.progress("reading the table"), Table.open(place) as opened:
        text = draft(opened)
    output.emit_plain(text, {"schema": DRAFT_SCHEMA, "policy": text})
    output.note(
        'Nothing in it is private yet, and what is marked from = "data" was read off the data; '
        "correct both before you use it."
    )


@app.command
def check(
    policy: Annotated[str, Parameter(help="The policy file.")],
    /,
    *,
    output: OutputOptions | None = None,
) -> None:
    """Check a policy, open its source, and count what the policy does not foresee."""
    from casemate.table import review_policy

    output = output or OutputOptions()
    with output.progress("reading the table"):
        typed, found = review_policy(policy)
    output.emit_plain(as_text(typed, found), as_json(typed, found))


def as_text(policy: "Policy", found: "Review") -> str:
    """A review as lines to read."""
    from casemate.table.sources import redact_source

    valid = "valid" if found.not_exact is None else "valid for private answers, not for audits"
    lines = [f"{policy.path or redact_source(policy.source)}: {found.rows} rows, {valid}"]
    if found.people is not None:
        lines.append(f"people: {found.people}, {found.people_over_limit} over `rows_per_person`")
    width = max(len(item.column.name) for item in found.columns)
    for role in ("private", "public", "identifier"):
        for item in found.columns:
            if item.column.role == role:
                name, type_ = item.column.name, item.column.type or ""
                lines.append(f"  {role:<10}  {name:<{width}}  {type_:<9}  {_counts(item)}")
    lines += [FOR_THE_CUSTODIAN, *_cells(found.universe)]
    lines += (f"warning: {warning}" for warning in found.warnings)
    if found.not_exact is not None:
        lines.append(f"warning: audits and attacks refuse it: {found.not_exact}")
    return "\n".join(lines)


def _counts(item: "ColumnReview") -> str:
    counts = [f"{item.nulls} NULL"]
    if item.misfits:
        counts.append(f"{item.misfits} not {_indefinite(item.column.type)}")
    if item.outside is not None:
        counts.append(f"{item.outside} outside the bounds")
    if item.undeclared is not None:
        counts.append(f"{item.undeclared} not listed")
    return ", ".join(counts)


def _indefinite(type_: object) -> str:
    return f"an {type_}" if type_ == "integer" else f"a {type_}"


def _cells(universe: "Universe") -> Iterator[str]:
    """The grid on which questions are answered privately, and what is not on it."""
    sizes = ", ".join(f"{each.name} {each.size:,}" for each in universe.attributes)
    yield f"cells for private answers: {universe.cells:,}" + (f" ({sizes})" if sizes else "")
    yield from (f"left out: {each.reason}" for each in universe.left_out)


def as_json(policy: "Policy", found: "Review") -> dict[str, Any]:
    """A review as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "policy": None if policy.path is None else str(policy.path),
        "rows": found.rows,
        "people": found.people,
        "people_over_limit": found.people_over_limit,
        "columns": [
            {
                "name": item.column.name,
                "role": item.column.role.value,
                "type": item.column.type.value if item.column.type else None,
                "from": item.column.provenance.value,
                "nulls": item.nulls,
                "misfits": item.misfits,
                "outside_bounds": item.outside,
                "undeclared_values": item.undeclared,
            }
            for item in found.columns
        ],
        "universe": {
            "cells": found.universe.cells,
            "attributes": [
                {"name": each.name, "cells": each.size} for each in found.universe.attributes
            ],
            "left_out": [
                {"name": each.name, "reason": each.reason} for each in found.universe.left_out
            ],
        },
        "warnings": list(found.warnings),
        "audits_refuse": found.not_exact,
        "note": FOR_THE_CUSTODIAN,
    }
