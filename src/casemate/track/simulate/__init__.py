"""Simulations: what a protocol sends and how far it is off, item by item.

`runs` runs a protocol against an `adversary`: compiled (`compiled_run`, with pauses in which it
can be interrupted), or over real sites and servers.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.simulate.adversary import Seen
    from casemate.track.simulate.runs import simulate
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
