"""HTTP calls to addresses that anybody may have named: public ones only, no cookies, no redirects."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractResolver

from outbound.address_policy import AddressPolicy, Resolver, Unreachable
from outbound.aiohttp_private import BoundedResponse

READ_BYTES = 4096
"""What is read of an answer at a time."""
NO_ADDRESS = "The host's name leads to no address that may be posted to."


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
        response_class=BoundedResponse,
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
