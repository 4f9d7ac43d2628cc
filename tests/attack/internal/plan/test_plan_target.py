"""Plans where the selections are too many to enumerate, on tables where they are not."""

from fractions import Fraction
from random import Random

import numpy as np
from attack.every_plan import determined, shortest
from attack.small_languages import every_box, small_language

from casemate.attack.plan.language import Language, one_by_one, unpacked
from casemate.attack.plan.target import ShortestPlan, Targets


def without_enumeration(language: Language, least: int) -> Targets:
    """A search that believes that there are too many selections."""
    targets = Targets(language, least, np.random.default_rng(0))
    targets.__dict__["every"] = None
    return targets


def is_right(found: ShortestPlan, language: Language, target: int, least: int) -> bool:
    """Whether the queries are large enough and add up to the record."""
    total = np.full(language.count, Fraction(0), object)
    for weight, box in found.terms:
        members = language.members(box)
        if members.bit_count() < least:
            return False
        total += weight * unpacked(members, language.count).astype(int)
    return total.tolist() == [int(i == target) for i in range(language.count)]


def test_nothing_wrong_is_found_or_claimed(rng: Random) -> None:
    lengths = set()
    for _ in range(25):
        language = small_language(rng)
        members = {language.members(box) for box in every_box(language)}
        for least in range(1, language.count + 1):
            sets = [frozenset(one_by_one(m)) for m in members if m.bit_count() >= least]
            targets = without_enumeration(language, least)
            for target in range(language.count):
                found = targets.plan(target, seconds=2.0)
                if found.terms:
                    assert is_right(found, language, target, least)
                if not determined(sets, language.count, target):
                    assert not found.terms
                    continue
                best = shortest(sets, language.count, target, 5_000)
                assert not found.impossible
                if best is not None:
                    assert found.at_least <= best <= (len(found.terms) or best)
                    assert best > 2 or len(found.terms) == best == found.at_least
                    lengths.add(len(found.terms))
    assert {1, 2, 3, 4} <= lengths


def test_a_limit_is_kept(rng: Random) -> None:
    for _ in range(10):
        language = small_language(rng)
        targets = without_enumeration(language, 2)
        for target in one_by_one(language.alone):
            whole = targets.plan(target)
            for most in range(1, 5):
                found = targets.plan(target, most)
                assert len(found.terms) <= most
                assert bool(found.terms) or not whole.terms or len(whole.terms) > most
