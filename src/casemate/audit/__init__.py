"""Who is exposed: what a set of published aggregates adds up to, decided exactly.

`exposure` is the list of checks and runs them over one `case`: each adds to the `findings`, which
become a `result`. `checks` are the ways to be exposed, `region` the arithmetic of possible tables,
`order` extremes, medians and comparisons, `witness` second tables that prove somebody safe,
`repair` what can be published instead, `online` the auditor that decides before it answers, `large`
tables too long for equations, `block` small blocks of people, and `report`, `page` and `commands`
are how people see it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.exposure import Audit, witnesses
    from casemate.audit.findings import AuditOptions
    from casemate.audit.report import reason
    from casemate.audit.result import Exposed
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
