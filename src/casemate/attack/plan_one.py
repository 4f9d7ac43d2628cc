"""The plan for one record, written, read back and checked; or why there is none."""

from dataclasses import replace

from casemate.attack.plan_check import proved
from casemate.attack.plan_result import Planned
from casemate.attack.plan_setting import Setting
from casemate.attack.plan_target import Found, Targets
from casemate.query.expression import Scalar


def plan_one(
    setting: Setting, targets: Targets, record: Scalar, most: int | None, seconds: float
) -> Planned:
    """The shortest plan for a record that is found, of at most so many queries."""
    place = setting.place(record)
    boxes = None if most is None else most // len(setting.secret.asked)
    found = Found() if boxes == 0 else targets.plan(place, boxes, seconds)
    twins = tuple(setting.name(each) for each in setting.language.twins(place))
    plan = replace(setting.blank, target=setting.name(place), inseparable=twins)
    if found.terms:
        return _written(plan, found, place, setting)
    return _nothing(plan, found, most, setting)


def _written(plan: Planned, found: Found, place: int, setting: Setting) -> Planned:
    queries = setting.queries([box for _, box in found.terms])
    weights = [i * weight for weight, _ in found.terms for i in setting.secret.asked]
    reading = setting.read(queries)
    wanted = [(place, dict(enumerate(weights)))]
    bound = setting.bound(found.at_least)
    return replace(
        plan,
        queries=queries,
        combination=tuple(weights),
        counts=reading.counts,
        verified=proved(reading, setting.secret, wanted, setting.least),
        lower_bound=bound,
        optimal=len(queries) == bound,
    )


def _nothing(plan: Planned, found: Found, most: int | None, setting: Setting) -> Planned:
    """Why there is no plan, and whether that is proved."""
    bound = setting.bound(found.at_least)
    if found.impossible:
        reason, proved_ = _why_impossible(plan, setting), setting.sure
    elif most is not None and bound > most:
        reason = f"record {plan.target} needs at least {bound} queries, and the limit is {most}"
        proved_ = True
    else:
        limit = "" if most is None else f" of at most {most} queries"
        reason = (
            f"no plan{limit} for record {plan.target} was found, and it is not proved that there "
            f"is none; a longer search may find one"
        )
        proved_ = False
    return replace(plan, impossible=proved_, reason=reason, lower_bound=bound)


def _why_impossible(plan: Planned, setting: Setting) -> str:
    others, least = len(plan.inseparable), setting.least
    if others:
        whom = f"{others} other{'s' if others > 1 else ''}"
        return (
            f"record {plan.target} agrees with {whom} in every public column that queries can "
            f"use, so none tells them apart"
        )
    return (
        f"all queries with at least {least} records together do not determine record {plan.target}"
    )
