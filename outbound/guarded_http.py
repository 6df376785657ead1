"""HTTP calls to addresses that anybody may have named: public ones only, no cookies, no redirects."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

from outbound.address_policy import AddressPolicy, Resolver, Unreachable

READ_BYTES = 4096
"""Bytes of an answer to read at a time."""
INTERIM = 8
"""Interim answers (1xx) before the final one. A receiver that sends them without end could keep this server reading,
some thousands in one piece, for the whole time of a post."""
NO_ADDRESS = "The host's name leads to no address that may be posted to."


class _Response(aiohttp.ClientResponse):
    """Gives up on a receiver that sends too many interim answers."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """See aiohttp."""
        protocol = connection.protocol
        assert protocol is not None
        read, left = protocol.read, INTERIM

        async def counted() -> Any:
            nonlocal left
            if left < 0:
                raise HttpProcessingError(code=502, message="interim answers without end")
            left -= 1
            return await read()

        protocol.read = counted  # type: ignore[method-assign]  # aiohttp has no limit of its own
        return await super().start(connection)


def guarded_session(
    policy: AddressPolicy,
    most: int,
    connect: float,
    resolver: AbstractResolver | None,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None = None,
) -> aiohttp.ClientSession:
    """A session that connects only to addresses that `policy` allows. At most `most` connections at once; each must
    connect within `connect` seconds. `tls` replaces the usual certificates."""
    connector = aiohttp.TCPConnector(
        limit=most,
        resolver=resolver or Resolver(waits=connect),
        socket_factory=policy.socket,
        ssl=tls or True,
        # Don't reuse connections: a receiver that closes an idle one would delay an event by one back-off.
        force_close=True,
    )
    return aiohttp.ClientSession(
        connector=connector,
        response_class=_Response,
        timeout=aiohttp.ClientTimeout(total=None, connect=connect),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        read_bufsize=READ_BYTES,
        trust_env=False,  # a proxy would connect for us, to any address it can reach
    )


def in_words(error: Exception) -> str:
    """The error in words, without the URL, which may contain a secret of the receiver or an address."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NO_ADDRESS
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "The receiver's certificate is not valid for this host."
    if isinstance(error, aiohttp.ClientSSLError):
        return "No TLS connection could be made."
    if isinstance(error, aiohttp.ClientConnectorError):
        return NO_ADDRESS if isinstance(error.os_error, Unreachable) else "No connection could be made."
    if isinstance(error, aiohttp.InvalidURL):
        return "The URL cannot be used."
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "The connection was closed without an answer."
    if isinstance(error, aiohttp.ClientResponseError):
        return "The answer was not HTTP."
    return "The connection broke."
