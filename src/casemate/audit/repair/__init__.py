"""A small set of rows to withhold so that nobody is exposed, written as SQL."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.repair.search import repair
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
