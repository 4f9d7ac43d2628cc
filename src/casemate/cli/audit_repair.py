"""`--repair`: what can be published instead, in a file that is audited as it stands there."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from casemate.cli.output import Output, write_atomically
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.audit.result import Repaired


def check_repair(path: Path | None, queries: Path) -> None:
    """Refuse, before any work is done, a file that may not or cannot be written."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise Misconfigured(f"--repair {path} is not a file in a folder that exists")
    if path.suffix.lower() == ".csv":
        raise Misconfigured(f"--repair {path} would be SQL in a CSV file; give it another name")
    if path.exists() and queries.exists() and path.samefile(queries):
        raise Misconfigured(f"--repair {path} is the log itself; give the repair its own file")


def write_repair(repaired: "Repaired", path: Path, output: Output) -> "Repaired":
    """Write the statements that are left, unless their own audit still exposes somebody."""
    if not repaired.is_safe:
        return repaired
    try:
        write_atomically(path, repaired.sql)
        same = not path.is_file() or path.read_text(encoding="utf-8") == repaired.sql
    except OSError as error:
        raise Misconfigured(f"cannot write --repair {path}: {error.strerror}") from error
    if not same:  # it was audited, and what is there was not
        raise Misconfigured(f"--repair {path} was changed while it was written; try again")
    output.note(f"wrote {path}")
    return replace(repaired, file=path)
