"""The ledger: what may still be asked of a dataset, decided and written before anything leaves.

`ledger` decides, `entry` is a row and the hash chain it extends, `terms` what the ledger is about;
`store`, `sql`, `sqlite` and `postgres` are where rows live, and `group_commit` makes many durable
at once.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.ledger.entry import Head
    from casemate.privacy.ledger.ledger import IN_MEMORY, Ledger, answer_once, open_ledger
    from casemate.privacy.ledger.terms import Terms
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
