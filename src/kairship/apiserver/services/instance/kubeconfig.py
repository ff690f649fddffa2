"""Kubeconfigs for users: they lead through the entrance, under the user's own name and with the user's own rights.

They contain no credential of the instance itself. The user authenticates with an access token that is good for that
instance only, or by being signed in with the command line. Either way the entrance knows the user, and the removal of a
token, a role binding or an account takes effect at once.
"""

from typing import cast

from kairship.apiserver.services.instance.base import InstanceServiceBase
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    CreateInstanceAdminKubeConfigRequest,
    CreateInstanceAdminKubeConfigResponse,
)
from kairship.gen.kairship.internal.v1.directory_pb import IssueInstanceTokenRequest, IssueInstanceTokenResponse
from kairship.kube.config.kubeconfig import UserEntry
from kairship.rpc import native_access
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition, InvalidArgument
from kairship.rpc.native_access import NativeEndpoint
from kairship.wire import internal_methods

_ISSUE = "/kairship.internal.v1.Directory/IssueInstanceToken"
_Credential = CreateInstanceAdminKubeConfigRequest.Credential


class InstanceKubeconfigs(InstanceServiceBase):
    async def create_instance_admin_kube_config(
        self, request: CreateInstanceAdminKubeConfigRequest, call: Call
    ) -> CreateInstanceAdminKubeConfigResponse:
        await self._caches.instances.require(request.instance, call)
        public = self._settings.public
        if public is None:
            raise FailedPrecondition(
                "this plane does not know the address at which users reach it; its operator sets it with --public-url"
            )
        way = NativeEndpoint(request.instance, request.cluster or None)
        host = _host(way) if request.by_name else None
        ca = public.ca_bundle()
        issued = IssueInstanceTokenResponse()
        if request.credential is _Credential.EXEC:
            credential = native_access.exec_credential(public.url)
            if request.expiration_seconds:
                call.warn(
                    "expirationSeconds has no effect: there is no token in this kubeconfig; its user must be signed in"
                )
        else:
            issued = await self._issue(request, way, call)
            credential = UserEntry(token=issued.token)
        content = native_access.kubeconfig(
            way, server=public.url, ca=ca, user=call.caller.name, credential=credential, host=host
        )
        return CreateInstanceAdminKubeConfigResponse(
            kube_config_string=content.decode(),
            instance=request.instance,
            expires_at=issued.expires_at,
            token_id=issued.id,
        )

    async def _issue(
        self, request: CreateInstanceAdminKubeConfigRequest, way: NativeEndpoint, call: Call
    ) -> IssueInstanceTokenResponse:
        if self._ghippo is None:
            raise FailedPrecondition(
                "this plane runs without global management, so it cannot issue tokens: ask for the credential EXEC"
            )
        limit = self._settings.max_lifetime
        wanted = IssueInstanceTokenRequest(
            user=call.caller.id,
            instance=request.instance,
            name=f"kubeconfig of {way.context_name}",
            seconds=min(request.expiration_seconds or limit, limit),
            asked_with=call.caller.token,
        )
        reply = await self._ghippo.internal_unary(internal_methods()[_ISSUE], wanted, timeout=patience(call))
        return cast("IssueInstanceTokenResponse", reply)


def _host(way: NativeEndpoint) -> str:
    if (host := way.host) is None:
        raise InvalidArgument(
            violations=[
                (
                    "byName",
                    "the names are too long for a TLS server name, or have two dashes in a row: leave byName out",
                )
            ]
        )
    return host
