"""Claims: what a new statement of a dashboard costs when a thousand have been seen.

The statements of `scale` about a million people (conjunctions of two to four conditions, some asked
a second time without a few people), one in ten of them by region; incomes have no bounds, so that
ranks decide. After a thousand, each further one is run as plain SQL in DuckDB, which is its own
scan, and taken by the audit behind `casemate audit watch`, in turn; the time of parsing alone is
taken off, and stands on a line of its own. The slow obvious version, an audit of all statements so
far, stands beside them.
CPU seconds of all threads; kernels are compiled and columns loaded before the clock starts.
"""

import time
from functools import partial

import numpy as np

from benchmarks.claims import Claim, show
from benchmarks.online import cpu, without_bounds
from benchmarks.scale import predicates
from casemate.audit import Audit, AuditOptions
from casemate.audit.watch import IncrementalAudit, Step
from casemate.published import Knowledge
from casemate.query.parse import Logged, parse
from casemate.table import Table

POPULATION = "population:1000000"
SEEN, MEASURED = 1_000, 200


def statements(table: Table, count: int) -> list[str]:
    """Sums of incomes, one in ten of them by region."""
    found = predicates(table, count)
    return [
        f"SELECT region, AVG(income) FROM p WHERE {each} GROUP BY region"
        if place % 10 == 0
        else f"SELECT SUM(income) FROM p WHERE {each}"
        for place, each in enumerate(found)
    ]


def main() -> None:
    with Table.open(POPULATION) as opened:
        table = without_bounds(opened)
        asked = statements(table, SEEN + MEASURED)
        audit = IncrementalAudit(table, Knowledge(), AuditOptions(), "postgres")
        before = cpu(lambda: [audit.add(Logged(sql, 1)) for sql in asked[:SEEN]])
        times, steps = [], list[Step]()
        for sql in asked[SEEN:]:
            plain = sql.replace(" FROM p", f" FROM {table.source.relation()} AS p")
            alone = min(cpu(partial(table.source.read, plain)) for _ in range(2))
            parsing = min(cpu(partial(parse, sql, table.policy)) for _ in range(2))
            start = time.process_time()
            steps.append(audit.add(Logged(sql, 1)))
            times.append((alone, time.process_time() - start - parsing, parsing))
        exposed = sum(len(step.findings) for step in steps)
        slow = cpu(partial(Audit.of, asked[: SEEN + 1], table))
    alone, taken, parsing = np.array(times).mean(axis=0)
    ratios = np.array([t / a for a, t, _ in times])
    spread = ", ".join(f"{each:.2f}" for each in np.quantile(ratios, [0.1, 0.5, 0.9]))
    show(
        [
            Claim("CPU of a new statement over its own scan", "<= 1.3", f"{taken / alone:.2f}"),
            Claim("the same, one in ten; half; nine in ten are below", "-", spread),
            Claim("ms of the scan; of parsing", "-", f"{1000 * alone:.1f}; {1000 * parsing:.1f}"),
            Claim("people newly exposed by them", "-", f"{exposed}"),
            Claim("CPU seconds of the first thousand", "-", f"{before:.1f}"),
            Claim("an audit of all so far, over the same scan", "-", f"{slow / alone:.0f}"),
        ]
    )
