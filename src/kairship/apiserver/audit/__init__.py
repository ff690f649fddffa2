"""What is remembered of who did what: the intent is on disk before the act, the outcome after it.

auditing    what the chain calls, and what is worth remembering
events      one act as it is written down
spool       files on disk of one worker, appended to and flushed in batches; each is a `segment`
shipping    from there to global management, which keeps it for good
"""

from kairship.apiserver.audit.auditing import Audit, SpooledAudit
from kairship.apiserver.audit.shipping import Shipper
from kairship.apiserver.audit.spool import Spool, SpoolError

__all__ = ["Audit", "Shipper", "Spool", "SpoolError", "SpooledAudit"]
