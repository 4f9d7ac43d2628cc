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
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.table.schema import Budget, Column, ColumnType, PerPerson, Policy, Provenance, Role
from casemate.table.sources.source import Series

ROWS_PER_PERSON = 5
FILE = "datasets/randhie/src/randhie.csv"
PLACES = Decimal("0.0000001")


@dataclass(frozen=True)
class Member:
    """The column is an integer, one of a few."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class NumberSpan:
    """The column is a number between two bounds."""

    low: int
    high: int
    bins: int
    type: ColumnType = ColumnType.DECIMAL


YES_NO = Member((0, 1))
INTEGER = ColumnType.INTEGER

COLUMNS: dict[str, tuple[Member | NumberSpan | None, str]] = {
    "plan": (Member(tuple(range(1, 20))), "the insurance plan, by number"),
    "site": (Member((1, 2, 3, 4, 5, 6)), "the place, by number"),
    "coins": (Member((0, 25, 50, 95, 100)), "per cent of a medical bill the family pays itself"),
    "tookphys": (YES_NO, "had a physical examination at the start"),
    "year": (Member((1, 2, 3, 4, 5)), "year of the study"),
    "zper": (None, "the person; the first digit is the site"),
    "black": (NumberSpan(0, 1, 2), "is Black; a fraction where it was imputed"),
    "income": (NumberSpan(0, 30_000, 15), "family income in dollars"),
    "xage": (NumberSpan(0, 65, 13), "age in that year"),
    "female": (YES_NO, "is a woman or girl"),
    "educdec": (NumberSpan(0, 25, 5), "years of schooling of the family's decision maker"),
    "time": (NumberSpan(0, 1, 4), "share of the year in which the person was insured by the study"),
    "outpdol": (NumberSpan(0, 3_000, 15), "outpatient dollars, without psychotherapy and drugs"),
    "drugdol": (NumberSpan(0, 1_000, 10), "dollars for drugs, outpatient"),
    "suppdol": (NumberSpan(0, 1_500, 15), "dollars for supplies, outpatient"),
    "mentdol": (NumberSpan(0, 1_500, 15), "dollars for psychotherapy, outpatient"),
    "inpdol": (NumberSpan(0, 40_000, 20), "inpatient dollars, for hospitals and doctors"),
    "meddol": (
        NumberSpan(0, 40_000, 20),
        "medical dollars in all, without outpatient psychotherapy",
    ),
    "totadm": (NumberSpan(0, 10, 10, INTEGER), "admissions to hospital"),
    "inpmis": (YES_NO, "some inpatient charge is missing"),
    "mentvis": (NumberSpan(0, 100, 10, INTEGER), "visits for psychotherapy"),
    "mdvis": (NumberSpan(0, 100, 10, INTEGER), "visits to a doctor in person"),
    "notmdvis": (
        NumberSpan(0, 150, 10, INTEGER),
        "visits in person to somebody who is not a doctor",
    ),
    "num": (NumberSpan(1, 15, 14, INTEGER), "people in the family"),
    "mhi": (NumberSpan(0, 100, 10), "index of mental health at the start"),
    "disea": (NumberSpan(0, 60, 12), "score of chronic diseases at the start"),
    "physlm": (NumberSpan(0, 1, 2), "has a physical limitation; a fraction where it was imputed"),
    "ghindx": (NumberSpan(0, 100, 10), "index of general health at the start"),
    "mdeoff": (NumberSpan(0, 1_000, 10), "the most the family was asked to pay itself, dollars"),
    "pioff": (NumberSpan(0, 1_300, 13), "incentive paid for taking part, dollars"),
    "child": (YES_NO, "is a child"),
    "fchild": (YES_NO, "is a girl"),
    "lfam": (NumberSpan(0, 3, 6), "logarithm of the family's size"),
    "lpi": (NumberSpan(0, 8, 8), "logarithm of the incentive"),
    "idp": (YES_NO, "the plan has a deductible for each person"),
    "logc": (NumberSpan(0, 5, 5), "logarithm of coins + 1"),
    "fmde": (NumberSpan(0, 9, 9), "logarithm of a function of mdeoff and coins"),
    "hlthg": (YES_NO, "rates the own health good"),
    "hlthf": (YES_NO, "rates the own health fair"),
    "hlthp": (YES_NO, "rates the own health poor"),
    "xghindx": (NumberSpan(0, 100, 10), "ghindx, imputed where it is missing"),
    "linc": (NumberSpan(0, 11, 11), "logarithm of income + 1"),
    "lnum": (NumberSpan(0, 3, 6), "logarithm of the family's size"),
    "lnmeddol": (NumberSpan(-1, 11, 12), "logarithm of meddol; missing where nothing was spent"),
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
    return Column(
        name,
        _role(name),
        _type(name),
        low=domain.low if isinstance(domain, NumberSpan) else None,
        high=domain.high if isinstance(domain, NumberSpan) else None,
        values=domain.values if isinstance(domain, Member) else None,
        bins=domain.bins if isinstance(domain, NumberSpan) else None,
        provenance=_provenance(name),
        nullable=name in NULLABLE,
        per_person=PerPerson.VARYING if name in VARYING else PerPerson.CONSTANT,
    )


def _role(name: str) -> Role:
    if name == PERSON:
        return Role.IDENTIFIER
    return Role.PRIVATE if name in PRIVATE else Role.PUBLIC


def _type(name: str) -> ColumnType:
    domain, _ = COLUMNS[name]
    return domain.type if isinstance(domain, NumberSpan) else INTEGER


def _provenance(name: str) -> Provenance:
    return Provenance.DATA if name in BOUNDS_SEEN else Provenance.PUBLIC


def _series(name: str, texts: list[str]) -> Series:
    missing = np.array([text == "" for text in texts])
    filled = [text or "0" for text in texts]
    if _type(name) is INTEGER:
        return Series(np.array(filled).astype(np.int64), missing)
    return Series(_decimals(filled), missing)


def _decimals(texts: list[str]) -> NDArray[np.object_]:
    """Exact values; equal texts share one object, as the file repeats itself a lot."""
    known = {text: Decimal(text).quantize(PLACES) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=object)
