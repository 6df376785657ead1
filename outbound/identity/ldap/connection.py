"""A connection to a directory: StartTLS, simple bind, search. RFC 4511, on asyncio's streams.

Answers are bounded in bytes. Referrals are never followed. The caller limits the time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import NamedTuple

from outbound.identity.calling import ProviderAway
from outbound.identity.ldap import ber
from outbound.identity.ldap.ber import BerReader, Malformed

LONGEST_MESSAGE = 2**20
"""Bytes. A person in thousands of groups needs some 300 KiB."""
MOST_REFERENCES = 20
"""Referrals to other directories that a search may name. None is followed."""
SUCCESS, TIME_LIMIT, SIZE_LIMIT, NO_SUCH_OBJECT = 0, 3, 4, 32
_START_TLS = "1.3.6.1.4.1.1466.20037"
_BIND, _BOUND, _UNBIND, _SEARCH, _ENTRY, _DONE, _REFERENCE = 0x60, 0x61, 0x42, 0x63, 0x64, 0x65, 0x73
_EXTENDED, _EXTENDED_ANSWER, _SIMPLE = 0x77, 0x78, 0x80
_WHOLE_TREE, _NEVER = 2, 0


class DirectoryEntry(NamedTuple):
    """An entry of the directory. `attributes`: values by the name in lower case, without options."""

    dn: str
    attributes: dict[str, tuple[bytes, ...]]


class DirectoryConnection:
    """An open connection. Every method raises ProviderAway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._last = 0

    @classmethod
    async def open(
        cls, host: str, port: int, context: ssl.SSLContext | None, *, start_tls: bool = False
    ) -> DirectoryConnection:
        """Connects, with TLS if there is a context: at once, or after StartTLS (RFC 4511 4.14)."""
        at_once = context is not None and not start_tls
        try:
            reader, writer = await asyncio.open_connection(
                host, port, ssl=context if at_once else None, server_hostname=host if at_once else None
            )
        except ssl.SSLError as error:
            raise ProviderAway(f"TLS: {error.reason or type(error).__name__}") from None
        except OSError as error:
            raise ProviderAway(f"no connection: {error.strerror or type(error).__name__}") from None
        made = cls(reader, writer)
        if context is not None and start_tls:
            try:
                await made._start_tls(context, host)
            except BaseException:
                made.cut()
                raise
        return made

    def cut(self) -> None:
        """Ends the connection at once."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Says goodbye and ends the connection."""
        try:
            await self._send(ber.element(_UNBIND))
        finally:
            self._writer.close()

    async def bind(self, dn: str, password: str) -> int:
        """The result of a simple bind. A bind with an empty password is anonymous and always succeeds (RFC 4513 5.1.2),
        so none is ever sent."""
        if not dn or not password:
            raise ValueError("a bind needs a name and a password")
        request = ber.element(_BIND, ber.integer(3), ber.octets(dn), ber.octets(password, _SIMPLE))
        await self._send(request)
        return _result(await self._answer(_BOUND))

    async def search(
        self, base: str, wanted: bytes, attributes: Sequence[str], most: int, seconds: int
    ) -> list[DirectoryEntry]:
        """At most `most` entries below a base. One entry too many is no error: the caller counts."""
        request = ber.element(
            _SEARCH,
            ber.octets(base),
            ber.integer(_WHOLE_TREE, ber.ENUMERATED),
            ber.integer(_NEVER, ber.ENUMERATED),
            ber.integer(most),
            ber.integer(seconds),
            ber.boolean(value=False),
            wanted,
            ber.element(ber.SEQUENCE, *map(ber.octets, attributes)),
        )
        await self._send(request)
        found: list[DirectoryEntry] = []
        for _ in range(most + MOST_REFERENCES + 1):
            tag, content = await self._message()
            if tag == _ENTRY and len(found) < most:
                found.append(_entry(content))
            elif tag == _DONE:
                result = _result(content)
                if result not in (SUCCESS, SIZE_LIMIT, NO_SUCH_OBJECT):
                    raise ProviderAway(f"search: result {result}")
                return found
            elif tag != _REFERENCE:
                break
        raise ProviderAway("search: not an answer")

    async def _start_tls(self, context: ssl.SSLContext, host: str) -> None:
        await self._send(ber.element(_EXTENDED, ber.octets(_START_TLS, 0x80)))
        if (result := _result(await self._answer(_EXTENDED_ANSWER))) != SUCCESS:
            raise ProviderAway(f"StartTLS: result {result}")
        try:
            await self._writer.start_tls(context, server_hostname=host)
        except ssl.SSLError as error:
            raise ProviderAway(f"TLS: {error.reason or type(error).__name__}") from None
        except OSError:
            raise ProviderAway("TLS: the connection ended") from None

    async def _send(self, request: bytes) -> None:
        self._last += 1
        self._writer.write(ber.element(ber.SEQUENCE, ber.integer(self._last), request))
        try:
            await self._writer.drain()
        except OSError:
            raise ProviderAway("the connection ended") from None

    async def _answer(self, tag: int) -> bytes:
        found, content = await self._message()
        if found != tag:
            raise ProviderAway("another answer than asked for")
        return content

    async def _message(self) -> tuple[int, bytes]:
        """The operation in the next message, which must answer the last request."""
        try:
            tag, first = await self._reader.readexactly(2)
            if tag != ber.SEQUENCE:
                raise Malformed("tag")
            longer = ber.length_bytes(first)
            size = int.from_bytes(await self._reader.readexactly(longer), "big") if longer else first
            if size > LONGEST_MESSAGE:
                raise ProviderAway("an answer that is too long")
            message = BerReader(await self._reader.readexactly(size))
            # A message with the number 0 says that the directory ends the connection (RFC 4511 4.4.1).
            if message.number() != self._last:
                raise ProviderAway("another answer than asked for")
            return message.any()
        except (asyncio.IncompleteReadError, OSError):
            raise ProviderAway("the connection ended") from None
        except Malformed:
            raise ProviderAway("not an answer of LDAP") from None


def _result(content: bytes) -> int:
    """The code of a result (RFC 4511 4.1.9). Its texts are never used."""
    try:
        return BerReader(content).number(ber.ENUMERATED)
    except Malformed:
        raise ProviderAway("not an answer of LDAP") from None


def _entry(content: bytes) -> DirectoryEntry:
    """RFC 4511 4.5.2."""
    try:
        entry = BerReader(content)
        dn, listed = entry.take(ber.OCTETS).decode(), BerReader(entry.take(ber.SEQUENCE))
        attributes: dict[str, tuple[bytes, ...]] = {}
        while listed.more:
            one = BerReader(listed.take(ber.SEQUENCE))
            name, values, found = one.take(ber.OCTETS).decode(), BerReader(one.take(ber.SET)), []
            while values.more:
                found.append(values.take(ber.OCTETS))
            attributes[name.partition(";")[0].lower()] = tuple(found)
        return DirectoryEntry(dn, attributes)
    except ValueError:
        raise ProviderAway("not an answer of LDAP") from None
