"""Random predicates as SQL text over the columns of `world.py`."""

from datetime import date

from hypothesis import strategies as st

INTEGERS = ["age", "weight", "area"]
NUMBERS = [*INTEGERS, '"Height"', "score", "income", "bonus"]
WORDS = ["sex", "note", "diagnosis"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


integers = st.integers(-5, 95).map(str)
decimals = st.decimals(-3, 95, places=1).map(str)
constants = st.one_of(integers, decimals, st.just("NULL"))
words = st.sampled_from(["f", "m", "a", "ab%c", "Zoe", "it's", "", "flu", "none"]).map(text)
patterns = st.sampled_from(["%", "a%", "_", "%b%", r"a\_b", "f", "%u%"]).map(text)
days = st.dates(date(2019, 12, 1), date(2022, 3, 1)).map(lambda day: text(day.isoformat()))


def compared(left: st.SearchStrategy[str], right: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("{} {} {}".format, left, st.sampled_from(COMPARISONS), right)


def listed(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(items, min_size=1, max_size=4).map(", ".join)


arithmetic = st.builds(
    "({} {} {})".format,
    st.sampled_from(INTEGERS),
    st.sampled_from(["+", "-", "*", "/", "%"]),
    st.one_of(st.sampled_from(INTEGERS), integers),
)
functions = st.one_of(
    st.builds("abs({})".format, st.sampled_from(NUMBERS)),
    st.builds("coalesce({}, {})".format, st.sampled_from(INTEGERS), integers),
    st.builds("nullif({}, {})".format, st.sampled_from(INTEGERS), integers),
    st.builds("length({})".format, st.sampled_from(WORDS)),
    st.builds("CASE WHEN {} > 18 THEN {} END".format, st.sampled_from(INTEGERS), integers),
)
atoms = st.one_of(
    compared(st.sampled_from(NUMBERS), constants),
    compared(constants, st.sampled_from(NUMBERS)),
    compared(st.sampled_from(WORDS), words),
    compared(arithmetic, constants),
    compared(functions, integers),
    compared(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)),
    compared(st.just("born"), days),
    st.builds("{} IN ({})".format, st.sampled_from(INTEGERS), listed(constants)),
    st.builds("{} NOT IN ({})".format, st.sampled_from(WORDS), listed(words)),
    st.builds("{} BETWEEN {} AND {}".format, st.sampled_from(NUMBERS), constants, constants),
    st.builds("{} LIKE {}".format, st.sampled_from(WORDS), patterns),
    st.builds("{} IS NULL".format, st.sampled_from([*NUMBERS, *WORDS, "member", "born"])),
    st.builds("{} IS NOT NULL".format, st.sampled_from([*NUMBERS, *WORDS, "seen"])),
    st.sampled_from(["member", "member IS NOT TRUE", "member IS FALSE", "TRUE", "FALSE", "NULL"]),
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda parts: "(" + " AND ".join(parts) + ")"),
        several.map(lambda parts: "(" + " OR ".join(parts) + ")"),
        inner.map(lambda part: f"(NOT {part})"),
        inner.map(lambda part: f"(({part}) IS TRUE)"),
    )


predicates = st.recursive(atoms, combined, max_leaves=8)
