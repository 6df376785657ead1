"""A directory with one entry, which accepts one password: for tests that need no real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from outbound.identity.ldap import ber
from outbound.identity.ldap.ber import BerReader
from outbound.identity.ldap.directory import DirectorySettings
from outbound.identity.ldap.filters import parse_filter
from outbound.identity.providers import LDAP, Provider

PASSWORD, SUBJECT, ISSUER = "of the directory", "entry-1", "ldap://company.example"
FORM = "/signin/with/company/password"


@asynccontextmanager
async def small_directory() -> AsyncIterator[Provider]:
    """One that listens; the provider that asks it."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = DirectorySettings("127.0.0.1", port, "dc=example", parse_filter("(uid={login})"))
    async with server:
        yield Provider("company", "Company", LDAP, ISSUER, "", directory=settings)


def _answer(number: int, tag: int, *content: bytes) -> bytes:
    return ber.element(ber.SEQUENCE, ber.integer(number), ber.element(tag, *content))


def _result(code: int) -> tuple[bytes, ...]:
    return ber.integer(code, ber.ENUMERATED), ber.octets(""), ber.octets("")


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while len(head := await reader.read(2)) == 2:
        longer = ber.length_bytes(head[1])
        size = int.from_bytes(await reader.readexactly(longer), "big") if longer else head[1]
        message = BerReader(await reader.readexactly(size))
        number = message.number()
        tag, content = message.any()
        if tag == 0x63:
            attribute = ber.element(ber.SEQUENCE, ber.octets("entryUUID"), ber.element(ber.SET, ber.octets(SUBJECT)))
            writer.write(_answer(number, 0x64, ber.octets("uid=ada"), ber.element(ber.SEQUENCE, attribute)))
            writer.write(_answer(number, 0x65, *_result(0)))
        elif tag == 0x60:
            bind = BerReader(content)
            bind.number()
            bind.take(ber.OCTETS)
            writer.write(_answer(number, 0x61, *_result(0 if bind.take(0x80) == PASSWORD.encode() else 49)))
    writer.close()
