"""The certificates of one control plane: what is issued, what is kept and what is replaced."""

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kairship.controlplane import pki as pki_module
from kairship.controlplane.pki import KeyPair, Pki, write_private

NOW = dt.datetime(2030, 6, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def later(directory: Path, days: float) -> Pki:
    return Pki(directory, now=NOW + days * DAY)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    made = Pki(tmp_path / "pki", now=NOW)
    made.ensure_authority("ca", common_name="test-ca")
    return made


def client(pki: Pki, *, common_name: str = "somebody", organizations: tuple[str, ...] = ("a", "b")) -> KeyPair:
    return pki.ensure_client("client", authority="ca", common_name=common_name, organizations=organizations)


def server(pki: Pki, *hosts: str) -> KeyPair:
    return pki.ensure_server("server", authority="ca", common_name="server", hosts=hosts)


def read(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.cert.read_bytes())


def belong_together(pair: KeyPair) -> bool:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    return key.public_key() == read(pair).public_key()


def test_a_client_certificate_says_who_and_in_which_groups(pki: Pki) -> None:
    certificate = read(client(pki))
    assert [item.value for item in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["a", "b"]
    assert [item.value for item in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["somebody"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    certificate.verify_directly_issued_by(read(pki.pair("ca")))


def test_a_server_certificate_names_its_hosts_once(pki: Pki) -> None:
    names = read(server(pki, "127.0.0.1", "localhost", "127.0.0.1")).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert [str(name.value) for name in names.value] == ["127.0.0.1", "localhost"]


def test_only_the_owner_reads_what_is_written(pki: Pki) -> None:
    client(pki)
    pki.ensure_signing_key("tokens")
    files = list(pki.directory.iterdir())
    assert len(files) == 6
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert pki.directory.stat().st_mode & 0o777 == 0o700


def test_what_fits_is_left_alone(pki: Pki) -> None:
    pair = client(pki)
    before = pair.cert.read_bytes()
    assert client(later(pki.directory, 334)).cert.read_bytes() == before


def test_a_certificate_is_renewed_in_its_last_thirty_days(pki: Pki) -> None:
    pair = client(pki)
    before = pair.cert.read_bytes()
    renewed = read(client(later(pki.directory, 335)))
    assert pair.cert.read_bytes() != before
    assert renewed.not_valid_after_utc == NOW + (335 + 365) * DAY
    assert belong_together(pair)


def test_an_authority_is_kept_until_it_ends(pki: Pki) -> None:
    before = pki.authority_bundle("ca")
    later(pki.directory, 3649).ensure_authority("ca", common_name="test-ca")
    assert pki.authority_bundle("ca") == before
    later(pki.directory, 3650).ensure_authority("ca", common_name="test-ca")
    assert pki.authority_bundle("ca") != before


def test_a_certificate_of_another_authority_is_issued_again(pki: Pki, tmp_path: Path) -> None:
    stranger = Pki(tmp_path / "stranger", now=NOW)
    stranger.ensure_authority("ca", common_name="test-ca")  # it has the same name, so only the signature differs
    foreign = client(stranger)
    pair = client(pki)
    write_private(pair.cert, foreign.cert.read_bytes())
    write_private(pair.key, foreign.key.read_bytes())
    read(client(pki)).verify_directly_issued_by(read(pki.pair("ca")))
    assert belong_together(pair)


@pytest.mark.parametrize("damage", ["other key", "no key", "no certificate", "torn certificate", "empty key"])
def test_a_pair_that_is_no_pair_is_issued_again(pki: Pki, damage: str) -> None:
    pair = client(pki)
    if damage == "other key":
        write_private(pair.key, server(pki, "localhost").key.read_bytes())
    elif damage == "no key":
        pair.key.unlink()
    elif damage == "no certificate":
        pair.cert.unlink()
    elif damage == "torn certificate":
        write_private(pair.cert, pair.cert.read_bytes()[:100])
    else:
        write_private(pair.key, b"")
    client(pki)
    assert belong_together(pair)


def test_a_changed_subject_or_host_is_a_new_certificate(pki: Pki) -> None:
    pair, hosts = client(pki), server(pki, "localhost")
    first, first_hosts = pair.cert.read_bytes(), hosts.cert.read_bytes()
    client(pki, organizations=("a",))
    server(pki, "localhost", "another")
    assert pair.cert.read_bytes() != first
    assert hosts.cert.read_bytes() != first_hosts


def test_a_kill_between_key_and_certificate_is_repaired(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = client(pki)

    class Killed(BaseException):
        pass

    def dies_at_the_certificate(path: Path, content: bytes) -> None:
        if path.suffix == ".crt":
            raise Killed
        write_private(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(pki_module, "write_private", dies_at_the_certificate)
        with pytest.raises(Killed):
            client(later(pki.directory, 340))
    assert not belong_together(pair)
    client(later(pki.directory, 340))
    assert belong_together(pair)


def test_the_key_that_signs_tokens_is_never_replaced(pki: Pki) -> None:
    pair = pki.ensure_signing_key("tokens")
    key, public = pair.key.read_bytes(), pair.cert.read_bytes()
    pair.cert.unlink()
    later(pki.directory, 9999).ensure_signing_key("tokens")
    assert (pair.key.read_bytes(), pair.cert.read_bytes()) == (key, public)


def test_a_leaf_without_its_authority_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="authority 'ca' is missing"):
        client(Pki(tmp_path))
