"""From noisy answers to values: the problem, its solver, and how sure each value is.

`run` has the entry point. `problem` is what an attacker has (`answers_file` reads the published
answers) with the laws of noise; `solvers_by_name` says which solver a problem asks for and calls
it; `confidence` says how sure each value is, from its `covariance` and the
`intervals` of a law. `reconstruction` is what was found, and `online` follows answers one by one.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.reconstruct.online import OnlineReconstruction
    from casemate.attack.reconstruct.problem import NoiseLaw, Prior, Problem
    from casemate.attack.reconstruct.run import reconstruct
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
