"""Settings that cannot work are refused before any worker is started."""

from pathlib import Path

import msgspec
import pytest
from support.certificates import Authority

from kairship.apiserver import process
from kairship.apiserver.settings import Address, Settings
from kairship.kube import Connection
from kairship.process.certificates import CertificateFiles
from kairship.process.start_error import StartError
from kairship.rpc.backend_channel import BackendAddress


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    connection = Connection(server="https://127.0.0.1:1", ca=Authority().certificate, token="x")
    (tmp_path / "kubeconfig").write_bytes(connection.to_kubeconfig(name="global"))
    issued = Authority().issue()
    (tmp_path / "tls.crt").write_bytes(issued.certificate)
    (tmp_path / "tls.key").write_bytes(issued.key)
    return Settings(
        rest=Address(),
        grpc=Address(),
        ops=Address(),
        kubeconfig=tmp_path / "kubeconfig",
        ghippo=BackendAddress(target="127.0.0.1:1", ca=tmp_path / "tls.crt", token=tmp_path / "token"),
        audit_dir=tmp_path / "audit",
        tls=CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key"),
    )


async def refused(settings: Settings) -> str:
    with pytest.raises(StartError) as refusal:
        await process.run(settings)
    return str(refusal.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.test"])  # noqa: S104
async def test_an_address_that_other_hosts_reach_needs_a_certificate(settings: Settings, host: str) -> None:
    assert "--tls-cert" in await refused(msgspec.structs.replace(settings, tls=None, rest=Address(host)))
    assert "--tls-cert" in await refused(msgspec.structs.replace(settings, tls=None, grpc=Address(host)))


async def test_the_audit_must_have_a_directory(settings: Settings) -> None:
    settings.audit_dir.write_text("a file")
    assert "audit" in await refused(settings)


async def test_a_key_must_fit_its_certificate(settings: Settings) -> None:
    assert settings.tls is not None
    settings.tls.key.write_bytes(Authority().issue().key)
    assert "KEY_VALUES_MISMATCH" in await refused(settings)
    settings.tls.key.write_bytes(b"no key")
    assert "are not a certificate and its key" in await refused(settings)
    settings.tls.key.unlink()
    assert "No such file" in await refused(settings)
