"""Kubeconfigs for people: they lead through the entrance, in the person's own name and with their own rights.

There is nothing of the instance's own in them. Who uses one shows an access token that is good for that instance only,
or is signed in with the command line. Either way the entrance knows who it is, and what was taken away (a token, a
binding, the account) is gone at once.
"""

from typing import cast

from kairship.apiserver.services.instance.part import Part
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    CreateInstanceAdminKubeConfigRequest,
    CreateInstanceAdminKubeConfigResponse,
)
from kairship.gen.kairship.internal.v1.directory_pb import IssueInstanceTokenRequest, IssueInstanceTokenResponse
from kairship.kube import native_access
from kairship.kube.kubeconfig import UserEntry
from kairship.kube.native_access import Way
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition, InvalidArgument
from kairship.wire import internal_methods

_ISSUE = "/kairship.internal.v1.Directory/IssueInstanceToken"
_Credential = CreateInstanceAdminKubeConfigRequest.Credential


class Kubeconfigs(Part):
    async def create_instance_admin_kube_config(
        self, request: CreateInstanceAdminKubeConfigRequest, call: Call
    ) -> CreateInstanceAdminKubeConfigResponse:
        await self._own.instances.require(request.instance, call)
        public = self._settings.public
        if public is None:
            raise FailedPrecondition(
                "this plane does not know the address by which people reach it; its operator gives it as --public-url"
            )
        way = Way(request.instance, request.cluster or None)
        host = _host(way) if request.by_name else None
        authority = public.authority()
        issued = IssueInstanceTokenResponse()
        if request.credential is _Credential.EXEC:
            credential = native_access.signed_in(public.url)
            if request.expiration_seconds:
                call.warn("there is no token in this kubeconfig that could end; who uses it must be signed in")
        else:
            issued = await self._issue(request, way, call)
            credential = UserEntry(token=issued.token)
        content = native_access.kubeconfig(
            way, server=public.url, ca=authority, user=call.caller.name, credential=credential, host=host
        )
        return CreateInstanceAdminKubeConfigResponse(
            kube_config_string=content.decode(),
            instance=request.instance,
            expires_at=issued.expires_at,
            token_id=issued.id,
        )

    async def _issue(
        self, request: CreateInstanceAdminKubeConfigRequest, way: Way, call: Call
    ) -> IssueInstanceTokenResponse:
        if self._ghippo is None:
            raise FailedPrecondition("this plane runs without global management, so it has no tokens")
        limit = self._settings.longest_kubeconfig
        wanted = IssueInstanceTokenRequest(
            user=call.caller.id,
            instance=request.instance,
            name=f"kubeconfig of {way.title}",
            seconds=min(request.expiration_seconds or limit, limit),
            asked_with=call.caller.token,
        )
        reply = await self._ghippo.own(internal_methods()[_ISSUE], wanted, timeout=patience(call))
        return cast("IssueInstanceTokenResponse", reply)


def _host(way: Way) -> str:
    if (host := way.host) is None:
        raise InvalidArgument(
            violations=[("byName", "the two names are too long for one of TLS, or have two dashes; use the path")]
        )
    return host
