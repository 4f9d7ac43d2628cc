"""A tracker as processes: a server, sites, and those who watch.

`serving` is the server's process and those who watch it, with an `attendant` for what is lost and
who is away; `membership` is a site's place in it.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.service.membership import join
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
