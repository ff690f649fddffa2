"""No secret appears in logs, custom resources, metrics or the audit log."""

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import yaml
from support.entrance import BASE
from support.our_kinds import SERVED
from support.people import GHIPPO, People

from kairship.embedded import EmbeddedPlane, plane_processes
from kairship.kube import Client

DEMO = f"{BASE}/instances/demo"


def written(plane: EmbeddedPlane) -> Iterator[tuple[str, bytes]]:
    """All logs of our own processes and of the engine's, and the spool of the audit log."""
    for folder, _, names in os.walk(plane.home.root):
        for file in (Path(folder, name) for name in names):
            if file.suffix == ".log" or "audit" in str(file.relative_to(plane.home.root)):
                # Other tests remove instances and clusters of the plane meanwhile, with their logs.
                with suppress(FileNotFoundError):
                    yield str(file), file.read_bytes()


async def test_nothing_secret_is_written_down(plane: EmbeddedPlane, people: People) -> None:
    """Sends passwords, tokens of both kinds, a body and a kubeconfig through the entrance, and searches for them."""
    ann = await people.person("ann")
    marks = {"session": ann.client.headers["Authorization"].removeprefix("Bearer ")}
    made = await ann.client.request("POST", f"{GHIPPO}/current-user/access-tokens", {"name": "ci", "days": 1})
    marks["access token"] = made.json["token"]
    marks["password"] = f"wrong-{uuid.uuid4().hex}"
    await people.admin.named("").request("POST", f"{GHIPPO}/login", {"name": ann.name, "password": marks["password"]})
    marks["bad token"] = f"kst_{uuid.uuid4().hex}"
    await people.admin.named(marks["bad token"]).request("GET", DEMO)
    marks["body"] = f"value-{uuid.uuid4().hex}"
    manifest = f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: x}}, spec: {marks['body']}}}"
    await people.admin.request("POST", f"{DEMO}/namespaces/default/deployments", {"data": manifest})
    issued = await people.admin.request("POST", f"{DEMO}/kubeconfig", {})
    assert issued.status == 200, issued.body
    kubeconfig = yaml.safe_load(issued.json["kubeConfigString"])
    marks["kubeconfig"] = kubeconfig["users"][0]["user"]["token"]
    marks["admin"] = (
        Path((await plane_processes.ensure_entrance(plane.supervisor, plane.home)).token_file).read_text().strip()
    )
    logs = dict(written(plane))
    assert any("apiserver" in name for name in logs)
    assert any("ghippo" in name for name in logs)
    for what, secret in marks.items():
        assert [name for name, text in logs.items() if secret.encode() in text] == [], what
    async with Client(await plane.global_connection()) as client:
        for kind in SERVED.values():
            objects = str((await client.list(kind)).items)
            assert not any(secret in objects for secret in marks.values()), kind.plural
    audits = await people.admin.request("GET", f"{GHIPPO}/audits?limit=1000")
    assert audits.status == 200
    assert not any(secret.encode() in audits.body for secret in marks.values())
