"""The command line: one file per verb, heavy modules imported only when a command runs."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.cli.main import run
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
