"""The records behind many sums without storing them: codes, or sketches added up in SQL.

`sketch` keeps codes in memory and goes over them in the compiled `passes`; `sql` leaves records
where they are. Both know records by the `record_hash`.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.records.bitsets import sign
    from casemate.query.sketch.passes import PassShape, Selection
    from casemate.query.sketch.record_hash import LANE_BITS, HashKeys, hash_lanes
    from casemate.query.sketch.sketch import CodedRecords, cells_of, pass_shape
    from casemate.query.sketch.sql import Only, SummedRecords
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
