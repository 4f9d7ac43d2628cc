"""`rand_hie`: the RAND Health Insurance Experiment, read from the statsmodels package.

Origin    The RAND Corporation ran the experiment in the 1970s: families in six places were given
          insurance plans by lot, and what they spent on health was recorded year by year. The
          file is the extract that accompanies Cameron and Trivedi, Microeconometrics (2005).
Licence   statsmodels states that the data is in the public domain; nothing of it is copied here.
Content   20,190 person-years of 5,912 people, each in the experiment for one to five years; 45
          columns under their original names. Dollars are the file's own, not adjusted to today.
Exact     Numbers with a decimal point become decimals of seven places, the most the file has.
"""

import csv
from decimal import Decimal
from fractions import Fraction
from importlib import resources
from typing import Any

from casemate.errors import Misconfigured
from casemate.table.schema import (
    Budget,
    Column,
    ColumnType,
    Missing,
    PerPerson,
    Policy,
    Provenance,
    Role,
)
from casemate.table.sources.source import Series

ROWS_PER_PERSON = 5
FILE = "datasets/randhie/src/randhie.csv"
PLACES = Decimal("0.0000001")


INTEGER = ColumnType.INTEGER
Domain = dict[str, Any]
"""What a column can hold, as arguments of `Column`."""


def one_of(*values: int) -> Domain:
    """An integer, one of a few."""
    return {"type": INTEGER, "values": values}


def between(low: int, high: int, bins: int, kind: ColumnType = ColumnType.DECIMAL) -> Domain:
    """A number between two bounds."""
    return {"type": kind, "low": low, "high": high, "bins": bins}


YES_NO = one_of(0, 1)

COLUMNS: dict[str, tuple[Domain, str]] = {
    "plan": (one_of(*range(1, 20)), "the insurance plan, by number"),
    "site": (one_of(1, 2, 3, 4, 5, 6), "the place, by number"),
    "coins": (one_of(0, 25, 50, 95, 100), "per cent of a medical bill the family pays itself"),
    "tookphys": (YES_NO, "had a physical examination at the start"),
    "year": (one_of(1, 2, 3, 4, 5), "year of the study"),
    "zper": ({"type": INTEGER}, "the person; the first digit is the site"),
    "black": (between(0, 1, 2), "is Black; a fraction where it was imputed"),
    "income": (between(0, 30_000, 15), "family income in dollars"),
    "xage": (between(0, 65, 13), "age in that year"),
    "female": (YES_NO, "is a woman or girl"),
    "educdec": (between(0, 25, 5), "years of schooling of the family's decision maker"),
    "time": (between(0, 1, 4), "share of the year in which the person was insured by the study"),
    "outpdol": (between(0, 3_000, 15), "outpatient dollars, without psychotherapy and drugs"),
    "drugdol": (between(0, 1_000, 10), "dollars for drugs, outpatient"),
    "suppdol": (between(0, 1_500, 15), "dollars for supplies, outpatient"),
    "mentdol": (between(0, 1_500, 15), "dollars for psychotherapy, outpatient"),
    "inpdol": (between(0, 40_000, 20), "inpatient dollars, for hospitals and doctors"),
    "meddol": (
        between(0, 40_000, 20),
        "medical dollars in all, without outpatient psychotherapy",
    ),
    "totadm": (between(0, 10, 10, INTEGER), "admissions to hospital"),
    "inpmis": (YES_NO, "some inpatient charge is missing"),
    "mentvis": (between(0, 100, 10, INTEGER), "visits for psychotherapy"),
    "mdvis": (between(0, 100, 10, INTEGER), "visits to a doctor in person"),
    "notmdvis": (
        between(0, 150, 10, INTEGER),
        "visits in person to somebody who is not a doctor",
    ),
    "num": (between(1, 15, 14, INTEGER), "people in the family"),
    "mhi": (between(0, 100, 10), "index of mental health at the start"),
    "disea": (between(0, 60, 12), "score of chronic diseases at the start"),
    "physlm": (between(0, 1, 2), "has a physical limitation; a fraction where it was imputed"),
    "ghindx": (between(0, 100, 10), "index of general health at the start"),
    "mdeoff": (between(0, 1_000, 10), "the most the family was asked to pay itself, dollars"),
    "pioff": (between(0, 1_300, 13), "incentive paid for taking part, dollars"),
    "child": (YES_NO, "is a child"),
    "fchild": (YES_NO, "is a girl"),
    "lfam": (between(0, 3, 6), "logarithm of the family's size"),
    "lpi": (between(0, 8, 8), "logarithm of the incentive"),
    "idp": (YES_NO, "the plan has a deductible for each person"),
    "logc": (between(0, 5, 5), "logarithm of coins + 1"),
    "fmde": (between(0, 9, 9), "logarithm of a function of mdeoff and coins"),
    "hlthg": (YES_NO, "rates the own health good"),
    "hlthf": (YES_NO, "rates the own health fair"),
    "hlthp": (YES_NO, "rates the own health poor"),
    "xghindx": (between(0, 100, 10), "ghindx, imputed where it is missing"),
    "linc": (between(0, 11, 11), "logarithm of income + 1"),
    "lnum": (between(0, 3, 6), "logarithm of the family's size"),
    "lnmeddol": (between(-1, 11, 12), "logarithm of meddol; missing where nothing was spent"),
    "binexp": (YES_NO, "something was spent"),
}
"""What each column can hold and what it means, in the file's order."""

