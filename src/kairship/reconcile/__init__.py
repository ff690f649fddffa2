"""The runtime of all controllers, after client-go and controller-runtime. This module is its public face.

    cache           `Reflector` keeps a `Store` of the objects of a collection by `list_and_watch`; an `Indexer` finds
                    objects by a value in them. Objects are kept in a declared shape, never as a whole
    workqueue       `WorkQueue` holds the keys to reconcile: each key once, groups in turn, failures with `Backoff`
    controller      `Controller`: its watches and other sources, and `reconcile(context, key)`, which returns a `Result`
    runner          runs one controller with its queue and its workers
    manager         `Manager` runs controllers and their reflectors side by side and restarts what crashes
    field_owner     `FieldOwner`: server-side apply and finalizers in the name of one controller
    status          `StatusWriter`: sets conditions and fields of a status and writes what has changed
    events          `EventRecorder`: the Kubernetes Events that people see in `kubectl describe`
    leaderelection  `Elector` lets one of several processes lead for a `LeaderTerm`
    interception    `InterceptedClient`; its interceptor `FencedBy` refuses writes after the end of a term
    clock           `Clock`: where all time comes from, so that tests can control it
    metrics         `Metrics`, under the names that client-go and controller-runtime use

Everything runs in one event loop, except the renewal of the lease, which has a thread of its own.
"""

from kairship.reconcile.cache.indexer import Indexer
from kairship.reconcile.cache.list_watch import (
    Bookmark,
    Changed,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    ListWatchOptions,
    Selection,
    Step,
    list_and_watch,
)
from kairship.reconcile.cache.reflector import Change, Reflector
from kairship.reconcile.cache.shapes import HasMetadata, Metadata, MetadataOnly, OwnerReference
from kairship.reconcile.cache.store import ObjectName, Store
from kairship.reconcile.clock import Clock, SystemClock
from kairship.reconcile.controller import Context, Controller, Enqueue, Notifications, Reconcile, Source, Watch, own_key
from kairship.reconcile.custom_resources import resource_of
from kairship.reconcile.events import EventRecorder, ObjectReference, Recorder
from kairship.reconcile.field_owner import FieldOwner
from kairship.reconcile.interception import Call, FencedBy, InterceptedClient, Interceptor
from kairship.reconcile.key import Key
from kairship.reconcile.leaderelection.elector import Elector
from kairship.reconcile.leaderelection.leader_term import LeaderTerm, TermEnded
from kairship.reconcile.leaderelection.lease import LeaseTiming
from kairship.reconcile.leaderelection.lease_lock import LeaseName
from kairship.reconcile.manager import Manager, Problem
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.results import (
    DONE,
    REQUEUE,
    STALE,
    Done,
    ReconcileError,
    Requeue,
    Result,
    RetryableError,
    RetryAfter,
    TerminalError,
)
from kairship.reconcile.status import StatusWriter, sorted_conditions
from kairship.reconcile.workqueue.backoff import Backoff, jittered
from kairship.reconcile.workqueue.queue import RetryPolicy, WorkQueue

__all__ = [
    "DONE",
    "REQUEUE",
    "STALE",
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
    "Enqueue",
    "EventRecorder",
    "FencedBy",
    "FieldOwner",
    "HasMetadata",
    "Indexer",
    "InterceptedClient",
    "Interceptor",
    "Interrupted",
    "Key",
    "LeaderTerm",
    "LeaseName",
    "LeaseTiming",
    "ListBegan",
    "ListEnded",
    "ListWatchOptions",
    "Listed",
    "Manager",
    "Metadata",
    "MetadataOnly",
    "Metrics",
    "Notifications",
    "ObjectName",
    "ObjectReference",
    "OwnerReference",
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
    "Source",
    "StatusWriter",
    "Step",
    "Store",
    "SystemClock",
    "TermEnded",
    "TerminalError",
    "Watch",
    "WorkQueue",
    "jittered",
    "list_and_watch",
    "own_key",
    "resource_of",
    "sorted_conditions",
]
