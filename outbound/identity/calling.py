"""Calls to identity providers: one request, one JSON answer, bounded in bytes and time, without redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp.abc import AbstractResolver

from observability.spans import outgoing
from outbound.address_policy import AddressPolicy, Resolver, asking
from outbound.guarded_http import guarded_session, in_words
from store.json_text import NotJSON, decode_strictly
from store.keyed_semaphore import FairSemaphore

LONGEST_ANSWER = 64 * 2**10
DEEPEST = 8
CONNECT_SECONDS, WHOLE_SECONDS = 5.0, 10.0
AT_ONCE = 16
"""Calls at once in a process, shared fairly among the addresses that people come from."""
JSON = "application/json"


class ProviderAway(Exception):
    """The provider does not answer, or has trouble of its own. The text is for the log."""


class ProviderRefused(Exception):
    """The provider's answer is not accepted. The text is a word for the log: never from the provider."""


class ProviderCaller:
    """Calls the endpoints of providers."""

    def __init__(self, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver or Resolver(waits=CONNECT_SECONDS)
        self._semaphore = FairSemaphore(AT_ONCE)

    async def call(
        self,
        policy: AddressPolicy,
        whose: str,
        url: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """The status (200 or one from 400 to 499) and the JSON of an answer; `form` makes it a POST. `whose`: places
        are shared fairly among the addresses that people come from. Raises ProviderAway, ProviderRefused for an answer
        that is too long or no JSON."""
        for_whom = asking.set(whose)
        try:
            async with asyncio.timeout(WHOLE_SECONDS), self._semaphore.place(whose):
                with outgoing(url):
                    return await self._call(policy, url, form, headers or {})
        except TimeoutError:
            raise ProviderAway(f"no whole answer within {WHOLE_SECONDS:g} seconds") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ProviderAway(str(in_words(error))) from None
        finally:
            asking.reset(for_whom)

    async def _call(
        self, policy: AddressPolicy, url: str, form: Mapping[str, str] | None, headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        sent = {"user-agent": "Latchkey", "accept": JSON, "accept-encoding": "identity", **headers}
        body = None if form is None else urlencode(form).encode()
        if body is not None:
            sent["content-type"] = "application/x-www-form-urlencoded"
        async with (
            guarded_session(policy, 1, CONNECT_SECONDS, self._resolver, sent) as session,
            session.request("GET" if body is None else "POST", url, data=body, allow_redirects=False) as response,
        ):
            if response.status >= 500 or response.status == 429:
                raise ProviderAway(f"status {response.status}")
            if response.status != 200 and not 400 <= response.status < 500:
                raise ProviderRefused("status")
            text = b""
            while len(text) <= LONGEST_ANSWER and (piece := await response.content.read(LONGEST_ANSWER + 1)):
                text += piece
            response.close()
        if len(text) > LONGEST_ANSWER:
            raise ProviderRefused("too_long")
        try:
            return response.status, decode_strictly(text, DEEPEST)
        except NotJSON:
            raise ProviderRefused("answer") from None
