"""Auditing questions before they are answered, so that refusals give nothing away."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.audit.online.auditor import OnlineAuditor
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
