"""The questions an attacker would ask, chosen from the public columns alone, checked exactly."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.plan.adaptive import AdaptivePlan
    from casemate.attack.plan.plan import Plan, Planner
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
