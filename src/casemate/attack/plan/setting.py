"""What plans for one table share: its public columns, the secret, and how queries are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from casemate.attack.plan.check import ReadBack
from casemate.attack.plan.language import Box, Language, Writer, read_language
from casemate.attack.plan.result import Planned
from casemate.attack.plan.secret import PlanSecret, Subsets, read_secret, telling_axis
from casemate.errors import Misconfigured, shown_name
from casemate.published import People, plain
from casemate.query.language import Scalar
from casemate.query.parse import DIALECT, dialect_of
from casemate.table import PerPerson, Table


@dataclass(frozen=True, eq=False, repr=False)
class PlanSetting:
    """An open table, the private column to find out, and the least count of a query."""

    table: Table
    secret: PlanSecret
    language: Language
    least: int
    writer: Writer

    @classmethod
    def of(
        cls, table: Table, private: str | None, min_count: int, dialect: str = DIALECT
    ) -> "PlanSetting":
        """Read the public columns of a table."""
        dialect_of(dialect)  # an unknown one is refused before any work is done
        secret = read_secret(table.policy, private)
        language = read_language(table.policy, table.source)
        if not 1 <= min_count <= language.count:
            raise Misconfigured(
                f"a minimum count of {min_count} does not suit a table of {language.count} "
                f"records; give one from 1 to {language.count}"
            )
        taken = {each.name for each in table.policy.public_tables}
        name = next(
            name for name in ("t", *(f"t{i}" for i in range(len(taken)))) if name not in taken
        )
        return cls(table, secret, language, min_count, Writer(dialect, name))

    @cached_property
    def sure(self) -> bool:
        """Whether what the queries cannot do cannot be done.

        Not where several rows of one person have one secret, because plans take each row for
        itself; nor where a public column has infinite numbers, because queries leave it out then.
        """
        policy = self.table.policy
        constant = self.secret.column.per_person is PerPerson.CONSTANT
        shared = constant and policy.person not in (None, policy.key)
        return not shared and self.language.whole

    @property
    def blank(self) -> Planned:
        """A plan without queries."""
        private, values = self.secret.column.name, self.secret.values
        return Planned(None, private, self.language.count, self.least, values=values)

    @cached_property
    def subsets(self) -> Subsets | None:
        """Queries about any set of records, where a public column tells all of them apart."""
        axis = telling_axis(self.language)
        if axis is None or len(self.secret.asked) > 1:
            return None
        return Subsets(axis, self.least, self.secret, self.writer)

    def name(self, place: int) -> Scalar:
        """The key or row number of the record in a place."""
        return plain(self.language.records[place])

    def place(self, record: Scalar) -> int:
        """The place of a record."""
        everybody = np.arange(self.language.count)
        found = People(self.language.records, everybody).place(record)
        if found is None:
            raise Misconfigured(
                f"there is no record {shown_name(record)}; give the key of one, or its row "
                f"number, or all"
            )
        return found

    def queries(self, boxes: Sequence[Box]) -> tuple[str, ...]:
        """The queries of some boxes: a sum for each, or a count for each value."""
        places = self.secret.asked
        return tuple(
            self.secret.written(box, place, self.language, self.writer)
            for box in boxes
            for place in places
        )

    def read(self, queries: Sequence[str]) -> ReadBack:
        """Queries read back from their texts."""
        return ReadBack.of(queries, self.table.policy, self.table.source, self.writer.dialect)

    def bound(self, at_least: int) -> int:
        """A number of queries that no plan is below, if it has at least so many boxes.

        Of a category with v values, the queries about any two values have to tell the record, so
        v / 2 times as many are needed as for a number; and one for each value but one.
        """
        asked = len(self.secret.asked)
        if not self.sure:
            return asked
        return at_least if asked == 1 else max(asked, ceil((asked + 1) * at_least / 2))
