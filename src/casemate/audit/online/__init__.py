"""Auditing questions before they are answered, so that refusals give nothing away.

`auditor` decides statement by statement; `questions` are what a statement asks about private
numbers, `sums` and minima and maxima decide about them, `scan` answers a large table and decides in
one pass, and `summed_space` follows equations that are known by sums.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.online.auditor import OnlineAuditor
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
