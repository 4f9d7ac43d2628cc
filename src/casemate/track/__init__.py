"""Distributed counts with few messages, right against somebody who adapts.

`CountTracker` is a `server`, `site`s and a `transport` between them; `protocols` has the ways to
count, `modes` lists them once, `simulate` runs them against adversaries, `service` runs them as
processes, `quota` admits no more than a limit, and `report`, `page` and `commands` are how
people see it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.setting import Setting
    from casemate.track.tracker import CountTracker
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
