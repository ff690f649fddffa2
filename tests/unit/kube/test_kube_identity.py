"""The identity of a call, and that no message or representation shows its secrets."""

from pathlib import Path

import pytest
from support.certificates import Authority
from support.scripted_server import Reply, reply, scripted_server

from kairship.kube import Client, ConfigError, Connection, Impersonation, errors, kinds
from kairship.kube.config.user import FileToken

CA = Authority()
SERVER = CA.issue().server_context()


async def test_a_token_is_sent_and_can_change_from_call_to_call(tmp_path: Path) -> None:
    tokens = iter(["first", "second"])
    async with scripted_server(reply({}), reply({}), reply({}), tls=SERVER) as server:
        async with Client(Connection(server=server.url, ca=CA.certificate, token="fixed")) as client:
            await client.get(kinds.NAMESPACES, "a")
        async with Client(Connection(server=server.url, ca=CA.certificate), token=lambda: next(tokens)) as client:
            await client.get(kinds.NAMESPACES, "a")
            await client.get(kinds.NAMESPACES, "a")
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == [["Bearer fixed"], ["Bearer first"], ["Bearer second"]]


def test_a_token_file_is_read_again_when_the_reading_is_a_minute_old(tmp_path: Path) -> None:
    now = 1000.0
    file = tmp_path / "token"
    file.write_text("first\n")
    token = FileToken(str(file), clock=lambda: now)
    assert token() == "first"
    file.write_text("second\n")
    now += 59
    assert token() == "first"
    now += 1
    assert token() == "second"


def test_a_token_file_that_is_being_replaced_does_not_fail_a_call(tmp_path: Path) -> None:
    now = 1000.0
    file = tmp_path / "token"
    file.write_text("first")
    token = FileToken(str(file), clock=lambda: now)
    assert token() == "first"
    file.unlink()
    now += 61
    assert token() == "first"
    file.write_text("")
    assert token() == "first"
    file.write_text("second")
    assert token() == "second"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
async def test_a_token_file_that_never_had_a_token(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    async with scripted_server(tls=SERVER) as server:
        async with Client(Connection(server=server.url, ca=CA.certificate, token_file=str(file))) as client:
            with pytest.raises(ConfigError, match=str(file)):
                await client.get(kinds.NAMESPACES, "a")
        assert server.connections == 0


async def test_impersonation_of_a_client_and_of_single_calls() -> None:
    ann = Impersonation(user="kairship:user:ann", groups=("a", "b"), uid="7", extra={"acme.io/Team": ("red", "blue")})
    async with scripted_server(*[reply({})] * 3) as server:
        async with Client(Connection(server=server.url)) as client:
            other = client.impersonating(ann)
            await other.get(kinds.NAMESPACES, "a")
            await other.close()  # has no connections of its own
            await client.get(kinds.NAMESPACES, "a")
            await other.impersonating(Impersonation(user="bob")).get(kinds.NAMESPACES, "a")
        sent = [
            {name: values for name, values in request.headers.items() if name.startswith("impersonate-")}
            for request in server.requests
        ]
    as_ann = {
        "impersonate-user": ["kairship:user:ann"],
        "impersonate-group": ["a", "b"],
        "impersonate-uid": ["7"],
        "impersonate-extra-acme.io%2fteam": ["red", "blue"],
    }
    assert sent == [as_ann, {}, {"impersonate-user": ["bob"]}]


@pytest.mark.parametrize(
    "who", [Impersonation(user=""), Impersonation(user="a\r\nX: y"), Impersonation("a", ["b\n"]), Impersonation(" a")]
)
async def test_an_impersonation_that_would_be_ignored_or_smuggled_is_refused(who: Impersonation) -> None:
    async with Client(Connection(server="https://here")) as client:
        with pytest.raises(ValueError, match="impersonat"):
            client.impersonating(who)


@pytest.mark.parametrize("header", ["Authorization", "impersonate-user", "Impersonate-Group", "IMPERSONATE-EXTRA-x"])
async def test_a_header_cannot_change_who_calls(header: str) -> None:
    async with scripted_server() as server, Client(Connection(server=server.url)) as client:
        with pytest.raises(ValueError, match="use `impersonating`"):
            await client.request("GET", "/", headers={header: "system:masters"})
        assert server.connections == 0


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"you sent: Authorization: Bearer secret-token", status=500),
        reply({"kind": "Status", "code": 401, "message": "bad token secret-token"}, status=401),
        reply(b"secret-token"),
        reply(status=302, headers={"Location": "https://x/?token=secret-token"}),
        Reply(b"secret-token\r\n\r\n", "close"),
        Reply(b"", "close"),
    ],
)
async def test_the_token_is_in_no_error_and_no_representation(answer: Reply) -> None:
    async with scripted_server(answer, tls=SERVER) as server:
        async with Client(Connection(server=server.url, ca=CA.certificate, token="secret-token")) as client:
            with pytest.raises(errors.KubeError) as caught:
                await client.get(kinds.NAMESPACES, "a")
            shown = repr(client) + repr(client.connection)
        error: BaseException | None = caught.value
        while error is not None:
            shown += repr(error) + str(error)
            error = error.__cause__
    assert "secret-token" not in shown
