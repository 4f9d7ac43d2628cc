"""What is protected: the policy, the data behind it, and the tables that casemate ships.

`Policy` (`schema`) says which columns there are and what protects them; `policy` reads it from
`toml`, `review` writes a first one from the data, and compares the two. `Table` is a policy
together with an open source of records (`sources`); `Universe` is the grid of cells that a policy
draws, into one of which each record falls. `stacked` makes one table of several versions of it.
`shipped` are the tables that come along.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.policy import load_policy
    from casemate.table.review import ColumnReview, Review, draft, review_policy
    from casemate.table.schema import (
        ORDERED,
        Answering,
        Budget,
        CellFormat,
        Column,
        ColumnType,
        Exhausted,
        Missing,
        Neighbours,
        PerPerson,
        Policy,
        Protects,
        Provenance,
        PublicTable,
        Role,
        Strategy,
        Value,
    )
    from casemate.table.stacked import LINK, NAME, RELEASE, Stack, Version, stack_tables
    from casemate.table.table import (
        NO_PRIVATE,
        OutsideSource,
        Table,
        opened_table,
        plain_source,
        why_text,
    )
    from casemate.table.toml import join_words
    from casemate.table.universe import (
        FRACTION_DIGITS,
        PRECISE,
        WHOLE,
        Attribute,
        AttributeKind,
        Point,
        Universe,
        column_value,
        image,
        point,
        whole_values,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
