"""How a command ends: exit codes, and every error as one sentence on stderr.

0 done; 1 a finding the user asked to fail on, or nothing to count; 2 wrong input; 3 refused; 70 a
bug of casemate's; 130 interrupted; 141 the reader of our output went away. An error's message
reaches the user only when casemate wrote it: one written by somebody else may quote a private
value.
"""

import difflib
import dis
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import TracebackType

from cyclopts import (
    Argument,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from casemate.errors import CasemateError, LedgerUnavailable, Refused, Unsupported


class Exit(IntEnum):
    """The exit codes; anything else is an accident."""

    DONE = 0
    FOUND = 1
    WRONG_INPUT = 2
    REFUSED = 3
    BUG = 70
    INTERRUPTED = 130
    READER_GONE = 141


@contextmanager
def unsupported_is_refused() -> Iterator[None]:
    """Inside, SQL outside the accepted fragment is a refusal and not a mistake in the input."""
    try:
        yield
    except Unsupported as error:
        raise Refused(str(error)) from error


def end_of(error: BaseException) -> tuple[Exit, str]:
    """The exit code an error leads to, and what to tell the user (nothing when it is empty)."""
    match error:
        case BrokenPipeError():
            end = Exit.READER_GONE, ""
        case KeyboardInterrupt():
            end = Exit.INTERRUPTED, "interrupted"
        case Refused() | LedgerUnavailable():  # nothing is wrong with the input
            end = Exit.REFUSED, str(error)
        case CasemateError():
            end = Exit.WRONG_INPUT, str(error)
        case CycloptsError():
            end = Exit.WRONG_INPUT, _wording(error)
        case OSError() if error.strerror:
            end = Exit.WRONG_INPUT, _about_a_file(error)
        case ValueError() if _raised_by_casemate(error):
            end = Exit.WRONG_INPUT, str(error)
        case _:
            end = Exit.BUG, _report(error)
    return end


def _wording(error: CycloptsError) -> str:
    """What is wrong with the command line, and where to look next."""
    command = " ".join(["casemate", *(error.command_chain or ())])
    match error:
        case UnknownCommandError(unused_tokens=[token, *_]):
            return f'unknown command "{token}"; {_nearest(token, error.app or (), command)}'
        case UnusedCliTokensError(unused_tokens=[token, *_]):
            return f'unexpected argument "{token}"; see {command} --help'
        case MissingArgumentError(argument=Argument() as argument) if not argument.tokens:
            if error.keyword is None:
                return f"{_usage_name(argument)} is missing; see {command} --help"
    sentence = str(error)
    if isinstance(error, UnknownOptionError) and "Did you mean" not in sentence:
        return f"unknown option: {error.token.keyword or error.token.value}; see {command} --help"
    return sentence[:1].lower() + sentence[1:]


def _usage_name(argument: Argument) -> str:
    """An argument as the usage line has it."""
    name = argument.name
    return name.lstrip("-").upper() if argument.field_info.is_positional else name


def _nearest(token: str, names: Iterable[str], command: str) -> str:
    """A guess from the names alone: the parser's own guess would import every verb first."""
    near = difflib.get_close_matches(token, [name for name in names if name[0] != "-"], n=1)
    return f"did you mean {command} {near[0]}?" if near else f"see {command} --help"


def _about_a_file(error: OSError) -> str:
    reason = (error.strerror or "").lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _raised_by_casemate(error: ValueError) -> bool:
    """Whether a `raise` in casemate made this error, rather than, say, `int(text)` in it.

    The latter's message quotes the text, and the text may be a record's.
    """
    place = _innermost(error.__traceback__)
    if place is None or type(error) is not ValueError:
        return False
    code = place.tb_frame.f_code.co_code
    instruction = dis.opname[code[place.tb_lasti]]
    module = str(place.tb_frame.f_globals.get("__name__"))
    return module.startswith("casemate.") and instruction == "RAISE_VARARGS"


def _innermost(place: TracebackType | None) -> TracebackType | None:
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place


def _report(error: BaseException) -> str:
    """Where a bug is, without the values it was about."""
    if os.environ.get("CASEMATE_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    place = _innermost(error.__traceback__)
    where = f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
    return (
        f"a bug in casemate: {type(error).__name__}{where}; please report this line "
        f"(CASEMATE_DEBUG=1 shows the traceback, which may contain private values)"
    )
