"""Fetches a small text file from an address that an app's owner has named."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import aiohttp
from aiohttp.abc import AbstractResolver

from observability.spans import outgoing
from outbound.address_policy import AddressPolicy, Resolver, asking, calling
from outbound.guarded_http import REDIRECT, WRONG_STATUS, guarded_session, in_words
from store.keyed_semaphore import FairSemaphore
from store.phrases import Phrase

AT_ONCE = 8
PLAIN = ("text/plain",)
OF_CACHES = ("cache-control", "expires", "date", "age")
CONNECT_SECONDS, WHOLE_SECONDS = 5.0, 10.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The text of a file, or the reason why there is none. `answered`: the server gave that answer, and not because of
    its own trouble (5xx, 429), so a retry would give the same. `headers`: those about caching, by lower-case names.
    `inside`: an address in a network of the operator was called; what answers there is nobody else's business."""

    text: bytes
    error: str = ""
    answered: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    inside: bool = False


class Fetcher:
    """Fetches a few files at once, at most two of one person; others wait within their time. `whole` is the limit in
    seconds for one fetch."""

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        whole: float = WHOLE_SECONDS,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._whole = whole
        self._resolver = resolver or Resolver(waits=CONNECT_SECONDS)
        self._tls = tls
        self._semaphore = FairSemaphore(AT_ONCE)

    async def fetch(self, url: str, most: int, person: str = "", types: Sequence[str] = PLAIN) -> Fetched:
        """A text of one of these media `types` and of at most `most` bytes, for a `person`, without following
        redirects. Raises nothing except cancellation."""
        called = list[str]()
        reset = calling.set(called)
        try:
            found = await self._fetch_for(person or url, url, most, types)
        finally:
            calling.reset(reset)
        return replace(found, inside=not all(map(self._policy.is_internet, called)))

    async def _fetch_for(self, payer: str, url: str, most: int, types: Sequence[str]) -> Fetched:
        for_whom = asking.set(payer)
        try:
            async with asyncio.timeout(self._whole), self._semaphore.place(payer):
                with outgoing(url):
                    return await self._fetch(url, most, types)
        except TimeoutError:
            return Fetched(
                b"",
                Phrase("There was no complete answer within %(seconds)s seconds.", seconds=f"{self._whole:g}"),
                answered=False,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Fetched(b"", in_words(error), answered=False)
        finally:
            asking.reset(for_whom)

    async def _fetch(self, url: str, most: int, types: Sequence[str]) -> Fetched:
        accepted = ", ".join(one for one in types if "*" not in one)
        headers = {"user-agent": "Latchkey-Verification", "accept": accepted, "accept-encoding": "identity"}
        async with (
            guarded_session(self._policy, 1, CONNECT_SECONDS, self._resolver, headers, self._tls) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if 300 <= response.status < 400:
                return Fetched(b"", REDIRECT.filled(status=str(response.status)))
            if response.status != 200:
                passing = response.status >= 500 or response.status == 429
                return Fetched(b"", WRONG_STATUS.filled(status=str(response.status)), answered=not passing)
            # HTML proves nothing: some sites answer every path with a page.
            if not _is_among(response.content_type, types) or "content-encoding" in response.headers:
                wanted = " or ".join(types)
                if types == PLAIN:
                    return Fetched(
                        b"", Phrase("The answer was not plain text (Content-Type: %(types)s).", types=wanted)
                    )
                return Fetched(
                    b"", Phrase("The answer was not of the right type (Content-Type: %(types)s).", types=wanted)
                )
            text = b""
            while len(text) <= most and (piece := await response.content.read(most + 1 - len(text))):
                text += piece
            response.close()
            about = {name: response.headers[name] for name in OF_CACHES if name in response.headers}
            return (
                Fetched(text, headers=about)
                if len(text) <= most
                else Fetched(b"", Phrase("The file has more than %(most)s bytes.", most=str(most)))
            )


def _is_among(kind: str, types: Sequence[str]) -> bool:
    """Whether a media type is one of these, of which one may be all with a suffix: `application/*+json`."""
    patterns = (re.escape(one).replace(r"\*", "[a-z0-9.-]+") for one in types)
    return any(re.fullmatch(pattern, kind) for pattern in patterns)
