"""The plan for all records: one query for each, or for bits a design with fewer.

Numbers need at least one query for each record that is determined, by rank. Where the language can
select few different sets, independent ones are taken from all of them. Elsewhere the queries are
built up so that each of them adds one record: a first few by chains of ranges, and then, one after
the other, a query that contains one new record and otherwise known ones.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.detecting_matrix import Design, sums_necessary, sums_needed
from casemate.attack.plan.language import Bits, Box, Language, Selections, Span, record_places
from casemate.attack.plan.result import DeterminedRecord, Planned
from casemate.attack.plan.setting import PlanSetting, verify
from casemate.attack.plan.sides import Boxes, Effort, Sum, Unfinished
from casemate.attack.plan.target import Targets, as_system, isolating_box
from casemate.exact import certify, determine

MOST_FIXED_COLUMNS = 2
"""Columns that are held fixed along a chain."""


def chain_sums(language: Language, least: int) -> Iterator[list[tuple[int, Sum]]]:
    """Chains that contain most records: for each record of one, what adds up to it.

    A chain goes along one axis with some others held fixed: records that this column puts in order,
    no two with the same value. Ranges from either end that differ by one record determine it.
    Ranges of fewer than `least` records are not asked: those from the other end, taken from the
    whole, stand for them. A chain of s >= 2 least - 1 records takes s queries.
    """
    best: tuple[int, tuple[int, ...], list[NDArray[np.int64]]] = (0, (), [])
    numbers = range(len(language.axes))
    for axis in (number for number in numbers if language.axes[number].ordered):
        others = [number for number in numbers if number != axis]
        for width in range(MOST_FIXED_COLUMNS + 1):
            for fixed in combinations(others, width):
                groups = _groups(language, axis, fixed, 2 * least - 1)
                if sum(map(len, groups)) > sum(map(len, best[2])):
                    best = axis, fixed, groups
    axis, fixed, groups = best
    for group in groups:
        own = {number: int(language.axes[number].places[group[0]]) for number in fixed}
        box = {number: (place, place) for number, place in own.items()}
        yield list(_along(language, axis, box, group, least))


def _along(
    language: Language, number: int, box: Box, records: NDArray[np.int64], least: int
) -> Iterator[tuple[int, Sum]]:
    """Each record of one chain, and what adds up to it."""
    axis = language.axes[number]
    places = axis.places[records].tolist()
    up_to = [{**box, number: (0, place)} for place in places]
    since = [{**box, number: (place, axis.last)} for place in (0, *places[1:])]
    for i, record in enumerate(records.tolist()):
        if i >= least:
            yield record, [(1, up_to[i]), (-1, up_to[i - 1])]
        elif i < least - 1:
            yield record, [(1, since[i]), (-1, since[i + 1])]
        else:
            yield record, [(1, up_to[i]), (1, since[i]), (-1, up_to[-1])]


def _groups(
    language: Language, axis: int, fixed: tuple[int, ...], least: int
) -> list[NDArray[np.int64]]:
    """Records that agree on the fixed axes and all differ on another, where they are enough."""
    places = language.axes[axis].places
    there = places >= 0
    coded = np.zeros(language.count, np.int64)
    for number in fixed:
        own = language.axes[number].places
        there &= own >= 0
        coded = coded * len(language.axes[number].values) + own
    records = np.flatnonzero(there)
    if not len(records):
        return []
    order = np.lexsort((places[records], coded[records]))
    sorted_, group = records[order], coded[records][order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    tied = (np.diff(group) == 0) & (np.diff(places[sorted_]) == 0)
    ties = np.add.reduceat(np.append(tied, False).astype(np.int64), starts)
    parts = np.split(sorted_, starts[1:])
    return [part for part, tie in zip(parts, ties, strict=True) if not tie and len(part) >= least]


PEELING_STEPS = 400
"""Steps to find a query that adds one record."""

MOST_REDUCED_QUERIES = 2_500
"""Queries of which independent ones are chosen."""

SECONDS_PER_ENTRY = 1e-7
"""About the seconds that this takes, for each query and pair of records."""

SHORT_COMBINATION_QUERIES = 64
"""Combinations up to so many queries are built upon first."""


@dataclass(frozen=True)
class Everybody:
    """Queries, and for each record that they determine a combination of them."""

    boxes: tuple[Box, ...]
    combinations: Mapping[int, Mapping[int, Fraction]]


def everybody(targets: Targets, seconds: float) -> Everybody:
    """A plan for all records that some plan determines, as far as they are found in time."""
    if targets.every is not None:
        wanted = np.flatnonzero(targets.reachable).tolist()
        return _independent(targets.language, targets.every, wanted)
    built, start = _Built(targets.language), time.monotonic()
    _begin(built, targets)
    _peel(built, targets, start + seconds / 2)
    unknown = record_places(targets.language.alone & ~built.known)
    _plan_alone(built, targets, unknown, start + seconds)
    return _reduce(built.prune(), targets.language, start + seconds - time.monotonic())


def _reduce(found: Everybody, language: Language, seconds: float) -> Everybody:
    """The same with independent queries only, unless that takes too long."""
    queries, records = len(found.boxes), len(found.combinations)
    cost = SECONDS_PER_ENTRY * queries * records**2
    if queries > MOST_REDUCED_QUERIES or cost > seconds or queries == records:
        return found
    sets = tuple(language.members(box) for box in found.boxes)
    asked = Selections(found.boxes, sets, False)
    fewer = _independent(language, asked, list(found.combinations))
    return fewer if len(fewer.combinations) == records else found


def _independent(language: Language, available: Selections, wanted: list[int]) -> Everybody:
    """Independent selections: first those that contain nobody who is not to be determined."""
    if not wanted:
        return Everybody((), {})
    others = language.everybody & ~sum(1 << record for record in wanted)
    order = sorted(
        range(len(available.sets)),
        key=lambda i: (bool(available.sets[i] & others), available.sets[i].bit_count(), i),
    )
    system = as_system(available.matrix(language.count)[order])
    used: dict[int, int] = {}
    combinations = {}
    for found in certify(system, determine(system).block, wanted):
        for i in found.coefficients:
            used.setdefault(order[i], len(used))
        weights = sorted(found.coefficients.items(), key=lambda each: each[1] < 0)
        combinations[found.column] = {
            used[order[i]]: Fraction(weight, found.divisor) for i, weight in weights
        }
    return Everybody(tuple(available.boxes[i] for i in used), dict(sorted(combinations.items())))


# Where the selections are too many: one record more with each query -----------------------------


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
        if len(self.combinations[record]) <= SHORT_COMBINATION_QUERIES:
            self.short |= 1 << record

    def learn_new(self, record: int, box: Box) -> None:
        """A record is the only one of a query that was not known."""
        total: dict[int, Fraction] = {}
        for other in record_places(self.language.members(box) & ~(1 << record)):
            for query, weight in self.combinations[other].items():
                total[query] = total.get(query, Fraction(0)) - weight
        number = self.query(box)
        total[number] = total.get(number, Fraction(0)) + 1
        self.learn(record, total)

    def prune(self) -> Everybody:
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
        for record, terms in chain.from_iterable(chain_sums(language, least)):
            built.learn(record, {built.query(box): Fraction(sign) for sign, box in terms})
        return
    for record in record_places(language.alone):
        box = isolating_box(language, record)
        if box is not None:
            built.learn(record, {built.query(box): Fraction(1)})


def _peel(built: _Built, targets: Targets, until: float) -> None:
    """One new record by one new query, as long as there is one; else plans for some alone."""
    unknown = _in_order(targets.language, targets.language.alone & ~built.known)
    while unknown and time.monotonic() < until:
        unpeeled = [record for record in unknown if not _peel_record(built, targets, record, until)]
        if len(unpeeled) == len(unknown):
            count = 2 * targets.least
            _plan_alone(built, targets, unpeeled[:count], until)
            unpeeled = unpeeled[count:]
        unknown = unpeeled


def _in_order(language: Language, records: Bits) -> list[int]:
    """Records in the order of the axis with most values, so that neighbours come together."""
    widest = max((axis.ordered, len(axis.values), -n) for n, axis in enumerate(language.axes))
    places = language.axes[-widest[2]].places
    return sorted(record_places(records), key=lambda record: int(places[record]))


def _plan_alone(built: _Built, targets: Targets, some: Iterable[int], until: float) -> None:
    """A plan of its own for each of some records."""
    for record in some:
        seconds = until - time.monotonic()
        if seconds <= 0:
            return
        found = targets.plan(record, seconds=min(1.0, seconds))
        if found.terms:
            built.learn(record, {built.query(box): weight for weight, box in found.terms})


def _peel_record(built: _Built, targets: Targets, record: int, until: float) -> bool:
    """Whether a query was found that contains the record and otherwise known ones."""
    language, least = targets.language, targets.least
    for friends in dict.fromkeys((built.short, built.known)):
        strangers = language.everybody & ~friends & ~(1 << record)
        search = Boxes(language, record, range(len(language.axes)), Effort(PEELING_STEPS, until))
        try:
            box = next(search.around(strangers, friends, least - 1), None)
        except Unfinished:
            continue
        if box is not None:
            built.learn_new(record, _tighten(language, record, box, least))
            return True
    return False


def _tighten(language: Language, record: int, box: Box, least: int) -> Box:
    """The box with tighter conditions around the record, as long as it has enough records."""
    narrow, members = dict(box), language.members(box)
    for number, axis in enumerate(language.axes):
        own = int(axis.places[record])
        if own < 0:
            continue
        spans = _tighter(narrow.get(number, (0, axis.last)), own) if axis.ordered else [(own, own)]
        for span in spans:
            fewer = members & language.between(number, span)
            if fewer.bit_count() >= least and fewer != members:
                narrow[number], members = span, fewer
                break
    return narrow


def _tighter(span: Span, own: int) -> Iterator[Span]:
    """Ranges around a place, the narrowest first."""
    width = 0
    while own - width > span[0] or own + width < span[1]:
        yield max(span[0], own - width), min(span[1], own + width)
        width = 2 * width + 1


# The plan, as queries ---------------------------------------------------------------------------


ALL = "all"


def plan_everybody(
    setting: PlanSetting, targets: Targets, most: int | None, seconds: float
) -> Planned:
    """A plan for all records that can be told from the others, with as few queries as are found."""
    language = setting.language
    blank = Planned.blank(setting, ALL, record_places(language.everybody & ~language.alone))
    plan = _plan_by_design(blank, setting) or _plan_by_rank(blank, setting, targets, seconds)
    if most is None or len(plan.queries) <= most:
        return plan
    bound, known = plan.lower_bound or 0, len(plan.determined) or plan.records
    needed = f"the shortest plan found for {known} records has {len(plan.queries)} queries"
    if bound > most:
        needed = f"{known} records need at least {bound} queries"
    return replace(
        blank,
        undetermined=plan.undetermined,
        lower_bound=bound,
        impossible=bound > most,
        reason=f"{needed}, and the limit is {most}",
    )


def _plan_by_design(plan: Planned, setting: PlanSetting) -> Planned | None:
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
        verified=design.verify(reading),
        lower_bound=sums_necessary(count),
        design=design,
        names=tuple(setting.name(place) for place in range(count)),
    )


def _plan_by_rank(plan: Planned, setting: PlanSetting, targets: Targets, seconds: float) -> Planned:
    """Queries of the language, and a combination of them for each record."""
    found, asked = everybody(targets, seconds), setting.secret.asked
    wanted = [
        (place, {q * len(asked) + k: i * w for q, w in each.items() for k, i in enumerate(asked)})
        for place, each in found.combinations.items()
    ]
    others = sorted(set(record_places(setting.language.alone)) - set(found.combinations))
    plan = replace(plan, undetermined=tuple(setting.name(place) for place in others))
    if not wanted:
        impossible = setting.sure and not np.any(targets.reachable)
        return replace(plan, impossible=impossible, reason=_why(plan))
    queries = setting.queries(found.boxes)
    reading = setting.read(queries)
    bound = len(wanted) * len(asked) if setting.sure else 1  # by rank
    return replace(
        plan,
        queries=queries,
        determined=tuple(DeterminedRecord(setting.name(place), each) for place, each in wanted),
        counts=reading.counts,
        verified=verify(reading, setting.secret, wanted, setting.least),
        lower_bound=bound,
        optimal=len(queries) == bound and not targets.reachable[others].any(),
    )


def _why(plan: Planned) -> str:
    if not plan.undetermined:
        return (
            "every record agrees with another in every public column, so no query tells them apart"
        )
    return f"no queries with at least {plan.min_count} records were found that determine any record"
