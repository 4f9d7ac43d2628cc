"""Private answers, forecasts and budgets for the tests of their reports."""

from datetime import date
from fractions import Fraction

from casemate.answer import Answer
from casemate.answer.answer import Forecast, Spending, Standing
from casemate.grid import Noised, Origin

HOSTILE = '<script>alert("&")</script>'

NOTHING = Spending(Fraction(0), Fraction(0))
SOME = Spending(Fraction(1, 400), Fraction(3, 10))
LEFT = Spending(Fraction(1, 50), Fraction(9, 10))
PURE = Spending(None, Fraction(1, 4))

GROUPED = Answer(
    'SELECT sex, COUNT(*) FROM "t" GROUP BY sex',
    ("sex", "count"),
    (
        ("Female", Noised(10_012.4, 9_050.0, 10_974.25, 31.5, 8_000.0, 12_000.0)),
        (None, Noised(0.0, 0.0, 962.0, 12.0, 0.0, 2_000.0)),
    ),
    Origin.SURROGATE,
    0.95,
    NOTHING,
    LEFT,
    ("ages are counted in bins of 5",),
)
DATED = Answer(
    "SELECT day, AVG(x) FROM t GROUP BY day",
    ("day", "avg", "n"),
    ((date(2024, 2, 29), Noised(0.5, 0.25, 0.75, 0.0123), Noised(7.0, 1.0, 9.0, 0.5)),),
    Origin.MEASURED,
    0.9,
    SOME,
    LEFT,
)
UNPROVEN = Answer(
    "SELECT COUNT(*) FROM t",
    ("count",),
    ((Noised(41.0, error=2.5),),),
    Origin.UNVERIFIED,
    0.95,
    NOTHING,
    PURE,
)
FORECAST = Forecast("SELECT COUNT(*) FROM t", SOME, LEFT, False, ("a note",))
STANDING = Standing(
    dataset="people.csv",
    budget=LEFT,
    spent=SOME,
    remaining=Spending(Fraction(7, 400), Fraction(8, 10)),
    delta=Fraction(1, 10**6),
    neighbours="add-remove",
    protects="person",
    strategy="warm",
    questions=1_200,
    surprises=3,
    surprises_left=22,
    principals={"": 1, "alice": 2},
    statement="spent epsilon 0.3 of 0.9 at delta 1e-06 (neighbours add-remove, protects person)",
)
