"""The mechanisms: sparse vector, exponential, continual counting, and their calibration.

`sparse_vector` answers any number of questions and pays for surprises, `exponential_mechanism`
chooses the best of many candidates, and `binary_mechanism` keeps a running total.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.mechanisms.binary_mechanism import BinaryMechanism
    from casemate.privacy.mechanisms.exponential_mechanism import exponential
    from casemate.privacy.mechanisms.sparse_vector import (
        AboveThreshold,
        Calibration,
        GapSparseVector,
        NumericSparse,
        Positive,
        RunState,
        Side,
        accuracy_share,
        run_epsilon,
        split_share,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
