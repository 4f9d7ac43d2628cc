"""How much of the house a command walks through: named functions of casemate that run, by module.

    python scripts/trace.py audit        an audit of two statements about four rows
    python scripts/trace.py ask          one private answer
    python scripts/trace.py -- ARGS      any command line of casemate

Counted under `sys.setprofile`: functions with a name of their own, not lambdas, comprehensions or
the bodies of modules and classes.
"""

import inspect
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).parents[1] / "src/casemate"
ROWS = "id,age,city,pay\n1,30,A,100\n2,40,A,200\n3,50,B,300\n4,60,B,400\n"
QUERIES = "SELECT SUM(pay) FROM staff;\nSELECT SUM(pay) FROM staff WHERE city = 'A';\n"
POLICY = """
[table]
source = "staff.csv"
[columns.id]
role = "identifier"
[columns.age]
min = 0
max = 99
[columns.city]
values = ["A", "B"]
[columns.pay]
role = "private"
min = 0
max = 1000
[budget]
epsilon = 1.0
delta = 1e-9
"""


def example(verb: str, folder: Path) -> list[str]:
    """The command line of an example, with its files."""
    (folder / "staff.csv").write_text(ROWS)
    (folder / "queries.sql").write_text(QUERIES)
    (folder / "casemate.toml").write_text(POLICY)
    table = str(folder / "staff.csv")
    lines = {
        "audit": ["audit", str(folder / "queries.sql"), "--table", table, "--private", "pay"],
        "ask": ["ask", str(folder / "casemate.toml"), "SELECT COUNT(*) FROM staff WHERE age > 35"],
    }
    return lines[verb]


def functions_run(arguments: list[str]) -> Counter[str]:
    """How many functions of each module run."""
    from casemate.cli.main import run

    seen: set[tuple[str, int, str]] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        ours = event == "call" and code.co_filename.startswith(str(PACKAGE))
        function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if ours and function:
            seen.add((code.co_filename, code.co_firstlineno, code.co_name))

    sys.setprofile(watch)
    try:
        run(arguments)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return Counter(str(Path(file).relative_to(PACKAGE)) for file, _, _ in seen)


def main(arguments: list[str]) -> None:
    """Run a command, and print what it went through."""
    with tempfile.TemporaryDirectory() as folder:
        known = arguments and arguments[0] in ("audit", "ask")
        line = example(arguments[0], Path(folder)) if known else arguments[1:]
        counts = functions_run([*line, "--quiet"] if known else line)
    for module, count in sorted(counts.items()):
        print(f"{count:5}  {module}", file=sys.stderr)
    print(f"{sum(counts.values())} functions in {len(counts)} modules", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
