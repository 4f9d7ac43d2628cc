"""Private answers to a stream of questions: only surprises are paid for.

`session` takes SQL and gives each `answer`; `construction` answers a question from the stand-in or
measures it, `direct_measurement` measures a statement by itself, and `within` finds the noise for
an answer that is as exact as asked. `budget_plan` is what a budget is spent on, `schedule` the
gate's thresholds, `work_limits` what is refused as too much work, `intervals` what is proven of an
answer, and `declaration` what a policy names beforehand; `dataset` holds it all together for one
table. `planner` predicts which way to spend a budget is best, `replaying` replays a transcript in
public, and `report`, with its `words` and the figures of `drawing`, `conversation` and `commands`
are how people see it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.answer.answer import Answer
    from casemate.answer.budget_plan import Means, plan_of
    from casemate.answer.replaying import Replay, replay
    from casemate.answer.schedule import easy_interval
    from casemate.answer.session import Session
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
