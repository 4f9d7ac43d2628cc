"""What is asked: SQL text to aggregates, and which records each of them touches.

`parse` translates SQL into the closed language of `language`; `aggregate` has the values made of it
(`Aggregate`, `Select`, `Statement`), which are all that other rooms see of a statement. `engines`
renders them as SQL for a database and reads true answers; `records` says which record enters which
number, with which coefficient; `snapping` says the same of the cells of a universe, and `sketch`
does without storing records.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.aggregate import (
        Aggregate,
        Function,
        Join,
        Ordering,
        Output,
        Projection,
        Select,
        Statement,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
