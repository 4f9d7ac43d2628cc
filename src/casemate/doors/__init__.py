"""The only two ways private data leaves, the gate and the measurement, and what left, in public.

`gate` says whether a stand-in is good enough and is paid by surprises, and `run_secrets` keeps its
open run over a restart; `measurement` adds exact noise to integer cells. Both charge the ledger
before anything leaves and write to the `transcript`, from which anybody can replay what is known.
`dataset` says which ledger, transcript and key belong to one protected table.
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
        secrets_of,
    )
    from casemate.doors.gate import Gate, GatePart, GateQuestion, on_grid
    from casemate.doors.measurement import NUMBER_OF_PEOPLE, Measurement
    from casemate.doors.run_secrets import MemorySecrets, RunSecrets, SecretFile
    from casemate.doors.transcript import (
        Answered,
        Closed,
        Content,
        Declared,
        Easy,
        Edition,
        EntryKind,
        Hard,
        Measured,
        Opened,
        PeopleTotal,
        Transcript,
        TranscriptEntry,
        answered_key,
        declared_key,
        from_lines,
        open_transcript,
        read_transcript,
        to_lines,
        transcript_of,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
