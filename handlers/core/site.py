"""What every handler needs to know of the server it runs in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from tornado.httputil import HTTPServerRequest

from handlers.core.client_address import Network, client_address, parse_address
from handlers.core.concurrency import ConcurrencyLimit
from handlers.core.image_upload import ImageUpload
from handlers.core.reading import Readers
from observability.metrics.measures import Measures
from outbound.address_policy import AddressPolicy
from outbound.ai.echo import echo_model
from outbound.ai.models import Models
from outbound.breaches import Breaches
from outbound.fetching import Fetcher
from outbound.mail.mailer import Mailer, Spool
from store.accounts.signin.passkeys import RelyingParty, relying_party_of
from store.errors import StoreUnavailable
from store.webhooks.urls import is_loopback_url
from store.wiring import Store

# Of which is known whether they are proxies: strangers are many.
_MOST_PEERS = 1000


@dataclass(frozen=True, slots=True)
class Site:
    """`base_url` is an origin without a trailing slash; `max_body` and `max_ai_request` are in bytes;
    `session_lifetime` is in seconds, and so are `hold_margin`, by which a hold outlives the longest call, and
    `scatter`, within which a mail is begun whose time would tell who has an account."""

    store: Store
    base_url: str
    signup: str = "open"
    app_registration: str = "everybody"
    apps_per_person: int = 20
    require_pkce: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    hsts_subdomains: bool = False
    max_body: int = 65536
    session_lifetime: int = 30 * 86400
    max_ai_request: int = 2**20
    models: Models = field(default_factory=lambda: Models((echo_model(),)))
    hold_margin: float = 15.0
    scatter: float = 0.0
    mail: Mailer = field(default_factory=lambda: Mailer(Spool(None), "noreply@localhost", confirms=False))
    breaches: Breaches = field(default_factory=lambda: Breaches(""))
    readers: Readers = field(default_factory=Readers)
    image_upload: ImageUpload = field(default_factory=ImageUpload)
    ai_calls: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(2048))
    downloads: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(32, 2))
    fetcher: Fetcher = field(default_factory=lambda: Fetcher(AddressPolicy()))
    """Fetches the files by which apps prove domains."""
    here_alone: bool = True
    """Nobody but this machine is served, whatever the base URL is."""
    posts_events: bool = True
    wake_webhooks: Callable[[], None] = lambda: None
    """Says to whatever posts events that there is one."""
    tasks: set[asyncio.Future[None]] = field(default_factory=set)
    measures: Measures = field(default_factory=Measures)
    endings: set[Callable[[], None]] = field(default_factory=set)
    """What ends the requests that go on without their client, when the server waits for them no longer."""
    peers: dict[str, bool] = field(default_factory=dict)
    """Whether they are trusted proxies, of those that were asked about."""

    @property
    def secure(self) -> bool:
        """Whether browsers reach this server over TLS."""
        return self.base_url.startswith("https://")

    @property
    def hsts(self) -> str:
        """The value of `Strict-Transport-Security` (RFC 6797 6.1); empty where browsers use plain http."""
        if not self.secure:
            return ""
        return "max-age=31536000; includeSubDomains" if self.hsts_subdomains else "max-age=31536000"

    @property
    def on_loopback(self) -> bool:
        """Whether this server is a developer's own, which nobody else reaches."""
        return self.here_alone and is_loopback_url(self.base_url)

    @property
    def relying_party(self) -> RelyingParty | None:
        """Who asks browsers for passkeys; None where they offer none for this address."""
        return relying_party_of(self.base_url)

    def in_background(
        self, work: Coroutine[Any, Any, None], *, within: float = 0.0, held: AbstractContextManager[Any] | None = None
    ) -> None:
        """Does what no request waits for; the drain does. A store that is away ends it. It begins at a time of chance
        `within` so many seconds: begun at once, it would hold up the next request, whose time would tell of it. `held`
        is left behind it."""

        async def quiet() -> None:
            try:
                with held or nullcontext():
                    if within:
                        await asyncio.sleep(within * random.getrandbits(20) / 2**20)
                    with suppress(StoreUnavailable):
                        await work
            finally:
                work.close()

        task = asyncio.ensure_future(quiet())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def trusts(self, peer: str | None) -> bool:
        """Whether the peer of a connection is a trusted proxy. There are few: each is looked for in the networks
        once."""
        if not self.trusted_proxies or peer is None:
            return False
        found = self.peers.get(peer)
        if found is None:
            address = parse_address(peer)
            found = address is not None and any(address in network for network in self.trusted_proxies)
            if len(self.peers) < _MOST_PEERS:
                self.peers[peer] = found
        return found

    def address(self, request: HTTPServerRequest) -> str:
        """The client's address, through trusted proxies only. It is found once for each request."""
        found: str | None = getattr(request, "latchkey_address", None)
        if found is None:
            forwarded = ",".join(request.headers.get_list("X-Forwarded-For"))
            found = client_address(request.remote_ip or "", forwarded, self.trusted_proxies)
            request.latchkey_address = found  # type: ignore[attr-defined]  # a place of our own
        return found

    def cookie(self, name: str) -> str:
        """The name of a cookie: over TLS with the prefix that keeps other hosts from setting it (RFC 6265bis)."""
        return f"__Host-latchkey_{name}" if self.secure else f"latchkey_{name}"
