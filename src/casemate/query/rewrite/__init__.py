"""Statements changed so that they show all of their rows but some."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.rewrite.withhold import ShownRow, Withholding
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
