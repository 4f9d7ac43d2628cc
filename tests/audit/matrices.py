"""Tables whose sums have any coefficients: one public column for each equation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from exact_rank import Matrix

from casemate.table import Table


@contextmanager
def weighted(matrix: Matrix, values: Sequence[object], folder: Path) -> Iterator[Table]:
    """A table with the private column x, in which SUM(wi * x) is equation i."""
    names = [f"w{i}" for i in range(len(matrix))]
    lines = [",".join(["id", *names, "x"])]
    for record, value in enumerate(values):
        weights = [str(row[record]) for row in matrix]
        lines.append(",".join([str(record + 1), *weights, str(value)]))
    path = folder / "weighted.csv"
    path.write_text("\n".join(lines) + "\n")
    with Table.open(path, private=["x"]) as table:
        yield table


def sums(matrix: Matrix) -> list[str]:
    """The statements that publish the equations."""
    return [f"SELECT SUM(w{i} * x) FROM t" for i in range(len(matrix))]


@contextmanager
def categories(
    matrix: Matrix, values: Sequence[str], declared: Sequence[str], folder: Path
) -> Iterator[Table]:
    """A table with the private category d, and columns wi of 0 and 1 to choose records by."""
    (folder / "categories.csv").write_text(
        "\n".join(
            [
                ",".join([*(f"w{i}" for i in range(len(matrix))), "d"]),
                *(
                    ",".join([*(str(row[record]) for row in matrix), value])
                    for record, value in enumerate(values)
                ),
            ]
        )
        + "\n"
    )
    public = "\n".join(
        f'[columns.w{i}]\nrole = "public"\ntype = "integer"\nmin = 0\nmax = 1'
        for i in range(len(matrix))
    )
    policy = folder / "categories.toml"
    policy.write_text(
        f'[table]\nsource = "categories.csv"\n{public}\n'
        f'[columns.d]\nrole = "private"\nvalues = {list(declared)}\n'
    )
    with Table.open(policy) as table:
        yield table
