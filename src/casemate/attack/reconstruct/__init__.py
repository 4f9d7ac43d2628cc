"""From noisy answers to values: the problem, its solver, and how sure each value is."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.reconstruct.noise import NoiseLaw
    from casemate.attack.reconstruct.online import OnlineReconstruction
    from casemate.attack.reconstruct.problem import Prior, Problem
    from casemate.attack.reconstruct.run import reconstruct
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
