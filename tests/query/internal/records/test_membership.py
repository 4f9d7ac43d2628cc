"""Membership at its edges; random predicates are in test_predicates."""

from typing import Any

import numpy as np
import pytest
from query import golden_files, slow
from query.golden_files import Golden

from casemate.errors import Unsupported
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.query.records.bitsets import pack
from casemate.table import Table

ACCEPTED = golden_files.read("accepted.sql")


@pytest.mark.parametrize("golden", ACCEPTED, ids=str)
def test_members_of_every_golden_aggregate(
    golden: Golden, people: Table, records: list[dict[str, Any]]
) -> None:
    single = [
        each for each in parse(golden.sql, people.policy) if each.single_valued or not each.keys
    ]
    found = membership(single, people.source)
    for index, aggregate in enumerate(single):
        inside = list(slow.selected(aggregate, records))
        assert set(np.flatnonzero(found.selected(index))) == {place for place, _ in inside}
        groups = found.groups[index]
        assert (groups is None) == (not aggregate.keys)
        for place, row in inside if groups is not None else []:
            key = tuple(slow.value(each, row) for each in aggregate.keys)
            assert groups is not None
            assert groups.keys[groups.codes[place]] == key


def test_nothing_asked_is_nothing_selected(people: Table) -> None:
    found = membership([], people.source)
    assert len(found.records) == 60
    assert not found.words.any()


def test_more_aggregates_than_a_word_has_bits(people: Table, records: list[dict[str, Any]]) -> None:
    texts = [f"SELECT COUNT(*) WHERE age >= {i % 40} AND weight <> {i % 7}" for i in range(200)]
    aggregates = [parse(each, people.policy)[0] for each in texts]
    found = membership(aggregates, people.source)
    assert found.words.shape == (60, 4)
    expected = [len(list(slow.selected(each, records))) for each in aggregates]
    assert found.sizes().tolist() == expected


def test_a_union_too_wide_to_expand_is_decided_by_the_engine(
    people: Table, records: list[dict[str, Any]]
) -> None:
    pairs = " AND ".join(f"(age = {i} OR weight <> {i})" for i in range(9))
    (aggregate,) = parse(f"SELECT COUNT(*) WHERE {pairs}", people.policy)
    found = membership([aggregate], people.source)
    assert found.sizes()[0] == len(list(slow.selected(aggregate, records)))


def test_a_record_in_several_cells_at_once_is_refused(people: Table) -> None:
    sql = "SELECT offer, COUNT(*) FROM people p JOIN offers o ON p.area = o.area GROUP BY 1"
    with pytest.raises(Unsupported, match="several rows"):
        membership(parse(sql, people.policy), people.source)


def test_bits_are_packed_lowest_first() -> None:
    bits = np.zeros((1, 70), np.bool_)
    bits[0, [0, 3, 69]] = True
    assert pack(bits).tolist() == [[0b1001, 0b100000]]
