"""What is protected: the policy, the data behind it, and the tables that casemate ships.

`Policy` (schema) says which columns there are and what protects them; `load_policy` reads it from
TOML, `drafting` writes a first one from the data, and `checking` compares the two. `Table` is a
policy together with an open source of records (`sources`); `Universe` is the grid of cells that a
policy draws, into one of which each record falls.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.checking import ColumnReview, Review, reviewed
    from casemate.table.drafting import draft
    from casemate.table.outside import OutsideSource
    from casemate.table.policy import load_policy
    from casemate.table.schema import (
        ORDERED,
        Answering,
        Budget,
        Column,
        ColumnType,
        Exhausted,
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
    from casemate.table.table import NO_PRIVATE, Table, opened_table
    from casemate.table.toml import listed
    from casemate.table.universe import (
        FRACTION_DIGITS,
        PRECISE,
        WHOLE,
        Attribute,
        AttributeKind,
        Point,
        Universe,
        image,
        point,
        typed,
        whole_values,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
