"""Membership at its edges; random predicates are in test_predicates."""

from typing import Any

import pytest
from query import slow

from casemate.errors import Unsupported
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.table import Table


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
