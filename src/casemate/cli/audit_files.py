"""`--witness` and `--repair`: the files that an audit writes beside its report."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from casemate.cli.audit_repair import check_repair, write_repair
from casemate.cli.audit_witness import check_witness, write_witness
from casemate.cli.output import Output

if TYPE_CHECKING:
    from casemate.audit.result import Audited, Repaired


@Parameter(name="*")
@dataclass(frozen=True)
class Files:
    """Where second tables and repaired queries go, for who asks for them."""

    witness: Annotated[
        Path | None,
        Parameter(help="Write second tables, for everybody not exposed, to this CSV."),
    ] = None
    repair: Annotated[
        Path | None,
        Parameter(help="Write the queries, without rows that expose anybody, to this SQL file."),
    ] = None

    def check(self, queries: Path, reveal: bool) -> None:
        """Refuse, before any work is done, a file that may not or cannot be written."""
        check_witness(self.witness, reveal)
        check_repair(self.repair, queries)

    def write(
        self, found: "Audited", repaired: Callable[[], "Repaired"], output: Output
    ) -> "Audited":
        """Write what was asked for; the audit that comes back tells of it."""
        if self.witness is not None:
            found = write_witness(found, self.witness, output)
        if self.repair is not None:
            found = replace(found, repair=write_repair(repaired(), self.repair, output))
        return found
