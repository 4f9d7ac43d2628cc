"""Sums around a centre by the codes of another attribute, against every record by itself."""

from fractions import Fraction
from pathlib import Path

from answer.session_world import world

from casemate.grid import Relation, declared_sums, sums_by_attribute
from casemate.query.snapping import histogram
from casemate.table import Table, Universe


def test_sums_are_those_of_every_record_less_the_centre(tmp_path: Path) -> None:
    path = world(tmp_path, number=300)
    with Table.open(path, by_policy=True) as table:
        universe, source = Universe.of(table.policy), table.source
        names = [each.name for each in universe.attributes]
        found = sums_by_attribute(universe, Relation(), ())
        assert {names[each.value] for each in found} == {"age", "bonus"}, "the others are values"
        for each in found:
            cells = each.exact(source, None)
            assert len(cells) == universe.attributes[each.by].size
            both = tuple(sorted((each.value, each.by)))
            counts = histogram(universe, both, source)
            by_value = counts if both[0] == each.value else counts.T
            declared = declared_sums(universe)[each.value]
            middles = declared.centred * float(declared.unit)
            people = by_value[:-1].sum(axis=0)
            for code, total in enumerate(cells):
                expected = float(middles @ by_value[:, code])
                slack = declared.slack * float(declared.unit) * people[code]
                assert abs(total * float(each.part.unit) - expected) <= slack + 1e-6


def test_a_person_moves_a_sum_by_half_of_the_declared_range(tmp_path: Path) -> None:
    path = world(tmp_path, number=3)
    with Table.open(path, by_policy=True) as table:
        universe = Universe.of(table.policy)
    names = [each.name for each in universe.attributes]
    half = {"age": Fraction(99, 2), "bonus": Fraction(100)}
    for each in sums_by_attribute(universe, Relation(), ()):
        assert each.sensitivity.in_all * each.part.unit == half[names[each.value]]
        twice = sums_by_attribute(universe, Relation(exchanged=True), ())
    assert all(one.sensitivity.squared > 0 for one in twice)


def test_what_everybody_knows_is_not_measured(tmp_path: Path) -> None:
    path = world(tmp_path, number=3)
    with Table.open(path, by_policy=True) as table:
        universe = Universe.of(table.policy)
    names = [each.name for each in universe.attributes]
    public = tuple(i for i, name in enumerate(names) if name not in ("ill", "visits"))
    found = sums_by_attribute(universe, Relation(exchanged=True, counted=True), public)
    assert found and all({each.value, each.by} - set(public) for each in found)
