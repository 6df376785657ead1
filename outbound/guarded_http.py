"""HTTP calls to addresses that anybody may have named: public ones only, no cookies, no redirects."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import AbstractResolver

from outbound.address_policy import AddressPolicy, Resolver, Unreachable
from outbound.aiohttp_private import BoundedResponse
from store.phrases import Phrase

READ_BYTES = 4096
"""What is read of an answer at a time."""
NO_ADDRESS = Phrase("The host's name leads to no address that this server may send to.")
NO_CONNECTION = Phrase("No connection could be made.")
NO_TLS = Phrase("No TLS connection could be made.")
WRONG_CERTIFICATE = Phrase("The receiver's certificate is not valid for this host.")
UNUSABLE_URL = Phrase("The URL cannot be used.")
CLOSED = Phrase("The connection was closed without an answer.")
NOT_HTTP = Phrase("The answer was not HTTP.")
BROKEN = Phrase("The connection broke.")
WRONG_STATUS = Phrase("The answer was %(status)s.")
REDIRECT = Phrase("The answer was %(status)s: redirects are not followed.")
ERRORS = (
    *(NO_ADDRESS, NO_CONNECTION, NO_TLS, WRONG_CERTIFICATE, UNUSABLE_URL, CLOSED, NOT_HTTP, BROKEN),
    *(WRONG_STATUS, REDIRECT),
)


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


def in_words(error: Exception) -> Phrase:
    """The error in words, without the URL, which may contain a secret of the receiver or an address."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NO_ADDRESS
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return WRONG_CERTIFICATE
    if isinstance(error, aiohttp.ClientSSLError):
        return NO_TLS
    if isinstance(error, aiohttp.ClientConnectorError):
        return NO_ADDRESS if isinstance(error.os_error, Unreachable) else NO_CONNECTION
    if isinstance(error, aiohttp.InvalidURL):
        return UNUSABLE_URL
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return CLOSED
    if isinstance(error, aiohttp.ClientResponseError):
        return NOT_HTTP
    return BROKEN
