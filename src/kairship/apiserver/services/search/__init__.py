"""The Search service: words over everything that the index has and the caller may see, and what changes of it.

It is answered by the entrance itself, which reads the index directly: a process in between would only pass it on.
Rights are part of the question to the index, so what is not in sight is neither found nor counted.
"""

from kairship.apiserver.services.search.service import SearchService

__all__ = ["SearchService"]
