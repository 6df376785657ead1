"""One POST to an untrusted receiver: limited in time and size, and to public addresses."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp.abc import AbstractResolver

from outbound.address_policy import AddressPolicy, calling
from outbound.guarded_http import READ_BYTES, REDIRECT, WRONG_STATUS, guarded_session, in_words
from outbound.webhooks.errors import GONE_FOR_GOOD, NO_ANSWER_IN_TIME, NO_CONNECTION_IN_TIME
from store.webhooks.attempts import WebhookResponse

CONNECT_SECONDS = 5.0
WHOLE_SECONDS = 15.0
READ_SECONDS = 1.0
GONE = 410
HEADERS = {
    "user-agent": "Latchkey-Webhooks",
    "content-type": "application/json",
    "accept-encoding": "identity",  # the app's owner reads the answer as it comes
}
"""The headers of each post, unless the message has others of these names."""


@dataclass(frozen=True, slots=True)
class PostResult:
    """The outcome of a POST: the status, or None without an answer; an error in words for the app's owner, or empty;
    the seconds until the receiver wants a retry, if it said so; the answer, if it came from a public address; and how
    long all of it took."""

    status: int | None
    error: str = ""
    retry_after: float | None = None
    answer: WebhookResponse | None = field(default=None, compare=False)
    milliseconds: int = field(default=0, compare=False)

    @property
    def delivered(self) -> bool:
        """Whether the receiver accepted the event."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more events."""
        return self.status == GONE


class Poster:
    """Posts events. At most `most` posts run at once; others wait."""

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
        """Makes one attempt, without following redirects. Raises nothing except cancellation."""
        began, called = time.monotonic(), list[str]()
        reset = calling.set(called)
        try:
            result = await self._attempt(url, headers, body)
        finally:
            calling.reset(reset)
        # An answer may be shown only if no address that was tried is in a network of the operator: it could be a page
        # of a service there that is nobody else's business.
        shown = result.answer if called and all(map(self._policy.is_internet, called)) else None
        return replace(result, answer=shown, milliseconds=round((time.monotonic() - began) * 1000))

    async def _attempt(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        try:
            async with asyncio.timeout(self._whole):
                response = await self._opened().post(url, data=body, headers=headers, allow_redirects=False)
        except aiohttp.ConnectionTimeoutError:
            return PostResult(None, NO_CONNECTION_IN_TIME.filled(seconds=f"{self._connect:g}"))
        except TimeoutError:
            return PostResult(None, NO_ANSWER_IN_TIME.filled(seconds=f"{self._whole:g}"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return PostResult(None, in_words(error))
        try:
            read = bytearray()
            # The status is the answer, even if the body is endless, slow or broken.
            with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with asyncio.timeout(READ_SECONDS):
                    await _read(response, read)
            fields = tuple((_text(name), _text(value)) for name, value in response.raw_headers)
            return replace(_outcome(response), answer=WebhookResponse(fields, bytes(read)))
        finally:
            response.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = guarded_session(self._policy, self._most, self._connect, self._resolver, HEADERS)
        return self._session

    async def close(self) -> None:
        """Closes its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read(response: aiohttp.ClientResponse, read: bytearray) -> None:
    while (left := READ_BYTES - len(read)) > 0 and (piece := await response.content.read(left)):
        read += piece


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")


def _outcome(response: aiohttp.ClientResponse) -> PostResult:
    status = response.status
    if 200 <= status < 300:
        return PostResult(status)
    if 300 <= status < 400:
        return PostResult(status, REDIRECT.filled(status=str(status)))
    if status == GONE:
        return PostResult(status, GONE_FOR_GOOD)
    return PostResult(
        status, WRONG_STATUS.filled(status=str(status)), _seconds(response.headers.get("Retry-After", ""))
    )


def _seconds(text: str) -> float | None:
    """The seconds in a Retry-After (RFC 9110 10.2.3); None if it is invalid."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # OverflowError: the number is too large
        return None
    # A date without a zone has an obsolete form of HTTP's; all of these are in UTC.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # The host's time: a receiver that did not travel writes this date by its own clock.
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
