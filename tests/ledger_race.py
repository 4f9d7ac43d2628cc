"""Callers that open one ledger at the same moment and spend until it refuses."""

import threading
from collections.abc import Callable
from fractions import Fraction

from casemate.errors import BudgetExhausted
from casemate.privacy import Pure
from casemate.privacy.ledger import Ledger


def race(opened: Callable[[], Ledger], callers: int) -> list[str]:
    """The keys that were granted, a twentieth each, to callers with a connection of their own."""
    granted, together = list[str](), threading.Barrier(callers)

    def spend(name: int) -> None:
        together.wait()
        with opened() as ledger:
            for number in range(5):
                try:
                    ledger.charge(Pure(Fraction(1, 20)), key=f"{name}.{number}", purpose="race")
                except BudgetExhausted:
                    return
                granted.append(f"{name}.{number}")

    threads = [threading.Thread(target=spend, args=(name,)) for name in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return granted
