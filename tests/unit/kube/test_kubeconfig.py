"""Kubeconfigs are read and written, a context is selected, and unsupported ones are refused."""

import base64
from pathlib import Path

import pytest
import yaml
from support.certificates import Authority

from kairship.kube import ConfigError, Connection, Kubeconfig

PEM = b"-----BEGIN CERTIFICATE-----\nsecret-material\n-----END CERTIFICATE-----\n"


def kubeconfig(*, user: dict[str, object] | None = None, cluster: dict[str, object] | None = None) -> bytes:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "clusters": [
                {"name": "here", "cluster": {"server": "https://here:6443", **(cluster or {})}},
                {"name": "there", "cluster": {"server": "https://there:6443"}},
            ],
            "users": [{"name": "me", "user": user or {"token": "secret-token"}}, {"name": "nobody", "user": {}}],
            "contexts": [
                {"name": "one", "context": {"cluster": "here", "user": "me", "namespace": "a"}},
                {"name": "two", "context": {"cluster": "there", "user": "nobody"}},
                {"name": "lost", "context": {"cluster": "nowhere", "user": "me"}},
                {"name": "stranger", "context": {"cluster": "here", "user": "stranger"}},
            ],
        }
    ).encode()


def test_the_current_context_and_another_by_name() -> None:
    assert Connection.from_kubeconfig(kubeconfig()) == Connection(server="https://here:6443", token="secret-token")
    assert Connection.from_kubeconfig(kubeconfig(), "two") == Connection(server="https://there:6443")


def test_embedded_data() -> None:
    encoded = base64.b64encode(PEM).decode()
    connection = Connection.from_kubeconfig(
        kubeconfig(
            user={"client-certificate-data": encoded, "client-key-data": encoded},
            cluster={"certificate-authority-data": encoded, "tls-server-name": "other"},
        )
    )
    assert connection == Connection(
        server="https://here:6443", ca=PEM, client_cert=PEM, client_key=PEM, tls_server_name="other"
    )


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / "pki" / name).write_bytes(PEM + name.encode())
    file = tmp_path / "config"
    file.write_bytes(
        kubeconfig(
            user={"client-certificate": "pki/me.crt", "client-key": str(tmp_path / "pki/me.key"), "tokenFile": "token"},
            cluster={"certificate-authority": "pki/ca.crt"},
        )
    )
    assert Connection.from_kubeconfig(file) == Connection(
        server="https://here:6443",
        ca=PEM + b"ca.crt",
        client_cert=PEM + b"me.crt",
        client_key=PEM + b"me.key",
        token_file=str(tmp_path / "token"),
    )


@pytest.mark.parametrize("field", ["client-certificate", "client-key", "tokenFile"])
def test_content_that_is_no_file_may_not_name_files(field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} refers to a file"):
        Connection.from_kubeconfig(kubeconfig(user={field: "/etc/hostname"}))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*absent"):
        Connection.from_kubeconfig(tmp_path / "absent")
    file = tmp_path / "config"
    file.write_bytes(kubeconfig(cluster={"certificate-authority": "ca.crt"}))
    with pytest.raises(ConfigError, match=r"certificate-authority: cannot read .*ca\.crt"):
        Connection.from_kubeconfig(str(file))


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ({"exec": {"command": "aws"}}, "running a program"),
        ({"auth-provider": {"name": "oidc"}}, "auth providers"),
        ({"username": "me", "password": "secret"}, "passwords"),
        ({"token": "t", "as": "admin"}, "impersonation"),
        ({"token": "t", "as-groups": ["system:masters"]}, "impersonation"),
    ],
)
def test_what_the_client_does_not_do_is_refused_with_the_reason(user: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Connection.from_kubeconfig(kubeconfig(user=user))


def test_a_proxy_is_refused() -> None:
    with pytest.raises(ConfigError, match="proxies are not supported"):
        Connection.from_kubeconfig(kubeconfig(cluster={"proxy-url": "http://proxy:3128"}))


@pytest.mark.parametrize(
    ("content", "context", "message"),
    [
        (kubeconfig(), "absent", "no context 'absent'; it has: one, two, lost, stranger"),
        (kubeconfig(), "lost", "names cluster 'nowhere'"),
        (kubeconfig(), "stranger", "names user 'stranger'"),
        (b"clusters: []\ncontexts: null\n", None, "no current-context"),
        (b"- a list", None, "not a mapping"),
        (b"", None, "not a mapping"),
        (b"users: [{name: me, user: {token: 7}}]", None, r"Expected `str \| null`, got `int`"),
    ],
)
def test_what_cannot_be_used_is_explained(content: bytes, context: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Connection.from_kubeconfig(content, context)


def test_broken_yaml_is_not_quoted() -> None:
    with pytest.raises(ConfigError, match=r"not YAML \(line 2\)") as caught:
        Connection.from_kubeconfig(b"users:\n  token: secret-token: x\n")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_written_and_read_again_it_is_the_same(tmp_path: Path) -> None:
    issued = Authority().issue()
    for connection in (
        Connection(server="https://a:1", ca=PEM, client_cert=issued.certificate, client_key=issued.key),
        Connection(server="https://a:1/prefix", token="secret-token", tls_server_name="b"),
        Connection(server="https://a:1", token_file="/run/token", insecure_skip_tls_verify=True),
    ):
        file = tmp_path / "config"
        file.write_bytes(connection.to_kubeconfig(name="plane", user="me"))
        assert Connection.from_kubeconfig(file) == connection
        assert Kubeconfig.load(file).current_context == "plane"
        assert Connection.from_kubeconfig(file, context="plane") == connection


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"server": "here:6443"}, "must be an address like"),
        ({"server": "ftp://here"}, "must be an address like"),
        ({"server": "https://me:secret-password@here"}, "must be an address like"),
        ({"server": "https://here?x=1"}, "must be an address like"),
        ({"server": "https://here:port"}, "must be an address like"),
        ({"server": "http://here", "token": "secret-token"}, "over https only"),
        ({"server": "http://here", "token_file": "/run/token"}, "over https only"),
        ({"server": "https://here", "client_cert": PEM}, "or its key is missing"),
        ({"server": "https://here", "ca": PEM, "insecure_skip_tls_verify": True}, "use one of them"),
    ],
)
def test_a_connection_that_makes_no_sense_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Connection(**fields)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_no_secret_is_shown() -> None:
    encoded = base64.b64encode(PEM).decode()
    content = kubeconfig(user={"token": "secret-token", "client-certificate-data": encoded, "client-key-data": encoded})
    connection = Connection.from_kubeconfig(content)
    assert repr(connection) == "Connection(server='https://here:6443', identity=client_cert and token)"
    shown = repr(Kubeconfig.load(content)) + str(connection)
    assert "secret" not in shown
    assert encoded[:20] not in shown
