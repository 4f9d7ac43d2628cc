"""A log watched as it grows: who becomes exposed, statement by statement.

`exposure` audits each statement against all before it: by `rank` where that decides, else from the
beginning. `state` is what a watch needs to go on, `webhook` where events are posted, and `watching`
the watch itself with the words of its events.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.watch.exposure import IncrementalAudit, Step
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
