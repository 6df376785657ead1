"""One POST to a receiver that nobody vouches for: bounded in time and size, and to public addresses alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp.abc import AbstractResolver

from outbound.address_policy import AddressPolicy
from outbound.guarded_http import READ_BYTES, guarded_session, in_words

CONNECT_SECONDS = 5.0
WHOLE_SECONDS = 15.0
READ_SECONDS = 1.0
GONE = 410


@dataclass(frozen=True, slots=True)
class PostResult:
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


class Poster:
    """Posts. `most` are under way at once, others wait."""

    def __init__(
        self,
        policy: AddressPolicy,
        most: int,
        *,
        connect: float = CONNECT_SECONDS,
        whole: float = WHOLE_SECONDS,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._policy = policy
        self._most = most
        self._connect = connect
        self._whole = whole
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        """One attempt, with no redirect followed. Raises nothing but what cancels it."""
        try:
            async with asyncio.timeout(self._whole):
                response = await self._opened().post(url, data=body, headers=headers, allow_redirects=False)
        except aiohttp.ConnectionTimeoutError:
            return PostResult(None, f"No connection within {self._connect:g} seconds.")
        except TimeoutError:
            return PostResult(None, f"No answer within {self._whole:g} seconds.")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return PostResult(None, in_words(error))
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
            self._session = guarded_session(
                self._policy,
                self._most,
                self._connect,
                self._resolver,
                {"user-agent": "Latchkey-Webhooks", "content-type": "application/json"},
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


def _answer(response: aiohttp.ClientResponse) -> PostResult:
    status = response.status
    if 200 <= status < 300:
        return PostResult(status)
    if 300 <= status < 400:
        return PostResult(status, f"The answer was {status}: a redirect is not followed.")
    if status == GONE:
        return PostResult(status, "The answer was 410: the receiver wants no more of this, so it is not sent again.")
    return PostResult(status, f"The answer was {status}.", _seconds(response.headers.get("Retry-After", "")))


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
