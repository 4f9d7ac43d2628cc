"""`--witness`: second tables in a file, checked as they stand there."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from casemate.cli.output import Output, write_atomically
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.audit.result import Audited


def check_witness(path: Path | None, reveal: bool) -> None:
    """Refuse, before any work is done, a file that may not or cannot be written."""
    if path is None:
        return
    if not reveal:
        raise Misconfigured(
            "--witness writes tables that hold true private values beside others; "
            "add --reveal if whoever reads the file may see them"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise Misconfigured(f"--witness {path} is not a file in a folder that exists")


def write_witness(found: "Audited", path: Path, output: Output) -> "Audited":
    """Write the second tables, read them again, and check what was read."""
    from casemate.audit.witness import SecondTables
    from casemate.audit.witness_file import as_csv, read_back

    if not isinstance(found.witness, SecondTables):
        return found
    try:
        write_atomically(path, as_csv(found.witness))
    except OSError as error:
        raise Misconfigured(f"cannot write --witness {path}: {error.strerror}") from error
    kept = read_back(path, found.witness)
    if not kept.check():
        raise ArithmeticError("a second table does not give the published numbers")
    output.note(f"wrote {path}")
    return replace(found, witness=kept)
