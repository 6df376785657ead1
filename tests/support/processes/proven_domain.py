"""An app's domain: a TLS server on loopback that any name resolves to."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from outbound.address_policy import AddressPolicy
from outbound.fetching import Fetcher
from tests.support.http.receiver import Receiver, Reply, answering

DOMAIN = "app.example"
TEXT = "Content-Type: text/plain; charset=utf-8"


class Everywhere(AbstractResolver):
    """Resolves any name to a loopback port."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self.port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        """Does nothing."""


def certificate(folder: Path, domain: str = DOMAIN) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS contexts: the domain's server, and a client that trusts the server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, domain)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=False)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    signed = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    file = folder / "pem"
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form) + signed)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=signed.decode())


class Domain:
    """A domain with a changeable file, and a fetcher that finds it. `policy` limits the fetcher's addresses."""

    receiver: Receiver
    fetcher: Fetcher

    @classmethod
    async def make(cls, folder: Path, policy: AddressPolicy | None = None, whole: float = 5.0) -> Domain:
        """Starts listening."""
        self = cls()
        server, client = certificate(folder)
        self.receiver = Receiver(answering(404))
        await self.receiver.start(ssl=server)
        found = Everywhere(self.receiver.port)
        self.fetcher = Fetcher(policy or AddressPolicy(loopback=True), whole=whole, resolver=found, tls=client)
        return self

    def says(self, *lines: str) -> None:
        """Changes the file."""
        self.answers(answering(200, TEXT, body="\r\n".join(lines).encode()))

    def answers(self, reply: Reply) -> None:
        """Changes the answer to every request."""
        self.receiver.reply = reply
