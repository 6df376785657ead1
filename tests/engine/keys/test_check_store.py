"""Stores that are unfit, unreachable or not authentic are refused before the server starts."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dev.lab.ports import free_port
from store.engine.connect import check_store, connect
from store.errors import StartupError
from tests.support.processes.engines import Engine, redis_server, valkey


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with valkey() as engine:
        yield engine


def check(url: str) -> None:
    async def scenario() -> None:
        client = await connect(url)
        async with client:
            await check_store(client, url)

    asyncio.run(scenario())


def test_a_store_that_may_evict_is_refused(engine: Engine) -> None:
    check(engine.url)
    with engine.client() as admin:
        admin.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(StartupError, match=r"allkeys-lru.*noeviction"):
            check(engine.url)
        admin.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize(
    ("rights", "reason"),
    [
        pytest.param("-config", None, id="without CONFIG, INFO tells"),
        pytest.param("-info", None, id="without INFO, CONFIG tells"),
        pytest.param("-info -config", "cannot be read .*INFO.*CONFIG GET", id="with neither it is refused"),
    ],
)
def test_a_redis_user_with_few_rights_can_be_enough(engine: Engine, rights: str, reason: str | None) -> None:
    with engine.client() as admin:
        admin.execute_command("ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "+@all", *rights.split())
    url = engine.url + "?username=few&password=pw"
    if reason is None:
        check(url)
    else:
        with pytest.raises(StartupError, match=reason) as refused:
            check(url)
        assert "pw" not in str(refused.value)


def test_an_unreachable_store_is_refused() -> None:
    with pytest.raises(StartupError, match=r"redis://127.0.0.1:\d+ cannot be reached"):
        check(f"redis://u:hunter2@127.0.0.1:{free_port()}")


def test_an_old_redis_is_refused() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A minimal Redis 6.2: it knows INFO."""
        while line := await reader.readline():
            if line.strip() == b"INFO":
                body = b"redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n"
                writer.write(b"$%d\r\n%s\r\n" % (len(body), body))
            elif line.strip() in (b"SETNAME", b"SETINFO"):
                writer.write(b"+OK\r\n")
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = await connect(url)
        with pytest.raises(StartupError, match=r"version 6\.2; Latchkey needs Redis 7\.0"):
            await check_store(client, url)
        await client.aclose()
        server.close()

    asyncio.run(scenario())


def certificate(directory: Path, *addresses: str) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and for addresses, and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(hours=1))
    names = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = builder.sign(key, hashes.SHA256())
    files = directory / "cert.pem", directory / "key.pem"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


def test_tls_verification_follows_the_url(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    port = free_port()
    tls = (
        "--tls-port",
        str(port),
        "--tls-cert-file",
        str(cert),
        "--tls-key-file",
        str(key),
        "--tls-auth-clients",
        "no",
    )
    with redis_server(options=tls):
        check(f"rediss://localhost:{port}?ssl_ca_certs={cert}")
        with pytest.raises(StartupError, match=r"cannot be reached.*CERTIFICATE_VERIFY_FAILED"):
            check(f"rediss://localhost:{port}")
        with pytest.raises(StartupError, match=r"cannot be reached.*(?i:mismatch)"):
            check(f"rediss://127.0.0.1:{port}?ssl_ca_certs={cert}")
        with pytest.raises(StartupError, match="cannot be reached"):
            check(f"redis://localhost:{port}")
