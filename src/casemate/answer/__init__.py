"""Private answers to a stream of questions: only surprises are paid for.

`Session` takes SQL and gives answers; `construction` runs the stand-in and the gate under the
public `plan` and `schedule` of a `dataset`; `intervals` is what is proven of an answer, `planner`
predicts which way to spend a budget is best, `replaying` replays a transcript in public, and
`report`, `page` and `commands` are how people see it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.answer.answer import Answer
    from casemate.answer.plan import Means, plan_of
    from casemate.answer.replaying import Replay, replay
    from casemate.answer.schedule import Holds, easy_interval
    from casemate.answer.session import Session
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
