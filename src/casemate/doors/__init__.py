"""The only two ways private data leaves, the gate and the measurement, and what left, in public.

`Gate` says whether a stand-in is good enough and is paid by surprises; `Measurement` adds exact
noise to integer cells. Both charge the ledger before anything leaves and write to the `Transcript`,
from which anybody can replay what is known. `dataset` says which ledger, transcript and key belong
to one protected table.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.doors.dataset import (
        Doorway,
        dataset_key,
        dataset_of,
        edition_of,
        ledger_of,
        place_of_ledger,
        secrets_of,
    )
    from casemate.doors.entry import (
        Answered,
        Closed,
        Content,
        Easy,
        Edition,
        EntryKind,
        Hard,
        Measured,
        Opened,
        PeopleTotal,
        TranscriptEntry,
        answered_key,
    )
    from casemate.doors.gate import (
        Gate,
        GatePart,
        GateQuestion,
        MemorySecrets,
        RunSecrets,
        SecretFile,
        on_grid,
    )
    from casemate.doors.measurement import NUMBER_OF_PEOPLE, Measurement
    from casemate.doors.transcript import (
        Transcript,
        from_lines,
        open_transcript,
        to_lines,
        transcript_of,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
