"""Casemate: audit, attack, answer and release statistics of sensitive tables.

The public names are those of `__all__`; each is imported from its room when it is first used, so
`import casemate` itself costs nothing.
"""

from typing import TYPE_CHECKING

from casemate import _version
from casemate.facade import lazily

if TYPE_CHECKING:
    __all__: list[str]
    from casemate.answer import Replay, Session, replay
    from casemate.attack import Attack
    from casemate.attack.extract import extract
    from casemate.attack.one_bit import (
        AutomaticKalman,
        EdgeKalman,
        OneBitAttack,
        OneBitKalman,
        OnlineBisection,
        TableOracle,
        one_bit_limit,
        parse_law,
    )
    from casemate.attack.plan import AdaptivePlan, Plan
    from casemate.attack.reconstruct import OnlineReconstruction, reconstruct
    from casemate.attack.score import score
    from casemate.audit import Audit, audit_releases, witnesses
    from casemate.audit.online import OnlineAuditor
    from casemate.audit.repair import repair
    from casemate.errors import (
        BudgetExhausted,
        CasemateError,
        ClockWentBackwards,
        GateClosed,
        HorizonReached,
        JournalRewound,
        LedgerDamaged,
        LedgerUnavailable,
        Misconfigured,
        OtherWindow,
        PositivesSpent,
        RationSpent,
        Refused,
        ScanFailed,
        TooExact,
        TranscriptDamaged,
        UnknownSite,
        Unsupported,
    )
    from casemate.privacy.ledger import open_ledger
    from casemate.privacy.mechanisms import (
        AboveThreshold,
        BinaryMechanism,
        GapSparseVector,
        NumericSparse,
        exponential,
    )
    from casemate.privacy.noise import discrete_gaussian, discrete_laplace
    from casemate.query import Aggregate
    from casemate.query.parse import parse
    from casemate.query.records import lineage, membership
    from casemate.table import Policy, Table, load_policy
    from casemate.track import CountTracker
    from casemate.track.quota import Quota
else:
    __all__, __getattr__, __dir__ = lazily(__name__, "__version__")

__version__ = _version.VERSION
