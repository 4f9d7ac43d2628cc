"""A process that charges a ledger from several threads until it is killed or the budget is gone.

Run as `python ledger_writer.py WHERE PARTS THREADS HABIT`. Each charge is 1/PARTS of the budget.
Its key goes to standard output when it is acknowledged (HABIT after), or, to show that the test
would notice, before it is made (HABIT before). HABIT may also name a moment at which the process
kills itself inside its first charge: before-commit or after-commit.
"""

import os
import signal
import sys
import threading
from fractions import Fraction
from typing import Any

from casemate.errors import BudgetExhausted
from casemate.privacy import Pure
from casemate.privacy.ledger import Ledger, open_ledger
from casemate.privacy.ledger.store import LedgerDatabase, LedgerFile

FACTS: dict[str, Any] = {"dataset": "hospital", "policy": "a1b2", "epsilon": Fraction(1)}


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def acknowledge(key: str) -> None:
    os.write(1, f"{key}\n".encode())


def spend(ledger: Ledger, parts: int, name: int, habit: str) -> None:
    for number in range(parts):
        key = f"{os.getpid()}.{name}.{number}"
        if habit == "before":
            acknowledge(key)
        try:
            ledger.charge(Pure(Fraction(1, parts)), key=key, purpose="race", principal=str(name))
        except BudgetExhausted:
            return
        acknowledge(key)


def main(where: str, parts: int, threads: int, habit: str) -> None:
    ledger = open_ledger(where, **FACTS)
    if habit == "before-commit":
        # The last step before COMMIT.
        LedgerDatabase.write_head = die  # type: ignore[method-assign, assignment]  # dies whatever it is given
    if habit == "after-commit":
        # The first step after COMMIT.
        LedgerFile.keep_head = die  # type: ignore[method-assign, assignment]  # the same
    crowd = [
        threading.Thread(target=spend, args=(ledger, parts, name, habit)) for name in range(threads)
    ]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    ledger.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
