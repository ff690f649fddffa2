"""The Workspace service: which workspaces of global management hold which instances and namespaces."""

from kairship.apiserver.services.workspace.service import WorkspaceService

__all__ = ["WorkspaceService"]
