"""The runtime of every controller: what watches, queues, retries and leads in Kairship does it here.

    Reflector    a local picture of a collection, fed by `follow`: a list, its changes, and over again when needed
    WorkQueue    keys to look at, each once, each group in its turn, failures later and later
    Controller   a name, what wakes it, and `reconcile(context, key)`; `Manager` runs many side by side
    Elector      one of several processes leads, for a `LeaderTerm`; `FencedBy` keeps the others' hands still

Everything runs in one event loop but the renewal of the lease, which has a thread of its own. Time comes from a
`Clock`, calls go through a client that can be intercepted; `testing` has a clock and faults for tests.
"""

from kairship.reconcile.backoff import Backoff, jittered
from kairship.reconcile.clock import Clock, SystemClock
from kairship.reconcile.controller import Context, Controller, Reconcile, Watch, own_key
from kairship.reconcile.elector import Elector
from kairship.reconcile.events import EventRecorder, ObjectReference, Recorder
from kairship.reconcile.following import (
    Bookmark,
    Changed,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    Pace,
    Selection,
    Step,
    follow,
)
from kairship.reconcile.grouping import Grouping
from kairship.reconcile.interception import Call, FencedBy, InterceptedClient, Interceptor
from kairship.reconcile.keeper import LeaseName
from kairship.reconcile.key import Key
from kairship.reconcile.lease import Timing
from kairship.reconcile.manager import Manager, Problem
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.own_kinds import resource_of
from kairship.reconcile.ownership import FieldOwner
from kairship.reconcile.queue import RetryPolicy, WorkQueue
from kairship.reconcile.reflector import Change, Reflector
from kairship.reconcile.results import (
    DONE,
    REQUEUE,
    Done,
    ReconcileError,
    Requeue,
    Result,
    RetryableError,
    RetryAfter,
    TerminalError,
)
from kairship.reconcile.shapes import Metadata, MetadataOnly, OwnerReference, Shaped
from kairship.reconcile.store import ObjectName, Store
from kairship.reconcile.term import LeaderTerm, TermEnded

__all__ = [
    "DONE",
    "REQUEUE",
    "Backoff",
    "Bookmark",
    "Call",
    "Change",
    "Changed",
    "Clock",
    "Context",
    "Controller",
    "Done",
    "Elector",
    "EventRecorder",
    "FencedBy",
    "FieldOwner",
    "Grouping",
    "InterceptedClient",
    "Interceptor",
    "Interrupted",
    "Key",
    "LeaderTerm",
    "LeaseName",
    "ListBegan",
    "ListEnded",
    "Listed",
    "Manager",
    "Metadata",
    "MetadataOnly",
    "Metrics",
    "ObjectName",
    "ObjectReference",
    "OwnerReference",
    "Pace",
    "Problem",
    "Reconcile",
    "ReconcileError",
    "Recorder",
    "Reflector",
    "Requeue",
    "Result",
    "RetryAfter",
    "RetryPolicy",
    "RetryableError",
    "Selection",
    "Shaped",
    "Step",
    "Store",
    "SystemClock",
    "TermEnded",
    "TerminalError",
    "Timing",
    "Watch",
    "WorkQueue",
    "follow",
    "jittered",
    "own_key",
    "resource_of",
]
