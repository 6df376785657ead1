"""One POST to a receiver that nobody vouches for: bounded in time and size, and to public addresses alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

from outbound.reachable import Reach, Resolver, Unreachable

CONNECT_SECONDS = 5.0
WHOLE_SECONDS = 15.0
READ_SECONDS = 1.0
READ_BYTES = 4096
"""What is read of an answer, to let a receiver finish that writes one; it is thrown away."""
INTERIM = 8
"""Interim answers (1xx) before the one that counts. A receiver that sends them without end would have this server read
them, some thousands in one piece, for as long as a post may take."""
NO_ADDRESS = "The host's name leads to no address that may be posted to."
GONE = 410


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a POST: the status, or None where there was no answer; in words what went wrong, for the owner of
    the app, empty where nothing did; after how many seconds the receiver wants to be asked again, where it said."""

    status: int | None
    error: str = ""
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more of it."""
        return self.status == GONE


class _Response(aiohttp.ClientResponse):
    """One that gives up on a receiver of too many interim answers."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """As in aiohttp."""
        protocol = connection.protocol
        assert protocol is not None
        read, left = protocol.read, INTERIM

        async def counted() -> Any:
            nonlocal left
            if left < 0:
                raise HttpProcessingError(code=502, message="interim answers without end")
            left -= 1
            return await read()

        protocol.read = counted  # type: ignore[method-assign]  # aiohttp has no bound of its own
        return await super().start(connection)


class Poster:
    """Posts. `most` are under way at once, others wait."""

    def __init__(
        self,
        reach: Reach,
        most: int,
        *,
        connect: float = CONNECT_SECONDS,
        whole: float = WHOLE_SECONDS,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._reach = reach
        self._most = most
        self._connect = connect
        self._whole = whole
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One attempt, with no redirect followed. Raises nothing but what cancels it."""
        try:
            async with asyncio.timeout(self._whole):
                response = await self._opened().post(url, data=body, headers=headers, allow_redirects=False)
        except aiohttp.ConnectionTimeoutError:
            return Answer(None, f"No connection within {self._connect:g} seconds.")
        except TimeoutError:
            return Answer(None, f"No answer within {self._whole:g} seconds.")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(None, _in_words(error))
        try:
            # The status is the answer: a body that is endless, slow or broken takes nothing from it.
            with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with asyncio.timeout(READ_SECONDS):
                    await _read(response)
            return _answer(response)
        finally:
            response.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._most,
                resolver=self._resolver or Resolver(),
                socket_factory=self._reach.socket,
                # A receiver that closes a connection which waited would make an event late by one back-off.
                force_close=True,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                response_class=_Response,
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"user-agent": "Latchkey-Webhooks", "content-type": "application/json"},
                read_bufsize=READ_BYTES,
                trust_env=False,  # a proxy would connect in our place, to whatever it can reach
            )
        return self._session

    async def close(self) -> None:
        """Drops its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read(response: aiohttp.ClientResponse) -> None:
    left = READ_BYTES
    while left > 0 and (piece := await response.content.read(left)):
        left -= len(piece)


def _answer(response: aiohttp.ClientResponse) -> Answer:
    status = response.status
    if 200 <= status < 300:
        return Answer(status)
    if 300 <= status < 400:
        return Answer(status, f"The answer was {status}: a redirect is not followed.")
    if status == GONE:
        return Answer(status, "The answer was 410: the receiver wants no more of this, so it is not sent again.")
    return Answer(status, f"The answer was {status}.", _seconds(response.headers.get("Retry-After", "")))


def _seconds(text: str) -> float | None:
    """The seconds that a Retry-After asks for (RFC 9110 10.2.3); None for what is none."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the second is what it says of numbers beyond all bounds
        return None
    # A date without a zone is one of HTTP's obsolete forms, in UTC as all of them.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _in_words(error: Exception) -> str:
    """What went wrong, without the URL, which may hold a secret of the receiver's, or an address."""
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
