"""Hard limits shared by many sites: leases of one limit, never more admitted than it allows.

`quota` is a limit in one object, or a site's place in one elsewhere: a `server` that leases,
`site`s that admit, and the `messages` between them, over a `broker`; `journals` are what neither
may forget.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.quota.quota import Quota, join
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
