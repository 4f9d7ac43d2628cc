"""A small set of rows to withhold so that nobody is exposed, written as SQL.

`search` looks for them and audits what is left, `proofs` are sets of rows that expose somebody,
`statements` are the rows of a log and its text without some, and `stakes` say what each row could
expose.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.repair.search import repair
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
