"""Casemate: audit, attack, answer and release statistics of sensitive tables.

The public names are those of `__all__`; each is imported from its room when it is first used, so
`import casemate` itself costs nothing.
"""

from typing import TYPE_CHECKING

from casemate import _version

if TYPE_CHECKING:
    from casemate.answer.session import Session as Session
    from casemate.attack.attack import Attack as Attack
    from casemate.attack.extract import extract as extract
    from casemate.attack.one_bit import OneBitAttack as OneBitAttack
    from casemate.attack.one_bit_oracle import TableOracle as TableOracle
    from casemate.attack.online import OnlineReconstruction as OnlineReconstruction
    from casemate.attack.plan import Plan as Plan
    from casemate.attack.plan_adaptive import AdaptivePlan as AdaptivePlan
    from casemate.attack.reconstruct import reconstruct as reconstruct
    from casemate.attack.score import score as score
    from casemate.audit.exposure import Audit as Audit
    from casemate.audit.exposure import witnesses as witnesses
    from casemate.audit.online import OnlineAuditor as OnlineAuditor
    from casemate.audit.repair import repair as repair
    from casemate.errors import BudgetExhausted as BudgetExhausted
    from casemate.errors import CasemateError as CasemateError
    from casemate.errors import ClockWentBackwards as ClockWentBackwards
    from casemate.errors import GateClosed as GateClosed
    from casemate.errors import HorizonReached as HorizonReached
    from casemate.errors import JournalRewound as JournalRewound
    from casemate.errors import LedgerDamaged as LedgerDamaged
    from casemate.errors import LedgerUnavailable as LedgerUnavailable
    from casemate.errors import Misconfigured as Misconfigured
    from casemate.errors import OtherWindow as OtherWindow
    from casemate.errors import PositivesSpent as PositivesSpent
    from casemate.errors import RationSpent as RationSpent
    from casemate.errors import Refused as Refused
    from casemate.errors import ScanFailed as ScanFailed
    from casemate.errors import TranscriptDamaged as TranscriptDamaged
    from casemate.errors import UnknownSite as UnknownSite
    from casemate.errors import Unsupported as Unsupported
    from casemate.privacy.binary_mechanism import BinaryMechanism as BinaryMechanism
    from casemate.privacy.exponential import exponential as exponential
    from casemate.privacy.ledger import open_ledger as open_ledger
    from casemate.privacy.noise import discrete_gaussian as discrete_gaussian
    from casemate.privacy.noise import discrete_laplace as discrete_laplace
    from casemate.privacy.sparse_vector import AboveThreshold as AboveThreshold
    from casemate.privacy.sparse_vector import GapSparseVector as GapSparseVector
    from casemate.privacy.sparse_vector import NumericSparse as NumericSparse
    from casemate.query.aggregate import Aggregate as Aggregate
    from casemate.query.lineage import lineage as lineage
    from casemate.query.membership import membership as membership
    from casemate.query.sql import parse as parse
    from casemate.solve.one_bit.automatic import AutomaticKalman as AutomaticKalman
    from casemate.solve.one_bit.bisection import OnlineBisection as OnlineBisection
    from casemate.solve.one_bit.edge import EdgeKalman as EdgeKalman
    from casemate.solve.one_bit.kalman import OneBitKalman as OneBitKalman
    from casemate.solve.one_bit.laws import parse_law as parse_law
    from casemate.solve.one_bit.limit import one_bit_limit as one_bit_limit
    from casemate.table.policy import load_policy as load_policy
    from casemate.table.schema import Policy as Policy
    from casemate.table.table import Table as Table
    from casemate.track.quota.quota import Quota as Quota
    from casemate.track.tracker import CountTracker as CountTracker


_HOME = {
    "AboveThreshold": "casemate.privacy.sparse_vector",
    "AdaptivePlan": "casemate.attack.plan_adaptive",
    "Aggregate": "casemate.query.aggregate",
    "Attack": "casemate.attack.attack",
    "Audit": "casemate.audit.exposure",
    "AutomaticKalman": "casemate.solve.one_bit.automatic",
    "BinaryMechanism": "casemate.privacy.binary_mechanism",
    "BudgetExhausted": "casemate.errors",
    "CasemateError": "casemate.errors",
    "ClockWentBackwards": "casemate.errors",
    "CountTracker": "casemate.track.tracker",
    "EdgeKalman": "casemate.solve.one_bit.edge",
    "GapSparseVector": "casemate.privacy.sparse_vector",
    "GateClosed": "casemate.errors",
    "HorizonReached": "casemate.errors",
    "JournalRewound": "casemate.errors",
    "LedgerDamaged": "casemate.errors",
    "LedgerUnavailable": "casemate.errors",
    "Misconfigured": "casemate.errors",
    "NumericSparse": "casemate.privacy.sparse_vector",
    "OneBitAttack": "casemate.attack.one_bit",
    "OneBitKalman": "casemate.solve.one_bit.kalman",
    "OnlineAuditor": "casemate.audit.online",
    "OnlineBisection": "casemate.solve.one_bit.bisection",
    "OnlineReconstruction": "casemate.attack.online",
    "OtherWindow": "casemate.errors",
    "Plan": "casemate.attack.plan",
    "Policy": "casemate.table.schema",
    "PositivesSpent": "casemate.errors",
    "Quota": "casemate.track.quota.quota",
    "RationSpent": "casemate.errors",
    "Refused": "casemate.errors",
    "ScanFailed": "casemate.errors",
    "Session": "casemate.answer.session",
    "Table": "casemate.table.table",
    "TableOracle": "casemate.attack.one_bit_oracle",
    "TranscriptDamaged": "casemate.errors",
    "UnknownSite": "casemate.errors",
    "Unsupported": "casemate.errors",
    "discrete_gaussian": "casemate.privacy.noise",
    "discrete_laplace": "casemate.privacy.noise",
    "exponential": "casemate.privacy.exponential",
    "extract": "casemate.attack.extract",
    "lineage": "casemate.query.lineage",
    "load_policy": "casemate.table.policy",
    "membership": "casemate.query.membership",
    "one_bit_limit": "casemate.solve.one_bit.limit",
    "open_ledger": "casemate.privacy.ledger",
    "parse": "casemate.query.sql",
    "parse_law": "casemate.solve.one_bit.laws",
    "reconstruct": "casemate.attack.reconstruct",
    "repair": "casemate.audit.repair",
    "score": "casemate.attack.score",
    "witnesses": "casemate.audit.exposure",
}

__all__ = list(_HOME)
__version__ = _version.VERSION


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds misspelt names

    def __getattr__(name: str) -> object:
        """Import a public name from its room on first use."""
        if name not in _HOME:
            raise AttributeError(f"module 'casemate' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value  # the next use does not come here
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
