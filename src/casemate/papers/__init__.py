"""The source documents to the letter: algorithms and theorems that no capability calls.

`online` is OnlineIC, and `database_updates` are the three algorithms that may stand behind it;
`accuracy` computes what its theorems promise; `bisection` is what the lemmas and the theorem about
OnlineBisection say; `interaction` is a finite conversation between a mechanism and its adversary
with every probability exact, on which partial privacy is decided.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.papers.accuracy import PromiseTerms, theorem_5_14, theorem_5_15
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
    from casemate.papers.database_updates import (
        MedianMechanism,
        MultiplicativeWeights,
        Perceptron,
        corrected_updates,
        fixed_step,
        relative_entropy,
        sure_drop,
    )
    from casemate.papers.interaction import (
        Interaction,
        best_leak,
        interact,
        is_partially_private,
        is_private,
        ratio_needed,
    )
    from casemate.papers.online import (
        DatabaseUpdate,
        LiteralConstruction,
        OnlineRecords,
        OnlineSetting,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
