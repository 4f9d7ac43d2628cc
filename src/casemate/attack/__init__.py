"""How it is taken: what published numbers, or well-chosen questions, tell about one record.

`Attack` goes from SQL and answers (`evidence`) over `reconstruct` and its `solvers` to a `score`;
`plan` chooses the questions that would give a record away, `one_bit` learns totals from yes/no
answers, `extract` copies a classifier, and `report`, `page` and `commands` are how people see it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.attack import Attack, AttackOptions
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
