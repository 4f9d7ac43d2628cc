"""A tracker as processes: a server, sites, and those who watch."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.service.membership import join
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
