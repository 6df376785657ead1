"""Authorization requests that apps push before the browser arrives. RFC 9126."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from store import keys
from store.clock import wall
from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, fingerprint, new_id
from store.engine.scripts import Scripts
from store.lifetimes import MINUTE, PUSHED, REQUEST
from store.limits import network_of
from store.refused import Refused, SignedOut
from store.results import Window

URN = "urn:ietf:params:oauth:request_uri:"
MOST_PUSHED = 10_000
"""Requests of one app that wait at a time."""
ANSWER = MINUTE
"""How long a request can be reopened whose answer may be refused, in ms."""
MOST_ENDED, MOST_APPS = 100, 1000
"""Requests of one app whose rows wait to be dropped, and apps that have such requests."""


class PushedRequests:
    """Requests in the slot of their app. A request waits for its browser, and from the first arrival for the end of the
    sign-in in that browser alone."""

    def __init__(self, scripts: Scripts, sealer: Sealer) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._ended: OrderedDict[str, list[str]] = OrderedDict()

    async def push(self, client: str, params: str, window: Window, address: str | None = None) -> str:
        """Keeps a checked request, as a form. Returns its `request_uri`. `address`: where a push for a public app comes
        from. If too many of such an app wait, one of a network with many makes room. Raises Refused("rate_limited") if
        too many of another app wait, StoreUnavailable."""
        one = new_id()
        reply = await self._scripts.run(
            "push_request",
            keys.pushed(client, one),
            id=one,
            params=params,
            kept=PUSHED,
            longest=REQUEST,
            most=MOST_PUSHED,
            prefix=keys.pushed(client, "")["pushed"],
            ended=" ".join(self._ended.pop(client, ())),
            network=network_of(address) if address else "",
        )
        if reply.word == "full":
            seconds = max(1, -(-(reply.number("ends") - int(wall.time() * 1000)) // 1000))
            why = "Too many pushed requests of this app wait for their browsers."
            raise Refused("rate_limited", why, window=window, retry_after=seconds)
        return URN + self._sealer.seal(Token(TokenKind.PUSHED, NOBODY, client, one, 0))

    def id_of(self, client: str, request_uri: str) -> str:
        """The id in a `request_uri` of this app. No I/O. Raises Refused("invalid_request_uri") for any other text."""
        token = self._sealer.open(TokenKind.PUSHED, request_uri.removeprefix(URN))
        if token is None or token.client != client:
            raise gone()
        return token.id

    def browser_of(self, cookie: str | None) -> str | None:
        """The id of the browser with this sealed cookie; None for any other text. No I/O."""
        token = self._sealer.open(TokenKind.BROWSER, cookie) if cookie else None
        return token.id if token else None

    def cookie_of(self, browser: str) -> str:
        """The cookie of the browser with this id. No I/O."""
        return self._sealer.seal(Token(TokenKind.BROWSER, NOBODY, "", browser, 0))

    async def open(self, client: str, one: str, browser: str) -> str:
        """The request with this id, as it was pushed. `browser`: the id of the browser that arrives. Raises
        Refused("invalid_request_uri") if there is none, or if it is another browser's."""
        reply = await self._scripts.run(
            "open_pushed", keys.pushed(client, one), id=one, browser=fingerprint(browser), kept=REQUEST
        )
        if reply.word == "gone":
            raise gone()
        return reply.text("params")

    async def end(self, client: str, one: str, kept: int = 0) -> None:
        """Uses the request with this id up, before the browser goes back to the app. It can be reopened for `kept` ms.
        Raises Refused("invalid_request_uri") if it was used up already."""
        reply = await self._scripts.run("end_pushed", keys.pushed(client, one), id=one, kept=kept)
        if reply.word == "gone":
            raise gone()

    async def reopen(self, client: str, one: str) -> None:
        """Opens an ended request again, if it is still kept for that."""
        await self._scripts.run("reopen_pushed", keys.pushed(client, one), id=one, longest=REQUEST)

    @asynccontextmanager
    async def answered(self, client: str, one: str) -> AsyncIterator[None]:
        """Uses the request with this id up for the block, which decides on it: of several decisions one counts. It is
        open again if the block refuses. Does nothing for an empty id. Raises as `end`."""
        if one:
            await self.end(client, one, ANSWER)
        try:
            yield
        except (Refused, SignedOut):
            if one:
                await self.reopen(client, one)
            raise

    def end_later(self, client: str, one: str) -> bool:
        """Drops the request with this id when the app next pushes one here, or else it expires: only for a request that
        was opened for a browser of which nobody knows the id. False if too many wait for that. No I/O."""
        ended = self._ended.setdefault(client, [])
        if len(ended) >= MOST_ENDED:
            return False
        ended.append(one)
        self._ended.move_to_end(client)
        while len(self._ended) > MOST_APPS:
            self._ended.popitem(last=False)
        return True


def gone() -> Refused:
    """The refusal of a request that is over, was never there, or is another browser's."""
    return Refused("invalid_request_uri")
