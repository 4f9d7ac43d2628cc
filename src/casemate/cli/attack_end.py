"""How an attack ends: done, or interrupted with the best so far written."""

from casemate.cli.exits import Exit
from casemate.cli.output import Output


def end_of_attack(finished: bool, output: Output) -> Exit:
    """The exit code of an attack; one that was interrupted says so."""
    if finished:
        return Exit.DONE
    output.note("interrupted: this is the best so far")
    return Exit.INTERRUPTED
