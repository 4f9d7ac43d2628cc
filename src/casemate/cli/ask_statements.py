"""Statements out of lines: a line goes on until a semicolon ends its statement."""

from collections.abc import Iterable, Iterator

from casemate.errors import Unsupported


def statements(lines: Iterable[str], dialect: str) -> Iterator[str]:
    """Each statement as soon as its semicolon has come; what is left at the end is one too.

    >>> list(statements(["SELECT\\n", "1; SELECT ';\\n", "'; SELECT 3\\n"], "postgres"))
    ['SELECT\\n1', "SELECT ';\\n'", 'SELECT 3']
    """
    from casemate.query.sql import split

    held = ""
    for line in lines:
        held += line
        if ";" in line and is_ended(held, dialect):
            yield from split(held, dialect)
            held = ""
    yield from split(held, dialect)


def is_ended(text: str, dialect: str) -> bool:
    """Whether no statement of a text is still open.

    Then, and only then, one more word would begin another statement: a semicolon inside quotation
    marks or comments ends nothing.
    """
    from casemate.query.sql import split

    try:
        return len(split(f"{text}\nx", dialect)) > len(split(text, dialect))
    except Unsupported:  # something is not closed yet
        return False
