"""What every command shares: options, where results go, progress, exit codes.

`options` are those that several commands have, `output` is where a result goes and the bar for long
work, and `exits` is how a command ends.
"""

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
        MissingChoice,
        PolicyOnly,
        Private,
        Reveal,
        Seed,
        SourceOptions,
        TablePlace,
        TrackerChoice,
        Whole,
        check_seconds,
        check_seed,
    )
    from casemate.report.terminal.output import OutputOptions, Progress, write_atomically
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
