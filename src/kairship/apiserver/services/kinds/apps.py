"""The operations of the Apps service: Deployments."""

from kairship.apiserver.services.kinds.deployments import DEPLOYMENTS, pause, restart, resume
from kairship.apiserver.services.kinds.promotion import promote_deployment
from kairship.apiserver.services.resources import (
    Create,
    Delete,
    Get,
    GetJSON,
    List,
    OperationTable,
    Patch,
    PatchWith,
    Update,
    Watch,
)

APPS: OperationTable = {
    "ListDeployments": List(DEPLOYMENTS),
    "ListInstanceDeployments": List(DEPLOYMENTS),
    "ListMemberClusterDeployments": List(DEPLOYMENTS),
    "ListMemberClusterAllDeployments": List(DEPLOYMENTS),
    "WatchDeployments": Watch(DEPLOYMENTS),
    "GetDeployment": Get(DEPLOYMENTS),
    "GetDeploymentJSON": GetJSON(DEPLOYMENTS),
    "CreateDeployment": Create(DEPLOYMENTS),
    "UpdateDeployment": Update(DEPLOYMENTS),
    "PatchDeployment": Patch(DEPLOYMENTS),
    "DeleteDeployment": Delete(DEPLOYMENTS),
    "PauseDeployment": PatchWith(DEPLOYMENTS, pause),
    "ResumeDeployment": PatchWith(DEPLOYMENTS, resume),
    "RestartDeployment": PatchWith(DEPLOYMENTS, restart),
    "PromoteMemberClusterDeployment": promote_deployment,
}
