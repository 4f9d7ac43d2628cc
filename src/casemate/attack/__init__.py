"""How it is taken: what published numbers, or well-chosen questions, tell about one record.

`Attack` (`attack`) reads queries and answers into equations (`problem_from_queries`), solves them
(`reconstruct`, with the methods of `solvers`) and tells disclosure from what could be guessed
(`score`, by whose secret each unknown is, `subjects`, and what is public of them, `features`).
`plan` chooses the questions that would give a record away, `one_bit` learns totals from yes/no
answers, and `extract` copies a classifier. `report` writes an attack as text, JSON and HTML (with
the sentences of `words` and the plots of `figures`), and `commands` is all of it at the terminal.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.attack import Attack, AttackOptions
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
