"""What every command shares: options, where results go, progress, exit codes."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.report.terminal.exits import Exit, end_of, unsupported_is_refused
    from casemate.report.terminal.options import (
        Alpha,
        Bounds,
        Delta,
        Dialect,
        Horizon,
        Integer,
        Known,
        Reveal,
        TablePlace,
        TrackerChoice,
        Whole,
        check_seconds,
        check_seed,
    )
    from casemate.report.terminal.output import OutputOptions, Progress, write_atomically
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
