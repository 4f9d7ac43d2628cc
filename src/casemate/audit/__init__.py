"""Who is exposed: what a set of published aggregates adds up to, decided exactly.

`decide_exposure` runs the list of checks over one `case`: each adds to the `findings`, which become
a `result`. `checks` are the ways to be exposed, `region` the arithmetic of possible tables,
`classes` decides extremes, medians and missing values by interchangeable people, `order` what is
compared person by person, `second_tables` is the proof that somebody is safe and
`second_tables_file` its CSV, `repair` what can be published instead, `online` the auditor that
decides before it answers, `watch` follows a log that grows, `releases` audits versions of a table
together, `large` tables too long for equations, `small_block` blocks of a few people, `time_limit`
is how long a search may take, `interrupts` ends one before that, `describe` says who is meant in
public words, `fields` is the object of a result, and `report` (`words`, `figures`) and `commands`
are how people see it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.decide_exposure import Audit, witnesses
    from casemate.audit.findings import AuditOptions
    from casemate.audit.releases import audit_releases
    from casemate.audit.report import reason, saved_report
    from casemate.audit.result import Exposed
    from casemate.audit.time_limit import Stop
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
