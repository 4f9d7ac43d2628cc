"""The boundary of a linear classifier, taken through nothing but its labels."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.extract.extraction import extract
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
