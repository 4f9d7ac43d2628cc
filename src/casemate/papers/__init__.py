"""The source documents to the letter: algorithms and theorems that no capability calls.

`online` is OnlineIC with its three update algorithms; `accuracy` computes what its theorems
promise. `bisection` is what the lemmas and the theorem about OnlineBisection say.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.papers.bisection import (
        StreamSetting,
        batch_claim,
        delay_bound,
        error_bound,
        extent,
        extent_printed,
        loss_bound,
        wrong_side,
        wrong_side_printed,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
