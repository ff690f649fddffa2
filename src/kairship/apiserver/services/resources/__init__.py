"""One service for all objects of Kubernetes and Karmada in an instance, driven by a description of each kind.

`kind` is the description, `operations` what can be done with an object of any kind, `service` derives the methods of
a proto service from the two. What is read comes from a `Reader` (`reader`): the index (`index_reader`), and where it
cannot answer the instance itself (`live_reader`).
"""

from kairship.apiserver.services.resources.index_reader import IndexReader, NotedWrites
from kairship.apiserver.services.resources.kind import Action, Filter, Kind
from kairship.apiserver.services.resources.live_reader import LiveReader
from kairship.apiserver.services.resources.operations import Operations
from kairship.apiserver.services.resources.reader import Found, Query, Reader
from kairship.apiserver.services.resources.service import ResourceService

__all__ = [
    "Action",
    "Filter",
    "Found",
    "IndexReader",
    "Kind",
    "LiveReader",
    "NotedWrites",
    "Operations",
    "Query",
    "Reader",
    "ResourceService",
]
