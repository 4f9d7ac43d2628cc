"""How good a reconstruction is, and how much of that is disclosure rather than inference.

`scoring` holds the fraction right against baselines. `predictor` has when a guess is right, and
guesses from the public columns; `leave_one_out` learns them from the release without the target.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.score.scoring import score
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