PERSON = "zper"
DOLLARS = {"outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "lnmeddol", "binexp"}
CARE = {"totadm", "inpmis", "mentvis", "mdvis", "notmdvis"}
HEALTH = {"mhi", "disea", "physlm", "ghindx", "xghindx", "hlthg", "hlthf", "hlthp"}
MEANS = {"income", "linc", "mdeoff", "pioff", "lpi", "fmde"}  # what was offered follows income
PRIVATE = DOLLARS | CARE | HEALTH | MEANS
VARYING = DOLLARS | CARE | {"year", "xage", "time", "num", "lfam", "lnum", "child", "fchild"}
NULLABLE = {"educdec", "ghindx", "mdeoff", "pioff", "lnmeddol"}
SEEN = {"disea", "educdec", "num", "lfam", "lnum"}
BOUNDS_SEEN = PRIVATE - HEALTH - {"inpmis", "binexp"} | SEEN  # they were read off the data


def policy() -> Policy:
    """A person is protected with all years; spending, health and means are private."""
    columns = tuple(_column(name) for name in COLUMNS)
    budget = Budget(Fraction(1), Fraction(1, 10**9))
    return Policy(
        "rand_hie", columns, person=PERSON, rows_per_person=ROWS_PER_PERSON, budget=budget
    )


def columns() -> dict[str, Series]:
    """The 20,190 person-years, column by column."""
    header, *rows = csv.reader(_text().splitlines())
    if header != list(COLUMNS):
        raise Misconfigured(
            "rand_hie in the installed statsmodels does not have the columns casemate knows; "
            "run pip install 'casemate[tables]' for a version that has them"
        )
    cells = zip(*rows, strict=True)
    return {name: _series(name, list(texts)) for name, texts in zip(header, cells, strict=True)}


def _text() -> str:
    """The file inside statsmodels, found without importing what statsmodels imports."""
    try:
        return resources.files("statsmodels").joinpath(FILE).read_text(encoding="ascii")
    except (ModuleNotFoundError, FileNotFoundError):
        raise Misconfigured(
            "rand_hie is read from the statsmodels package, which is not installed here or does "
            "not carry it; run pip install 'casemate[tables]'"
        ) from None


def _column(name: str) -> Column:
    domain, _ = COLUMNS[name]
    private = Role.PRIVATE if name in PRIVATE else Role.PUBLIC
    return Column(
        name,
        Role.IDENTIFIER if name == PERSON else private,
        **domain,
        provenance=Provenance.DATA if name in BOUNDS_SEEN else Provenance.PUBLIC,
        missing=Missing.SECRET if name in NULLABLE else Missing.NONE,
        per_person=PerPerson.VARYING if name in VARYING else PerPerson.CONSTANT,
    )


def _series(name: str, texts: list[str]) -> Series:
    """Exact values; equal texts share one object, as the file repeats itself a lot."""
    type_ = COLUMNS[name][0]["type"]
    filled = set(texts) - {""}
    if type_ is INTEGER:
        known: dict[str, Any] = {text: int(text) for text in filled}
    else:
        known = {text: Decimal(text).quantize(PLACES) for text in filled}
    return Series.of([known.get(text) for text in texts], type_)
