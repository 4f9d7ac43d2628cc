"""The records behind many sums without storing them: codes, or sketches added up in SQL."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.sketch.layouts import CodedCells, PassShape, Selection, layout
    from casemate.query.sketch.passes import HALF, HashKeys, hashed, sign
    from casemate.query.sketch.sketch import CodedRecords, cells_of
    from casemate.query.sketch.sql import Only, SummedRecords
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
