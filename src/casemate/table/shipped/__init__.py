"""The tables that come with casemate: the hospital, `rand_hie`, and a `population` of any size.

`tables` finds them by name, and has the hospital itself.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.shipped.tables import names, shipped_table
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
