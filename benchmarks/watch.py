"""Claims: what a new statement of a dashboard costs when a thousand have been seen.

The statements of `scale` about a million people (conjunctions of two to four conditions, some asked
a second time without a few people), one in ten of them by region; incomes have no bounds, so that
ranks decide. After a thousand, each further one is run as plain SQL in DuckDB, which is its own
scan, and taken by the audit behind `casemate audit watch`, in turn, the least of three runs each
(three audits have seen the same thousand). The time of parsing alone is taken off, and stands on a
line of its own. The slow obvious version, an audit of all statements so far, stands beside them.
CPU seconds of all threads; kernels are compiled and columns loaded before the clock starts.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.claims import Claim, show
from benchmarks.online import cpu, without_bounds
from benchmarks.scale import predicates
from casemate.audit import Audit, AuditOptions
from casemate.audit.watch import IncrementalAudit
from casemate.published import Knowledge
from casemate.query.parse import Logged, parse
from casemate.table import Table

POPULATION = "population:1000000"
SEEN, MEASURED, RUNS = 1_000, 200, 3


def statements(table: Table, count: int) -> list[str]:
    """Sums of incomes, one in ten of them by region."""
    found = predicates(table, count)
    return [
        f"SELECT region, AVG(income) FROM p WHERE {each} GROUP BY region"
        if place % 10 == 0
        else f"SELECT SUM(income) FROM p WHERE {each}"
        for place, each in enumerate(found)
    ]


def measured(sql: str, audits: Sequence[IncrementalAudit], table: Table) -> list[float]:
    """The least CPU seconds of a statement's own scan, of the audit's step, and of parsing."""
    plain, runs = sql.replace(" FROM p", f" FROM {table.source.relation()} AS p"), []
    for audit in audits:
        alone = cpu(partial(table.source.read, plain))
        taken = cpu(partial(audit.add, Logged(sql, 1)))
        runs.append((alone, taken, cpu(partial(parse, sql, table.policy))))
    return [min(each) for each in zip(*runs, strict=True)]


def main() -> None:
    with Table.open(POPULATION) as opened:
        table = without_bounds(opened)
        asked = statements(table, SEEN + MEASURED)
        audits = [
            IncrementalAudit(table, Knowledge(), AuditOptions(), "postgres") for _ in range(RUNS)
        ]
        steps = [[audit.add(Logged(sql, 1)) for sql in asked[:SEEN]] for audit in audits]
        exposed = sum(len(step.findings) for step in steps[0])
        times = np.array([measured(sql, audits, table) for sql in asked[SEEN:]])
        slow = cpu(partial(Audit.of, asked, table))
    alone, taken, parsing = times.mean(axis=0)
    ratios = np.quantile((times[:, 1] - times[:, 2]) / times[:, 0], [0.1, 0.5, 0.9])
    share = (taken - parsing) / alone
    show(
        [
            Claim("CPU of a new statement over its own scan", "<= 1.3", f"{share:.2f}"),
            Claim("the same, 10, 50 and 90 % of them are below", "-", f"{ratios.round(2)}"),
            Claim("ms of the scan; of parsing", "-", f"{1000 * alone:.1f}; {1000 * parsing:.1f}"),
            Claim("people exposed by the first thousand", "-", f"{exposed}"),
            Claim("an audit of all of them, over the same scan", "-", f"{slow / alone:.0f}"),
        ]
    )
