"""The plan for all records: one query for each, or for bits a design with fewer.

Queries that determine every record that can be told from the others, as few as possible.

Numbers need at least one query for each record that is determined, by rank. Where the language can
select few different sets, independent ones are taken from all of them. Elsewhere the queries are
built up so that each of them adds one record: a first few by chains of ranges, and then, one after
the other, a query that contains one new record and otherwise known ones.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from casemate.attack.plan.chains import best_chains
from casemate.attack.plan.check import proved
from casemate.attack.plan.language import Bits, Box, Language, Selections, Span, one_by_one
from casemate.attack.plan.result import (
    Design,
    DeterminedRecord,
    Planned,
    sums_necessary,
    sums_needed,
)
from casemate.attack.plan.setting import PlanSetting
from casemate.attack.plan.sides import Boxes, Effort, Friends, Unfinished
from casemate.attack.plan.target import Targets, as_system, isolated
from casemate.exact import certify, exposure

PEELING = 400
"""Steps to find a query that adds one record."""

MOST_REDUCED = 2_500
"""Queries of which independent ones are chosen."""

PER_ENTRY = 1e-7
"""About the seconds that this takes, for each query and pair of records."""

LONGEST = 64
"""Combinations up to so many queries are built upon first."""


@dataclass(frozen=True)
class Everybody:
    """Queries, and for each record that they determine a combination of them."""

    boxes: tuple[Box, ...]
    combinations: Mapping[int, Mapping[int, Fraction]]

    @property
    def at_least(self) -> int:
        """No fewer queries determine as many records."""
        return len(self.combinations)


def everybody(targets: Targets, seconds: float) -> Everybody:
    """A plan for all records that some plan determines, as far as they are found in time."""
    if targets.every is not None:
        wanted = np.flatnonzero(targets.reachable).tolist()
        return _independent(targets.language, targets.every, wanted)
    built, start = _Built(targets.language), time.monotonic()
    _begin(built, targets)
    _peel(built, targets, start + seconds / 2)
    left = one_by_one(targets.language.alone & ~built.known)
    _plan_alone(built, targets, left, start + seconds)
    return _reduced(built.finished(), targets.language, start + seconds - time.monotonic())


def _reduced(found: Everybody, language: Language, seconds: float) -> Everybody:
    """The same with independent queries only, unless that takes too long."""
    if len(found.boxes) == found.at_least or len(found.boxes) > MOST_REDUCED:
        return found
    if PER_ENTRY * len(found.boxes) * len(found.combinations) ** 2 > seconds:
        return found
    sets = tuple(language.members(box) for box in found.boxes)
    known = Selections(found.boxes, sets, False)
    fewer = _independent(language, known, list(found.combinations))
    return fewer if len(fewer.combinations) == len(found.combinations) else found


def _independent(language: Language, known: Selections, wanted: list[int]) -> Everybody:
    """Independent selections: first those that contain nobody who is not to be determined."""
    if not wanted:
        return Everybody((), {})
    others = language.everybody & ~sum(1 << record for record in wanted)
    order = sorted(
        range(len(known.sets)),
        key=lambda i: (bool(known.sets[i] & others), known.sets[i].bit_count(), i),
    )
    system = as_system(known.matrix(language.count)[order])
    used: dict[int, int] = {}
    combinations = {}
    for found in certify(system, exposure(system).block, wanted):
        for i in found.coefficients:
            used.setdefault(order[i], len(used))
        weights = sorted(found.coefficients.items(), key=lambda each: each[1] < 0)
        combinations[found.column] = {
            used[order[i]]: Fraction(weight, found.divisor) for i, weight in weights
        }
    return Everybody(tuple(known.boxes[i] for i in used), dict(sorted(combinations.items())))


# They are too many ------------------------------------------------------------------------------


@dataclass
class _Built:
    """The queries so far, and the records that they determine."""

    language: Language
    boxes: dict[Bits, Box] = field(default_factory=dict)
    numbers: dict[Bits, int] = field(default_factory=dict)
    combinations: dict[int, dict[int, Fraction]] = field(default_factory=dict)
    known: Bits = 0
    short: Bits = 0  # those known by a short combination

    def query(self, box: Box) -> int:
        """The number of a query, which is new unless one selects the same records."""
        members = self.language.members(box)
        self.boxes.setdefault(members, box)
        return self.numbers.setdefault(members, len(self.numbers))

    def learn(self, record: int, combination: Mapping[int, Fraction]) -> None:
        """A record is determined by a combination of queries."""
        self.combinations[record] = {q: weight for q, weight in combination.items() if weight}
        self.known |= 1 << record
        if len(self.combinations[record]) <= LONGEST:
            self.short |= 1 << record

    def learn_new(self, record: int, box: Box) -> None:
        """A record is the only one of a query that was not known."""
        total: dict[int, Fraction] = {}
        for other in one_by_one(self.language.members(box) & ~(1 << record)):
            for query, weight in self.combinations[other].items():
                total[query] = total.get(query, Fraction(0)) - weight
        number = self.query(box)
        total[number] = total.get(number, Fraction(0)) + 1
        self.learn(record, total)

    def finished(self) -> Everybody:
        """Only the queries that some combination uses, in the order in which they came."""
        used = sorted({query for each in self.combinations.values() for query in each})
        place = {query: i for i, query in enumerate(used)}
        boxes = list(self.boxes.values())
        return Everybody(
            tuple(boxes[query] for query in used),
            {
                record: {place[query]: weight for query, weight in sorted(each.items())}
                for record, each in sorted(self.combinations.items())
            },
        )


def _begin(built: _Built, targets: Targets) -> None:
    """Records that are alone in a query, or on chains of ranges."""
    language, least = targets.language, targets.least
    if least > 1:
        for chain in best_chains(language, least):
            for record, terms in chain.combinations(least):
                numbers = [(built.query(box), sign) for sign, box in terms]
                built.learn(record, {number: Fraction(sign) for number, sign in numbers})
        return
    for record in one_by_one(language.alone):
        box = isolated(language, record)
        if box is not None:
            built.learn(record, {built.query(box): Fraction(1)})


def _peel(built: _Built, targets: Targets, until: float) -> None:
    """One new record by one new query, as long as there is one; else plans for some alone."""
    left = _in_order(targets.language, targets.language.alone & ~built.known)
    while left and time.monotonic() < until:
        still = [record for record in left if not _peeled(built, targets, record, until)]
        if len(still) == len(left):
            some = 2 * targets.least
            _plan_alone(built, targets, still[:some], until)
            still = still[some:]
        left = still


def _in_order(language: Language, records: Bits) -> list[int]:
    """Records in the order of the axis with most values, so that neighbours come together."""
    widest = max((axis.ordered, len(axis.values), -n) for n, axis in enumerate(language.axes))
    places = language.axes[-widest[2]].places
    return sorted(one_by_one(records), key=lambda record: int(places[record]))


def _plan_alone(built: _Built, targets: Targets, some: Iterable[int], until: float) -> None:
    """A plan of its own for each of some records."""
    for record in some:
        seconds = until - time.monotonic()
        if seconds <= 0:
            return
        found = targets.plan(record, seconds=min(1.0, seconds))
        if found.terms:
            built.learn(record, {built.query(box): weight for weight, box in found.terms})


def _peeled(built: _Built, targets: Targets, record: int, until: float) -> bool:
    """Whether a query was found that contains the record and otherwise known ones."""
    language, least = targets.language, targets.least
    for friends in dict.fromkeys((built.short, built.known)):
        strangers = language.everybody & ~friends & ~(1 << record)
        search = Boxes(language, record, range(len(language.axes)), Effort(PEELING, until))
        try:
            box = next(search.around(strangers, [Friends(friends, least - 1)]), None)
        except Unfinished:
            continue
        if box is not None:
            built.learn_new(record, _narrowed(language, record, box, least))
            return True
    return False


def _narrowed(language: Language, record: int, box: Box, least: int) -> Box:
    """The box with tighter conditions around the record, as long as it has enough records."""
    narrow, left = dict(box), language.members(box)
    for number, axis in enumerate(language.axes):
        own = int(axis.places[record])
        if own < 0:
            continue
        spans = _tighter(narrow.get(number, (0, axis.last)), own) if axis.ordered else [(own, own)]
        for span in spans:
            fewer = left & language.between(number, span)
            if fewer.bit_count() >= least and fewer != left:
                narrow[number], left = span, fewer
                break
    return narrow


def _tighter(span: Span, own: int) -> Iterator[Span]:
    """Ranges around a place, the narrowest first."""
    width = 0
    while own - width > span[0] or own + width < span[1]:
        yield max(span[0], own - width), min(span[1], own + width)
        width = 2 * width + 1


# Plan everybody ---------------------------------------------------------------------------------


ALL = "all"


def plan_everybody(
    setting: PlanSetting, targets: Targets, most: int | None, seconds: float
) -> Planned:
    """A plan for all records that can be told from the others, with as few queries as are found."""
    language = setting.language
    twins = one_by_one(language.everybody & ~language.alone)
    plan = replace(
        setting.blank, target=ALL, inseparable=tuple(setting.name(each) for each in twins)
    )
    plan = _designed(plan, setting) or _one_each(
        plan, everybody(targets, seconds), setting, targets
    )
    too_long = most is not None and len(plan.queries) > most
    return _cut(plan, most or 0) if too_long else plan


def _designed(plan: Planned, setting: PlanSetting) -> Planned | None:
    """A detecting matrix, for bits that some public column tells apart."""
    count = setting.language.count
    if not setting.secret.bits or setting.subsets is None or sums_needed(count) + 1 >= count:
        return None
    design = Design(setting.subsets)
    if not design.possible:
        return None
    queries = design.queries()
    reading = setting.read(queries)
    return replace(
        plan,
        queries=queries,
        counts=reading.counts,
        verified=design.proved(reading),
        lower_bound=sums_necessary(count),
        design=design,
        names=tuple(setting.name(place) for place in range(count)),
    )


def _one_each(plan: Planned, found: Everybody, setting: PlanSetting, targets: Targets) -> Planned:
    """Queries of the language, and a combination of them for each record."""
    asked = setting.secret.asked
    wanted = [
        (place, {q * len(asked) + k: i * w for q, w in each.items() for k, i in enumerate(asked)})
        for place, each in found.combinations.items()
    ]
    others = set(one_by_one(setting.language.alone)) - set(found.combinations)
    left = tuple(setting.name(place) for place in sorted(others))
    plan = replace(plan, undetermined=left)
    if not wanted:
        return replace(plan, impossible=_all_proved(targets, setting), reason=_why(plan))
    queries = setting.queries(found.boxes)
    reading = setting.read(queries)
    bound = found.at_least * len(asked) if setting.sure else 1
    unreached = all(not targets.reachable[place] for place in others)
    return replace(
        plan,
        queries=queries,
        determined=tuple(DeterminedRecord(setting.name(place), each) for place, each in wanted),
        counts=reading.counts,
        verified=proved(reading, setting.secret, wanted, setting.least),
        lower_bound=bound,
        optimal=len(queries) == bound and unreached,
    )


def _all_proved(targets: Targets, setting: PlanSetting) -> bool:
    return setting.sure and not np.any(targets.reachable)


def _why(plan: Planned) -> str:
    if not plan.undetermined:
        return (
            "every record agrees with another in every public column, so no query tells them apart"
        )
    return f"no queries with at least {plan.min_count} records were found that determine any record"


def _cut(plan: Planned, most: int) -> Planned:
    """No plan, where it would be too long."""
    bound = plan.lower_bound or 0
    needed, known = len(plan.queries), len(plan.determined) or plan.records
    reason = (
        f"the shortest plan found for {known} records has {needed} queries, and the limit is {most}"
    )
    if bound > most:
        reason = f"{known} records need at least {bound} queries, and the limit is {most}"
    return Planned(
        plan.target,
        plan.private,
        plan.records,
        plan.min_count,
        lower_bound=bound,
        inseparable=plan.inseparable,
        undetermined=plan.undetermined,
        values=plan.values,
        impossible=bound > most,
        reason=reason,
    )
