"""The ledger: what may still be asked of a dataset, decided and written before anything leaves.

`ledger` decides, `entry` is its rows, its terms and the chain they form; `store` is the book that
rows live in, and `group_commit` makes many durable at once.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.book.book import IN_MEMORY
    from casemate.privacy.book.chain import Head
    from casemate.privacy.ledger.entry import Terms
    from casemate.privacy.ledger.ledger import Ledger, answer_once, open_ledger, stored_outputs
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
