"""Claim: the rank alone gives false safety, and an audit does not rely on it.

The release of `release`, for a yes/no: how many people have difficulty seeing, in every cell of
every table of up to two of nine public attributes, cells of fewer than 10 people withheld. By rank
it gives hardly anybody away; that the answer is yes or no gives away most of them. The same again
without the cells that a repair by rank withholds: by rank it gives nobody away.
"""

import csv
import gzip
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.claims import Claim, real_table, show
from benchmarks.release import FILE, PUBLIC
from casemate.audit import Audit
from casemate.audit.case import Case
from casemate.audit.region.propagation import propagate
from casemate.audit.result import Proof
from casemate.exact import Region, RowSpace
from casemate.exact import equations as each_equation
from casemate.published import Knowledge, equations, publication
from casemate.query.parse import Logged
from casemate.table import Table

KEYS = (*PUBLIC, "AGE5")


def prepare(source: Path, folder: Path) -> int:
    """The public columns and DEYE, 1 for yes and 2 for no; how many say yes."""
    with gzip.open(source, "rt") as read, (folder / "t.csv").open("w", newline="") as write:
        rows = list(csv.DictReader(read))
        out = csv.writer(write)
        out.writerow([*KEYS, "DEYE"])
        for row in rows:
            out.writerow([*(row[name] for name in PUBLIC), int(row["AGEP"]) // 5, row["DEYE"]])
    public = "\n".join(f'[columns.{name}]\nrole = "public"' for name in KEYS)
    private = '[columns.DEYE]\nrole = "private"\nvalues = [1, 2]'
    (folder / "t.toml").write_text(f'[table]\nsource = "t.csv"\n{public}\n{private}\n')
    return sum(row["DEYE"] == "1" for row in rows)


def statements() -> list[str]:
    """Every table of up to two attributes."""
    found = []
    for chosen in (each for size in range(3) for each in combinations(KEYS, size)):
        keys = ", ".join(chosen)
        shown, by = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
        counted = "COUNT(*) FILTER (WHERE DEYE = 1)"
        found.append(f"SELECT {shown}{counted} FROM t{by} HAVING COUNT(*) >= 10")
    return found


def whole_audit(policy: Path, positives: int) -> list[Claim]:
    """Everything the command does by default: propagation, linear programs, whole numbers."""
    start = time.process_time()
    found = Audit.of(statements(), policy)
    seconds = time.process_time() - start
    by_rank = sum(each.proof is Proof.RANK for each in found.exposed)
    yes = sum(each.value == 1 for each in found.exposed)
    left = f"{len(found.undecided)}, {len(found.unchecked)}"
    return [
        Claim("audit: published numbers", "1500", str(found.equations)),
        Claim("audit: exposed by rank alone", "-", str(by_rank)),
        Claim("audit: exposed", ">= 6700 of 7634", str(len(found.exposed))),
        Claim("audit: exposed, of those who say yes", f">= 44 of {positives}", str(yes)),
        Claim("audit: undecided, unchecked", "-", left),
        Claim("audit: CPU s", "-", f"{seconds:.1f}"),
    ]


def by_type_alone(policy: Path, positives: int) -> list[Claim]:
    """Propagation of 0 and 1 alone, with all cells and without those that rank would withhold."""
    with Table.open(policy) as table:
        read = publication([Logged(sql, 1) for sql in statements()], table.policy)
        system = equations(read.columns, table.policy, table.source, read.there)
        case = Case(system, table.policy, Knowledge(), read, table.source)
        region, space = case.region, RowSpace(system.system.columns)
        kept = []
        for row, equation in enumerate(each_equation(system.system)):
            if not space.would_determine(equation):
                space.add(equation)
                kept.append(row)
    return [
        *_fixed("all cells", region, range(system.system.rows), positives),
        Claim("cells withheld until the rank exposes nobody", "<= 35", str(1_500 - len(kept))),
        *_fixed("the others", region, kept, positives),
    ]


def _fixed(what: str, region: Region, rows: Sequence[int], positives: int) -> list[Claim]:
    start = time.process_time()
    wanted = set(rows)
    low = tuple(end if i in wanted else None for i, end in enumerate(region.low))
    high = tuple(end if i in wanted else None for i, end in enumerate(region.high))
    box = propagate(Region(region.system, region.box, low, high)).box
    seconds = time.process_time() - start
    fixed = [low for low, high in zip(box.low, box.high, strict=True) if low == high]
    shown = f"{len(fixed)}, {sum(value == 1 for value in fixed)} in {seconds:.1f}"
    asked = f">= 6700 of 7634, 44 of {positives}"
    return [Claim(f"by type alone, {what}: fixed, who say yes, CPU s", asked, shown)]


def main() -> None:
    real = real_table(FILE)
    if real is None:
        return
    with TemporaryDirectory() as temporary:
        positives = prepare(real, Path(temporary))
        policy = Path(temporary) / "t.toml"
        show([*whole_audit(policy, positives), *by_type_alone(policy, positives)])


if __name__ == "__main__":
    main()
