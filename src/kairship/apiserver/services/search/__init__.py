"""The Search service: full-text search over the objects in the index that the caller may see, and a watch on them.

The entrance answers it itself and reads the index directly: a process in between would only pass it on. The caller's
rights are part of the query to the index, so what is not in sight is neither found nor counted. `query` is a search,
`watch` a watch, and `searchable_clusters` says which part of each cluster is in sight.
"""

from kairship.apiserver.services.search.service import SearchService

__all__ = ["SearchService"]
