"""A file of people in teams, for tests of the online auditor."""

from pathlib import Path

TEAMS = ["a", "a", "a", "a", "b", "b", "b", "c"]
PAY = [7, 7, 3, 9, 4, 6, 5, 8]
PRIVATE = ("pay", "bonus")


def written(folder: Path, pay: list[int] | None = None, teams: list[str] | None = None) -> Path:
    """A file of people: a team, a number 1, 2, ..., an age, and two private numbers."""
    path = folder / "staff.csv"
    values = PAY if pay is None else pay
    lines = [
        f"{team},{n},{20 + n * n % 7},{value},{value + n}"
        for n, (team, value) in enumerate(zip(teams or TEAMS, values, strict=True), start=1)
    ]
    path.write_text("team,n,age,pay,bonus\n" + "\n".join(lines) + "\n")
    return path


def of(aggregate: str, *who: int) -> str:
    """A question about some of them, by their numbers."""
    return f"SELECT {aggregate} FROM staff WHERE n IN ({', '.join(map(str, who))})"


EVERYTHING = [
    of("SUM(pay)", 1, 2, 3, 5),
    of("MAX(bonus)", 1, 2, 3),
    "SELECT team, AVG(pay), COUNT(*) FROM staff GROUP BY team HAVING COUNT(pay) >= 3",
    "SELECT team, MIN(bonus) FROM staff GROUP BY team HAVING COUNT(*) >= 3",
    "SELECT SUM(pay * age) + SUM(pay) FILTER (WHERE age > 22) FROM staff",
    "SELECT AVG(pay) - AVG(pay) FILTER (WHERE n <= 3) FROM staff WHERE n <= 6",
    "SELECT COUNT(*) FROM staff WHERE pay > 5",
    of("SUM(pay)", 4),
    of("MIN(bonus)", 2, 3),
]
"""One question of each kind, some to be refused."""
