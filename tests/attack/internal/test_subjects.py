import numpy as np
import pytest

from casemate.attack.subjects import Features, Subjects
from casemate.published import Equations, equations, publication
from casemate.query.parse import Logged
from casemate.table import Table


def published(name: str, *statements: str) -> tuple[Equations, Features]:
    with Table.open(name) as table:
        found = publication([Logged(sql, 1) for sql in statements], table.policy)
        system = equations(found.columns, table.policy, table.source, found.there)
        return system, Features.of(table.policy, table.source)


def test_a_private_number_is_one_unknown_of_its_record() -> None:
    found = Subjects.of(*published("hospital", 'SELECT SUM("Blood sugar") FROM hospital'))
    assert found.records.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.by_record(np.arange(6.0)).tolist() == [[0], [1], [2], [3], [4], [5]]
    assert repr(found) == "<Subjects: 6 secrets of 6 people>"


def test_a_private_category_is_a_row_of_unknowns() -> None:
    count = "SELECT diagnosis, COUNT(*) FROM t GROUP BY diagnosis"
    system, features = published("population:40", count)
    found = Subjects.of(system, features)
    assert len(found.records) == 40
    assert len(found.kinds) > 1
    truth = np.zeros(system.system.columns)
    assert found.by_record(truth).shape == (40, len(found.kinds))


def test_all_rows_of_a_person_leave_together() -> None:
    system, features = published("rand_hie", "SELECT site, SUM(mdvis) FROM t GROUP BY site")
    found = Subjects.of(system, features, "mdvis")
    (person,) = found.people[:1].tolist()
    gone = found.unknowns_of(np.array([person]))
    assert (found.person[found.record[gone]] == person).all()
    assert len(gone) == int((found.person == person).sum()) > 1


def test_the_private_column_must_be_said_where_several_were_published() -> None:
    system = published("population:40", "SELECT SUM(income), SUM(visits) FROM t")
    with pytest.raises(ValueError, match="say which one"):
        Subjects.of(*system)
    assert len(Subjects.of(*system, "visits").kinds) == 1


def test_a_column_of_which_nothing_was_published_cannot_be_scored() -> None:
    system = published("population:40", "SELECT SUM(income) FROM t")
    with pytest.raises(ValueError, match="nothing to score"):
        Subjects.of(*system, "visits")


def test_public_columns_must_be_those_of_the_records() -> None:
    with pytest.raises(ValueError, match="one row of them for each record"):
        Subjects.alone(3, Features(4))
