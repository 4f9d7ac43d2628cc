"""How closely `casemate audit` looks: what counts as exposed, and how long it is looked for."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from casemate.cli.options import Whole, check_seconds
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.audit.exposure import Options


@Parameter(name="*")
@dataclass(frozen=True)
class Scrutiny:
    """The options from `--protect` to `--seconds`, as they were written."""

    protect: Annotated[
        str, Parameter(help="A value known to within this share counts as nearly known.")
    ] = "10%"
    group_size: Annotated[
        Whole, Parameter(help="The largest group whose known total is reported.")
    ] = 5
    insiders: Annotated[
        Whole, Parameter(help="So many people may put together what they know; 0 for none.")
    ] = 1
    approximate: Annotated[
        bool, Parameter(negative="", help="Find out what insiders nearly know; takes long.")
    ] = False
    certificates: Annotated[
        Whole, Parameter(help="For how many exposed values a short certificate is looked for.")
    ] = 20
    dominance: Annotated[
        str, Parameter(help="N,K%: a cell is sensitive if its N largest exceed K% of it.")
    ] = "2,90%"
    rounding: Annotated[
        bool,
        Parameter(negative="", help="Answers are rounded to the digits they are printed with."),
    ] = False
    seconds: Annotated[
        float, Parameter(help="The longest that bounds and searches may take; 0 for no limit.")
    ] = 300.0

    def check(self) -> None:
        """Refuse what means nothing before any work is done."""
        from casemate.published.knowledge_file import share

        share(self.protect)
        if self.group_size < 1:
            raise Misconfigured(f"--group-size {self.group_size} is too small; give at least 1")
        if self.insiders < 0:
            raise Misconfigured(f"--insiders {self.insiders} is negative; give 0 to look for none")
        if self.certificates < 0:
            raise Misconfigured(f"--certificates {self.certificates} is negative; give 0 for none")
        check_seconds(self.seconds)

    def options(self, witness: bool) -> "Options":
        """The same for the audit, which is asked for second tables too where there is a witness."""
        from casemate.audit.exposure import Options
        from casemate.audit.sensitive_cells import read_dominance
        from casemate.published.knowledge_file import share

        return Options(
            protect=share(self.protect),
            group_size=self.group_size,
            insiders=self.insiders,
            approximate=self.approximate,
            certificates=self.certificates,
            dominance=read_dominance(self.dominance),
            rounding=self.rounding,
            seconds=self.seconds or inf,
            witness=witness,
        )
