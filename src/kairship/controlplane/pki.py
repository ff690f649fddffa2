"""The certificates of one control plane.

A control plane has three authorities, which trust neither each other nor those of another control plane: `ca` for
clients and servers, `front-proxy-ca` for the aggregation layer (if it were the same as `ca`, an approved CSR for
`front-proxy-client` could impersonate every user), and `etcd-ca` for etcd. It also has a key pair that signs
service-account tokens.

Every `ensure_*` is idempotent: a certificate that exists, has the right content and is valid for longer than
`RENEW_BEFORE` is kept, and all others are issued again. A certificate is written after its key, each atomically, so a
kill at any point leaves a pair that matches or a pair that the next call replaces. Keys are ECDSA P-256 and only their
owner can read them.
"""

import datetime as dt
import ipaddress
from collections.abc import Iterable
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kairship.supervisor import atomic

AUTHORITY_LIFETIME = dt.timedelta(days=3650)
CERTIFICATE_LIFETIME = dt.timedelta(days=365)
RENEW_BEFORE = dt.timedelta(days=30)
# Clocks differ: a certificate must not be refused because the clock of the peer is a moment behind.
BACKDATE = dt.timedelta(minutes=5)


class KeyPair(msgspec.Struct, frozen=True):
    """The paths of a certificate and its key."""

    cert: Path
    key: Path


class Pki:
    """Issues and renews the certificates in one directory."""

    def __init__(self, directory: Path, *, now: dt.datetime | None = None) -> None:
        self.directory = directory
        self._now = now or dt.datetime.now(dt.UTC)

    def pair(self, name: str) -> KeyPair:
        return KeyPair(cert=self.directory / f"{name}.crt", key=self.directory / f"{name}.key")

    def signing_pair(self, name: str) -> KeyPair:
        """The paths of a signing key: `cert` is its public key."""
        return KeyPair(cert=self.directory / f"{name}.pub", key=self.directory / f"{name}.key")

    def authority_bundle(self, name: str) -> bytes:
        return self.pair(name).cert.read_bytes()

    def ensure_authority(self, name: str, *, common_name: str) -> KeyPair:
        pair = self.pair(name)
        existing = _load(pair)
        if existing is not None and existing[0].not_valid_after_utc > self._now:
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(common_name)
        certificate = (
            self._builder(subject=subject, issuer=subject, public_key=key.public_key(), lifetime=AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(sign_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        self._write(pair, certificate, key)
        return pair

    def ensure_server(self, name: str, *, authority: str, common_name: str, hosts: Iterable[str]) -> KeyPair:
        """A server certificate for `hosts`. It is also valid as a client certificate, which etcd's peers need."""
        sans = [_general_name(host) for host in dict.fromkeys(hosts)]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._ensure_leaf(name, authority=authority, subject=_name(common_name), usages=usages, sans=sans)

    def ensure_client(
        self, name: str, *, authority: str, common_name: str, organizations: Iterable[str] = ()
    ) -> KeyPair:
        """A client certificate that authenticates as user `common_name` in groups `organizations`."""
        subject = _name(common_name, organizations)
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._ensure_leaf(name, authority=authority, subject=subject, usages=usages, sans=[])

    def ensure_signing_key(self, name: str) -> KeyPair:
        """A key pair for service-account tokens: `<name>.key` signs them, `<name>.pub` verifies them."""
        pair = self.signing_pair(name)
        if not pair.key.exists():
            write_private(pair.key, _key_bytes(ec.generate_private_key(ec.SECP256R1())))
        key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        if not pair.cert.exists() or pair.cert.read_bytes() != public:
            write_private(pair.cert, public)
        return pair

    def _ensure_leaf(
        self,
        name: str,
        *,
        authority: str,
        subject: x509.Name,
        usages: list[x509.ObjectIdentifier],
        sans: list[x509.GeneralName],
    ) -> KeyPair:
        pair = self.pair(name)
        issuer = _load(self.pair(authority))
        if issuer is None:
            raise FileNotFoundError(f"authority {authority!r} is missing or broken in {self.directory}")
        issuer_certificate, issuer_key = issuer
        existing = _load(pair)
        if existing is not None and self._fits(existing[0], subject, sans, issuer_certificate):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(
                subject=subject,
                issuer=issuer_certificate.subject,
                public_key=key.public_key(),
                lifetime=CERTIFICATE_LIFETIME,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
                critical=False,
            )
        )
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
        self._write(pair, builder.sign(issuer_key, hashes.SHA256()), key)
        return pair

    def _fits(
        self,
        certificate: x509.Certificate,
        subject: x509.Name,
        sans: list[x509.GeneralName],
        issuer: x509.Certificate,
    ) -> bool:
        if certificate.not_valid_after_utc - RENEW_BEFORE <= self._now or certificate.subject != subject:
            return False
        try:
            certificate.verify_directly_issued_by(issuer)
        except (InvalidSignature, ValueError, TypeError):
            return False
        try:
            present = list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        except x509.ExtensionNotFound:
            present = []
        return present == sans

    def _builder(
        self, *, subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, lifetime: dt.timedelta
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - BACKDATE)
            .not_valid_after(self._now + lifetime)
        )

    def _write(self, pair: KeyPair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        write_private(pair.key, _key_bytes(key))
        write_private(pair.cert, certificate.public_bytes(serialization.Encoding.PEM))


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` atomically by a file that only its owner can read. A file with the same content is left alone."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic.replace(path, content)


def _load(pair: KeyPair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
    """The pair, or None if it is missing or unreadable, or if certificate and key do not match."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.cert.read_bytes())
        key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return certificate, key


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    # The traditional format, because every Go component can read it for service-account keys.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
