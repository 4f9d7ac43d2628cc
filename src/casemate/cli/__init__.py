"""The command line: every verb by name, imported from its room only when it is called.

`main` mounts the verbs and ends each; `policy` and `demo` are the commands that no other room has.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.cli.main import run
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
