import numpy as np
import pytest

from casemate.attack.evidence import Evidence
from casemate.attack.subjects import Features, Subjects
from casemate.table import Table


def published(name: str, column: str, sql: str) -> Subjects:
    with Table.open(name) as table:
        found = Evidence.of([sql], table)
        return found.subjects(column, Features.of(table.policy, table.source))


def test_a_private_number_is_one_unknown_of_its_record() -> None:
    found = published("hospital", "Blood sugar", 'SELECT SUM("Blood sugar") FROM hospital')
    assert found.records.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.by_record(np.arange(6.0)).tolist() == [[0], [1], [2], [3], [4], [5]]
    assert repr(found) == "<Subjects: 6 secrets of 6 people>"


def test_a_private_category_is_a_row_of_unknowns() -> None:
    count = "SELECT diagnosis, COUNT(*) FROM t GROUP BY diagnosis"
    found = published("population:40", "diagnosis", count)
    assert len(found.records) == 40 and len(found.kinds) > 1
    assert found.by_record(np.zeros(len(found.record))).shape == (40, len(found.kinds))


def test_all_rows_of_a_person_leave_together() -> None:
    found = published("rand_hie", "mdvis", "SELECT site, SUM(mdvis) FROM t GROUP BY site")
    (person,) = found.people[:1].tolist()
    gone = found.unknowns_of(np.array([person]))
    assert (found.person[found.record[gone]] == person).all()
    assert len(gone) == int((found.person == person).sum()) > 1


def test_of_several_private_columns_one_is_scored() -> None:
    both = "SELECT SUM(income), SUM(visits) FROM t"
    assert len(published("population:40", "visits", both).kinds) == 1
    with pytest.raises(ValueError, match="nothing to score"):
        published("population:40", "visits", "SELECT SUM(income) FROM t")


def test_public_columns_must_be_those_of_the_records() -> None:
    with pytest.raises(ValueError, match="one row of them for each record"):
        Subjects.alone(3, Features(4))
