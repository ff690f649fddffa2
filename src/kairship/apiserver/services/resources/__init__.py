"""The objects of Kubernetes and Karmada in an instance, served by operations that are written once for all kinds.

`kind` describes a kind, `operations` and `watch` are what can be done with its objects, and `operation_table` binds
operations to the methods of a proto service. Operations work with an `object_access`: writes go to the instance, reads
to a `Reader` (`reader`), which is the index (`index_reader`) or, where the index cannot answer, the instance itself
(`live_reader`). `target_clusters` reads where Karmada has scheduled an object to.
"""

from kairship.apiserver.services.resources.index_reader import IndexReader, NotedWrites
from kairship.apiserver.services.resources.kind import Filter, Kind
from kairship.apiserver.services.resources.live_reader import LiveReader
from kairship.apiserver.services.resources.object_access import ObjectAccess
from kairship.apiserver.services.resources.operation_table import OperationTable, bind_operations
from kairship.apiserver.services.resources.operations import (
    Create,
    Delete,
    Get,
    GetJSON,
    List,
    Patch,
    PatchWith,
    Update,
    list_page,
)
from kairship.apiserver.services.resources.reader import Found, Query, Reader
from kairship.apiserver.services.resources.watch import Watch

__all__ = [
    "Create",
    "Delete",
    "Filter",
    "Found",
    "Get",
    "GetJSON",
    "IndexReader",
    "Kind",
    "List",
    "LiveReader",
    "NotedWrites",
    "ObjectAccess",
    "OperationTable",
    "Patch",
    "PatchWith",
    "Query",
    "Reader",
    "Update",
    "Watch",
    "bind_operations",
    "list_page",
]
