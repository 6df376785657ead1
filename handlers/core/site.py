"""What every handler needs to know of its server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tornado.httputil import HTTPServerRequest

from handlers.core.brand.brand import Brand
from handlers.core.brand.overrides import Templates, ours
from handlers.core.client_address import Network, client_address, parse_address
from handlers.core.concurrency import ConcurrencyLimit
from handlers.core.live.watches import Watches
from handlers.core.long.bodies import LongBodies
from handlers.core.pictures.image_upload import ImageUpload
from handlers.core.reading import Readers
from handlers.core.words.languages import Languages, shipped
from observability.metrics.measures import Measures
from outbound.address_policy import AddressPolicy
from outbound.ai.echo import echo_model
from outbound.ai.models import Models
from outbound.breaches import Breaches
from outbound.client_documents import ClientDocuments, DocumentAsker
from outbound.client_keys import ClientKeys
from outbound.fetching import Fetcher
from outbound.identity.providers import Providers
from outbound.identity.sign_in import SignInElsewhere
from outbound.issuer_keys import IssuerKeys
from outbound.mail.inbox import Inbox
from outbound.mail.mailer import Mailer, Spool
from outbound.payments.provider import PaymentProvider
from store.accounts.signin.passkeys import RelyingParty, relying_party_of
from store.errors import StoreUnavailable
from store.oauth.assertions.issuers import TrustedIssuers
from store.webhooks.urls import is_loopback_url
from store.wiring import Store

# Peers whose trust is cached. Bounded, because there are many strangers.
_MOST_PEERS = 1000


class ServerFacts(NamedTuple):
    """What a process knows of its server: `settings` and `explained`, by name, as `settings/in_force.py` makes
    them."""

    version: str = ""
    workers: int = 1
    settings: Sequence[Mapping[str, Any]] = ()
    explained: Mapping[str, Mapping[str, Any]] = {}


class DemoFacts(NamedTuple):
    """What the pages of a demo show: the client id of its app, and the account that everybody may use."""

    client_id: str
    email: str
    password: str


@dataclass(frozen=True, slots=True)
class Site:
    """`base_url` is an origin without a trailing slash. `max_body` and `max_ai_request` are in bytes. In seconds:
    `session_lifetime`; `hold_margin`, how much longer a hold lives than the longest call; `scatter`, the longest random
    delay of a mail whose timing would reveal who has an account."""

    store: Store
    base_url: str
    signup: str = "open"
    allowed_domains: tuple[str, ...] = ()
    app_registration: str = "everybody"
    apps_per_person: int = 20
    require_pkce: bool = False
    dpop_nonce_required: bool = False
    dynamic_registration: str = "off"
    mcp: Any = None
    """The MCP server, of `handlers/mcp/protocol.py`; None if it is off."""
    mcp_origins: tuple[str, ...] = ()
    """Origins of pages, in addition to this server's, whose scripts may use the MCP server."""
    trusted_proxies: tuple[Network, ...] = ()
    hsts_subdomains: bool = False
    max_body: int = 65536
    session_lifetime: int = 30 * 86400
    max_ai_request: int = 2**20
    models: Models = field(default_factory=lambda: Models((echo_model(),)))
    hold_margin: float = 15.0
    scatter: float = 0.0
    mail: Mailer = field(default_factory=lambda: Mailer(Spool(None), "noreply@localhost", confirms=False))
    inbox: Inbox | None = None
    """The mails of a demo."""
    demo: DemoFacts | None = None
    """None for every other server."""
    payments: PaymentProvider | None = None
    purchases: tuple[int, int] = (5_000_000, 500_000_000)
    """The least and the most that a person may pay for credits at once, in micro-dollars."""
    breaches: Breaches = field(default_factory=lambda: Breaches(""))
    brand: Brand = field(default_factory=Brand)
    brand_before: Brand = field(default_factory=Brand)
    """The brand before the last reload: pages that were sent with it still load its files."""
    templates: Templates = field(default_factory=ours)
    languages: Languages = field(default_factory=shipped)
    readers: Readers = field(default_factory=Readers)
    image_upload: ImageUpload = field(default_factory=ImageUpload)
    long_bodies: LongBodies = field(default_factory=LongBodies)
    ai_calls: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(2048))
    downloads: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(32, 2))
    watches: Watches = field(default_factory=Watches)
    """Pages that stay open."""
    fetcher: Fetcher = field(default_factory=lambda: Fetcher(AddressPolicy()))
    """Fetches the files that prove apps' domains."""
    client_documents: ClientDocuments = field(default_factory=lambda: ClientDocuments(Fetcher(AddressPolicy())))
    client_keys: ClientKeys = field(default_factory=lambda: ClientKeys(Fetcher(AddressPolicy())))
    issuers: TrustedIssuers = field(default_factory=TrustedIssuers)
    """Identity providers whose assertions connect apps."""
    issuer_keys: IssuerKeys = field(default_factory=lambda: IssuerKeys(Fetcher(AddressPolicy())))
    providers: Providers = field(default_factory=Providers)
    """Identity providers with which people sign in."""
    elsewhere: SignInElsewhere = field(default_factory=SignInElsewhere)
    here_alone: bool = True
    """Whether only this machine is served, whatever the base URL is."""
    facts: Callable[[], ServerFacts] = ServerFacts
    """Asked at each request: a reload changes settings."""
    posts_events: bool = True
    wake_webhooks: Callable[[], None] = lambda: None
    """Tells the webhook sender that an event waits."""
    tasks: set[asyncio.Future[None]] = field(default_factory=set)
    measures: Measures = field(default_factory=Measures)
    endings: set[Callable[[], None]] = field(default_factory=set)
    """Callbacks that end requests without a client, once the server no longer waits for them."""
    peers: dict[str, bool] = field(default_factory=dict)
    """Whether each known peer is a trusted proxy."""

    def asker(self, address: str) -> DocumentAsker:
        """Who causes the fetch of a metadata document."""
        return DocumentAsker(address, self.base_url, self.brand.name, self.on_loopback)

    def may_sign_up(self, email: str) -> bool:
        """Whether accounts with addresses of this domain may be created."""
        return not self.allowed_domains or email.partition("@")[2] in self.allowed_domains

    @property
    def mcp_scopes(self) -> tuple[str, ...]:
        """The scopes that the metadata of the MCP server name; empty if it is off."""
        return tuple(self.mcp.scopes) if self.mcp else ()

    @property
    def secure(self) -> bool:
        """Whether browsers reach this server over TLS."""
        return self.base_url.startswith("https://")

    @property
    def hsts(self) -> str:
        """The value of `Strict-Transport-Security` (RFC 6797 6.1); empty if browsers use plain http."""
        if not self.secure:
            return ""
        return "max-age=31536000; includeSubDomains" if self.hsts_subdomains else "max-age=31536000"

    @property
    def on_loopback(self) -> bool:
        """Whether this server is a developer's own, which no other machine reaches."""
        return self.here_alone and is_loopback_url(self.base_url)

    @property
    def demo_inbox(self) -> Inbox | None:
        """The mails of a demo; None for every other server, and once a reload names a mail server."""
        return None if self.mail.confirms else self.inbox

    @property
    def relying_party(self) -> RelyingParty | None:
        """The relying party for passkeys; None if browsers offer none for this address."""
        return relying_party_of(self.base_url)

    def in_background(
        self, work: Coroutine[Any, Any, None], *, within: float = 0.0, room: AbstractContextManager[Any] | None = None
    ) -> None:
        """Runs work in the background; shutdown waits for it. Stops if the store is away. Starts after a random delay
        of up to `within` seconds: an immediate start would delay the next request, and that delay would reveal the
        work. Leaves `room` at the end."""

        async def quiet() -> None:
            try:
                with room or nullcontext():
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
        """Whether the peer of a connection is a trusted proxy. Caches the result: the peers behind proxies are few."""
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
        """The client's address. Only trusted proxies can change it. Computed once for each request."""
        found: str | None = getattr(request, "latchkey_address", None)
        if found is None:
            forwarded = ",".join(request.headers.get_list("X-Forwarded-For"))
            found = client_address(request.remote_ip or "", forwarded, self.trusted_proxies)
            request.latchkey_address = found  # type: ignore[attr-defined]  # our own attribute
        return found

    def cookie(self, name: str) -> str:
        """The full name of a cookie. Over TLS it has the prefix that keeps other hosts from setting it (RFC
        6265bis)."""
        return f"__Host-latchkey_{name}" if self.secure else f"latchkey_{name}"
