"""Distributed counts with few messages, right against somebody who adapts.

`CountTracker` (`tracker`) is a `server`, `site`s and a `transport` between them. A site counts,
reports when its `reporting_rule` says so, and keeps a `journal`; the server has an `engine`, the
part in which `protocols` differ, and `modes` lists those once. `messages` travel, `setting` is what
is tracked and what came of it. `simulate` runs protocols against adversaries, `service` runs them
as processes, `quota` admits no more than a limit, and `report` and `commands` are how people see
it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.setting import Setting
    from casemate.track.tracker import CountTracker
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
