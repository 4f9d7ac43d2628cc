"""Hard limits shared by many sites: leases of one limit, never more admitted than it allows."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.track.quota.quota import Quota, join
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
