"""The tables that come with casemate: `hospital`, `rand_hie`, and `population` of any size."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.shipped.tables import names, shipped
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
