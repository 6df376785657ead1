"""Reads Client ID metadata documents: when an app first comes, and again when its document is over."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

from outbound.fetching import Fetcher
from store.apps.client_ids import inner_id
from store.apps.registration import Registration
from store.apps.self_registered.documents import (
    DOCUMENT_BYTES,
    FETCHING,
    STALE,
    check_document_url,
    fresh_for,
    read_document,
)
from store.clock import wall
from store.errors import StoreError
from store.lifetimes import REQUEST
from store.phrases import Phrase
from store.refused import Refused, reason_of
from store.wiring import Store

log = logging.getLogger("latchkey.apps")

TYPES = ("application/json", "application/*+json")
WAIT_SECONDS, LOOK_SECONDS = 8.0, 0.1
"""How long a request waits for the fetch of another process, and how often it looks."""
TOO_SLOW = Phrase("There was no answer in time.")
UNUSABLE = Phrase("Its document can’t be used.")
"""The reason that strangers get about an address in the operator's own networks."""


class DocumentAsker(NamedTuple):
    """Who causes a fetch, and what the document is checked against: the address that pays, and the server's base URL
    and name. `loopback`: whether documents may be on this machine."""

    address: str
    base_url: str
    own: str
    loopback: bool = False


class ClientDocuments:
    """Fetches one document once, whoever asks for it at the same time."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._loading: dict[str, asyncio.Task[Registration]] = {}

    async def current(self, store: Store, url: str, asker: DocumentAsker) -> Registration:
        """The app of the document at this URL, as it says now or said within its lifetime. Raises
        Refused("invalid_client_metadata", "invalid_redirect_uri", "rate_limited" or "temporarily_unavailable") with a
        reason for people, StoreUnavailable."""
        known = await store.apps.active(url)
        if known is not None and known.fresh_until > _now():
            return known
        try:
            check_document_url(url, loopback=asker.loopback)
        except ValueError as error:
            raise Refused("invalid_client_metadata", reason_of(error)) from None
        client_id = inner_id(url)
        task = self._loading.get(client_id)
        if task is None:
            task = self._loading[client_id] = asyncio.ensure_future(self._load(store, url, asker))
            task.add_done_callback(lambda done: self._loaded(client_id, done))
        return await asyncio.shield(task)

    async def standing(self, store: Store, app: Registration, asker: DocumentAsker) -> Registration:
        """The app of a token request. If its document is over and can't be read again, the last one counts for STALE
        more: people keep their apps while the app's site is down. Raises Refused("invalid_client"),
        StoreUnavailable."""
        if app.fresh_until > _now():
            return app
        try:
            return await self.current(store, app.document_url, asker)
        except Refused as refusal:
            if app.fresh_until + STALE > _now():
                return app
            raise Refused("invalid_client", refusal.description) from None

    def _loaded(self, client_id: str, task: asyncio.Task[Registration]) -> None:
        self._loading.pop(client_id, None)
        if not task.cancelled():
            task.exception()  # marks it as retrieved; the callers handle it

    async def _load(self, store: Store, url: str, asker: DocumentAsker) -> Registration:
        client_id, fetches, ends = inner_id(url), store.document_fetches, monotonic() + WAIT_SECONDS
        while not await fetches.begin(client_id):
            state = await fetches.state(client_id)
            if state not in ("", FETCHING):
                raise Refused("invalid_client_metadata", state)
            if monotonic() > ends:
                raise Refused("temporarily_unavailable", TOO_SLOW, retry_after=1)
            await asyncio.sleep(LOOK_SECONDS)
        try:
            store.apps.forget(client_id)
            known = await store.apps.active(url)
            if known is None or known.fresh_until <= _now():  # another process was quicker otherwise
                known = await self._fetch(store, url, asker, again=known is not None)
        except Refused as refusal:
            if refusal.code == "rate_limited":
                await fetches.ended(client_id)
            else:
                log.info("the document of a client could not be used: %s", refusal.description)
                store.security.note("registration_refused", client=client_id, detail="document")
                await fetches.failed(client_id, refusal.description)
            raise
        except BaseException:
            with suppress(StoreError):
                await fetches.ended(client_id)
            raise
        await fetches.ended(client_id)
        return known

    async def _fetch(self, store: Store, url: str, asker: DocumentAsker, *, again: bool) -> Registration:
        host = urlsplit(url).hostname or ""
        await store.limits.client_document(asker.address, host, again=again)
        found = await self._fetcher.fetch(url, DOCUMENT_BYTES, host, TYPES)
        now, lasts = _now(), fresh_for(found.headers)
        try:
            if found.error:
                raise Refused("invalid_client_metadata", found.error)
            read = read_document(found.text, url, now + lasts, asker.base_url, asker.own, loopback=asker.loopback)
        except Refused as refusal:
            if not found.inside or asker.loopback:
                raise
            # Anybody may ask, so the reason would tell anybody what answers in the operator's networks.
            log.info("the document at %s could not be used: %s", host, refusal.description)
            raise Refused("invalid_client_metadata", UNUSABLE) from None
        await save_document(store, read, now, lasts)
        app = await store.apps.active(url)
        if app is None:  # the operator has disabled it
            raise Refused("invalid_client_metadata", Phrase("The operator of this server has disabled this app."))
        return app


async def save_document(store: Store, read: Registration, now: int, lasts: int) -> None:
    """Keeps what a document says, read at `now` (epoch ms), for `lasts` ms, and for requests that begin within that
    time. A change is an event of the security log. Raises Refused("temporarily_unavailable"), StoreUnavailable."""
    kept = store.self_registered
    await kept.claim(read.client_id, lasts + REQUEST)
    before = await kept.put(read, now, lasts + REQUEST)
    if before is None:
        store.security.note("client_registered", client=read.client_id)
    elif before:
        store.security.note("client_changed", client=read.client_id)


def _now() -> int:
    return int(wall.time() * 1000)
