"""The plan for all records: one query for each, or for bits a design with fewer."""

from dataclasses import replace

import numpy as np

from casemate.attack.plan_all import Everybody, everybody
from casemate.attack.plan_binary import Design
from casemate.attack.plan_check import proved
from casemate.attack.plan_language import one_by_one
from casemate.attack.plan_result import Determined, Planned
from casemate.attack.plan_setting import Setting
from casemate.attack.plan_target import Targets
from casemate.solve.detecting import sums_necessary, sums_needed

ALL = "all"


def plan_everybody(setting: Setting, targets: Targets, most: int | None, seconds: float) -> Planned:
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


def _designed(plan: Planned, setting: Setting) -> Planned | None:
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


def _one_each(plan: Planned, found: Everybody, setting: Setting, targets: Targets) -> Planned:
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
        determined=tuple(Determined(setting.name(place), each) for place, each in wanted),
        counts=reading.counts,
        verified=proved(reading, setting.secret, wanted, setting.least),
        lower_bound=bound,
        optimal=len(queries) == bound and unreached,
    )


def _all_proved(targets: Targets, setting: Setting) -> bool:
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
