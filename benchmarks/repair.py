"""Claims: how few numbers of a real release have to be withheld so that nobody is exposed.

The release is that of `release`: the sums of every table of up to two of nine public attributes,
rows of fewer than 10 people withheld. The first repair is of incomes of any size, where only the
rank of what is published matters. The second is of a yes/no, whether people have difficulty seeing,
as counts: 619 of its rows count nobody, and each of these fixes everybody in it. How many rows
leave all of them room to move is measured; whether that is enough for whole numbers too is for the
audit to decide, which `casemate audit --repair` lets it do. The last are the twelve tables of
`dashboard`: averages and counts alone, with extremes, with medians, and with secret missingness.
"""

import csv
import gzip
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.claims import Claim, real_table, show
from benchmarks.dashboard import EXTREMES, TABLES, statement, write_policy
from benchmarks.release import FILE, PUBLIC, prepare, statements
from casemate.audit.case import Case
from casemate.audit.repair import repair
from casemate.audit.repair.search import choose_rows
from casemate.audit.repair.stakes import Stakes
from casemate.audit.repair.statements import AuditedStatements, LoggedStatement, rows_shown
from casemate.published import Knowledge, column_values, equations, publication
from casemate.query.parse import DIALECT, Logged
from casemate.table import Table

WAYS = 2


def prepare_eyes(source: Path, target: Path) -> None:
    """The nine public columns, age in steps of five years, and difficulty seeing."""
    with gzip.open(source, "rt") as read, target.open("w", newline="") as write:
        out = csv.writer(write)
        out.writerow([*PUBLIC, "AGE5", "DEYE"])
        for row in csv.DictReader(read):
            public = [row[name] for name in PUBLIC]
            out.writerow([*public, int(row["AGEP"]) // 5, row["DEYE"] == "1"])


def incomes(table: Table) -> list[Claim]:
    start = time.process_time()
    found = repair(statements(WAYS), table)
    seconds = time.process_time() - start
    shown = f"{len(found.withheld)} of {found.cells_before:,}"
    return [
        Claim("incomes: rows withheld", "<= 35 of 1,500", shown),
        Claim("incomes: verdict of the repaired file", "none-exposed", found.audited.verdict.value),
        Claim("incomes: CPU s, audits included", "stated", f"{seconds:.1f}"),
    ]


def eyes(table: Table) -> list[Claim]:
    counted = 'COUNT(*) FILTER (WHERE "DEYE")'
    log = [sql.replace("SUM(PINCP)", counted) for sql in statements(WAYS)]
    policy, source = table.policy, table.source
    found = publication([Logged(sql, 1) for sql in log], policy)
    case = Case(equations(found.columns, policy, source), policy, Knowledge(), found, source)
    listed = {n: LoggedStatement(n, sql, policy, source, DIALECT) for n, sql in enumerate(log, 1)}
    rows = rows_shown(case, AuditedStatements(listed, {}))
    values = column_values("DEYE", source)
    sees = [not values[case.equations.people.record(i)] for i in range(len(values))]
    empty = sum(all(sees[i] for i in each.records.tolist()) for each in rows.values())
    start = time.process_time()
    kept = choose_rows(Stakes(case), rows)
    seconds = time.process_time() - start
    return [
        Claim("difficulty seeing: rows that count nobody", "stated", f"{empty} of {len(rows):,}"),
        Claim("difficulty seeing: rows that leave room", "stated", f"{len(kept)} of {len(rows):,}"),
        Claim("difficulty seeing: CPU s to choose them", "stated", f"{seconds:.1f}"),
    ]


def dashboards(folder: Path, real: Path) -> list[Claim]:
    """Rows and single numbers withheld of the dashboard, and the CPU seconds of the repair."""
    claims, linear = [], "AVG(PINCP), COUNT(*)"
    for name, missing, shown in (
        ("averages", "public", linear),
        ("extremes", "public", EXTREMES),
        ("medians", "public", f"{EXTREMES}, MEDIAN(PINCP)"),
        ("extremes", "secret", EXTREMES),
    ):
        policy, start = write_policy(folder, real, missing), time.process_time()
        found = repair([statement(keys, shown) for keys in TABLES], policy)
        seconds = time.process_time() - start
        rows = found.cells_before - found.cells_after
        said = f"{rows} rows and {len(found.withheld) - rows} numbers, {seconds:.0f} s"
        claims.append(
            Claim(
                f"dashboard of {name}, {missing}", "16 in all", f"{said}, {found.audited.verdict}"
            )
        )
    return claims


def main() -> None:
    real = real_table(FILE)
    if real is None:
        return
    with TemporaryDirectory() as temporary:
        income, seeing = Path(temporary) / "income.csv", Path(temporary) / "seeing.csv"
        prepare(real, income)
        prepare_eyes(real, seeing)
        with Table.open(income, private=["PINCP"]) as table:
            show(incomes(table))
        with Table.open(seeing, private=["DEYE"]) as table:
            show(eyes(table))
        show(dashboards(Path(temporary), real))


if __name__ == "__main__":
    main()
