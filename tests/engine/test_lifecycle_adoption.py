"""Letting go of a Karmada, and adopting one that exists, on the real engine.

One Karmada goes through the module: made, let go, adopted, and let go again.
"""

from support.managed import ManagedInstance, World, all_of, gives, leading, settled

from kairship.controllers.global_cluster import INSTANCE
from kairship.kube import Object, kinds
from kairship.resources import NAMESPACE, InstanceCondition, InstanceReason

CREATED = InstanceCondition.CREATED


async def left_behind(instance: ManagedInstance) -> Object:
    """The Secret by which what was let go can be adopted."""
    [secret] = await instance.secrets()
    return secret


async def test_what_is_let_go_stays_as_it_is(instance: ManagedInstance, world: World) -> None:
    client = instance.client
    await instance.create(releaseOnDelete=True)
    async with leading(world):
        await instance.until(settled)
        await instance.write("mark")
        before = await instance.pids()
        await client.delete(INSTANCE, instance.name)
        await instance.until_gone()
    assert await instance.pids() == before
    assert "ownerReferences" not in (await left_behind(instance))["metadata"]


async def test_adopted_used_and_let_go_again(instance: ManagedInstance, world: World) -> None:
    client = instance.client
    before, secret = await instance.pids(), (await left_behind(instance))["metadata"]["name"]
    adopted, second = ManagedInstance(world), ManagedInstance(world)
    adopted.client = second.client = client
    await adopted.create(driver="external", kubeconfigSecret={"name": secret}, failover={"enabled": True})
    async with leading(world):
        found = await adopted.until(
            all_of(gives(CREATED, InstanceReason.ADOPTED), lambda found: found.status.state == "RUNNING")
        )
        assert found.status.credentials is not None
        assert found.status.credentials.name != secret
        assert await adopted.marks() == {"mark"}
        await adopted.until(gives(InstanceCondition.CONFIGURED, InstanceReason.NOT_SUPPORTED))

        await adopted.change(failover={"enabled": False}, backups=[{"name": "b"}])
        await adopted.until(gives(InstanceCondition.CONFIGURED, InstanceReason.CONFIGURED))
        await adopted.until(gives(InstanceCondition.BACKED_UP, InstanceReason.NOT_SUPPORTED))

        await second.create(driver="external", kubeconfigSecret={"name": secret})
        await second.until(gives(CREATED, InstanceReason.ADOPT_REFUSED))
        await second.until(lambda found: found.status.state == "UNAVAILABLE")
        await client.delete(INSTANCE, second.name)
        await second.until_gone()

        await client.delete(INSTANCE, adopted.name)
        await adopted.until_gone()
    assert await instance.pids() == before
    assert await adopted.remains() == []
    assert (await left_behind(instance))["metadata"]["name"] == secret


async def test_what_is_no_karmada_is_refused_until_the_secret_leads_to_one(
    instance: ManagedInstance, world: World
) -> None:
    client = instance.client
    plain = {"kubeconfig": world.connection.to_kubeconfig(name="plain").decode()}
    await client.create(kinds.SECRETS, {"metadata": {"name": "chosen"}, "stringData": plain}, namespace=NAMESPACE)
    adopted = ManagedInstance(world)
    adopted.client = client
    await adopted.create(driver="external", kubeconfigSecret={"name": "chosen"})
    async with leading(world):
        await adopted.until(gives(CREATED, InstanceReason.ADOPT_REFUSED))
        right = (await left_behind(instance))["data"]
        await client.patch(kinds.SECRETS, "chosen", {"data": right}, namespace=NAMESPACE)
        await adopted.until(gives(CREATED, InstanceReason.ADOPTED))
        await client.delete(INSTANCE, adopted.name)
        await adopted.until_gone()
