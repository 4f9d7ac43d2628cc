"""The questions an attacker would ask, chosen from the public columns alone, checked exactly.

`plan` has the entry points, `result` is what a plan is, `report` writes it. `setting` is what plans
for one table share, `language` the queries they may use. `target` finds the fewest queries for one
record, by differences (`sides`) where there are too many; `everybody` plans for all records, with
fewer queries for bits (`detecting_matrix`); `adaptive` looks at each answer before it asks on.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.plan.adaptive import AdaptivePlan
    from casemate.attack.plan.plan import Plan, Planner
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
