"""Who is determined, the slow obvious way: one rank in fractions for each column."""

from fractions import Fraction
from random import Random

from hypothesis import strategies as st

Matrix = list[list[int]]
HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]  # the document's example
seeds = st.integers(0, 2**32).map(Random)  # Hypothesis's own may be degenerate


def rank(matrix: Matrix) -> int:
    """Gaussian elimination in fractions."""
    rows = [[Fraction(value) for value in row] for row in matrix]
    found = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for row in rows[found + 1 :]:
            factor = row[column] / rows[found][column]
            if factor:
                row[:] = [a - factor * b for a, b in zip(row, rows[found], strict=True)]
        found += 1
    return found


def determined(matrix: Matrix) -> list[int]:
    """The columns without which the rank is smaller: the document's own criterion."""
    full = rank(matrix)
    return [
        j
        for j in range(len(matrix[0]) if matrix else 0)
        if rank([row[:j] + row[j + 1 :] for row in matrix]) < full
    ]


def follows(matrix: Matrix, target: list[int]) -> bool:
    """Whether the target is a combination of the rows."""
    return rank([*matrix, target]) == rank(matrix)


def generated(rng: Random) -> Matrix:
    """A small system of one of the kinds an audit meets: 0/1, weights, repeated and empty rows."""
    columns, rows = rng.randint(1, 8), rng.randint(0, 9)
    values = rng.choice([[0, 1], [0, 0, 1], [0, 1, 2, 3], [-2, -1, 0, 1, 2], [0, 0, 0, 1, 10**30]])
    matrix = [[rng.choice(values) for _ in range(columns)] for _ in range(rows)]
    for _ in range(rng.randint(0, 2)):
        kind = rng.randrange(3)
        if kind == 0 or not matrix:
            matrix.append([0] * columns)
        elif kind == 1:
            matrix.append(list(rng.choice(matrix)))
        else:
            one, other = rng.choice(matrix), rng.choice(matrix)
            matrix.append([3 * a - 2 * b for a, b in zip(one, other, strict=True)])
    rng.shuffle(matrix)
    return matrix or [[0] * columns]


def anti_hadamard(size: int) -> Matrix:
    """0/1 equations of determinant 1 whose inverse has entries like Fibonacci's numbers."""
    return [[int(j == i or (j > i and (j - i) % 2 == 1)) for j in range(size)] for i in range(size)]
