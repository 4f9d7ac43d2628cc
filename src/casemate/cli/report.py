"""`casemate report`: an object that was saved as JSON, as text or as a page once more."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from casemate.errors import Misconfigured
from casemate.report.terminal import OutputOptions


def report(
    saved: Annotated[Path, Parameter(help="The JSON that casemate audit wrote.")],
    /,
    *,
    output: OutputOptions | None = None,
) -> None:
    """Render a saved audit again; what was hidden in it stays hidden."""
    from casemate.audit import saved_report

    output = output or OutputOptions()
    try:
        fields = json.loads(saved.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"{saved} cannot be read: {(error.strerror or '').lower()}") from None
    except ValueError:
        raise Misconfigured(f"{saved} is not JSON; give what --format json wrote") from None
    try:
        output.emit(saved_report(fields))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise Misconfigured(f"{saved} is not whole: a field is missing or was changed") from None
