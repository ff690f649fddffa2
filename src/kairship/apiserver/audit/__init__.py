"""The audit of who did what: the intent is on disk before the act, the outcome after it.

recorder    what the chain calls, and which calls are recorded
audit_event one act as a record
spool       the files of one worker on disk, appended to and flushed in batches; each file is a `segment`
shipping    ships records from the disk to global management, which stores them
"""

from kairship.apiserver.audit.recorder import Audit, SpooledAudit
from kairship.apiserver.audit.shipping import Shipper
from kairship.apiserver.audit.spool import Spool, SpoolError

__all__ = ["Audit", "Shipper", "Spool", "SpoolError", "SpooledAudit"]
