"""How good a reconstruction is, and how much of that is disclosure rather than inference."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.score.scoring import score
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
