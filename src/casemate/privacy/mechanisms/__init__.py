"""The mechanisms: sparse vector, exponential, continual counting, and their calibration."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.mechanisms.binary_mechanism import BinaryMechanism
    from casemate.privacy.mechanisms.calibration import (
        Calibration,
        accuracy_share,
        run_epsilon,
    )
    from casemate.privacy.mechanisms.exponential_mechanism import exponential
    from casemate.privacy.mechanisms.sparse_vector import (
        AboveThreshold,
        GapSparseVector,
        NumericSparse,
        Positive,
        RunState,
        Side,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
