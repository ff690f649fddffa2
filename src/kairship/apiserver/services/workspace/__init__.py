"""The Workspace service: the assignment of instances and their namespaces to the workspaces of global management.

`service` has the methods; `global_management` makes the calls to global management, where workspaces are kept.
"""

from kairship.apiserver.services.workspace.service import WorkspaceService

__all__ = ["WorkspaceService"]
