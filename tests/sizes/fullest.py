"""People, apps and APIs with as much as the limits allow, or at least as much as several pages of each list show.

Texts are realistic: names of some 40 characters, addresses of the longest kind, the user agents that browsers send.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgpack

from handlers.core.devices import device_words
from store import keys
from store.accounts.identities import MOST_IDENTITIES, UpstreamIdentity
from store.accounts.signin.passkeys import MOST as MOST_PASSKEYS
from store.accounts.signin.passkeys import encode
from store.accounts.signin.sessions import ACTIVITY_KEPT, Session
from store.app_log import MOST as MOST_REFUSALS
from store.app_log import Cause
from store.apps.api_record import MAX_API_SCOPES, ApiRegistration, ApiScope
from store.apps.owners.roles import MOST_MEMBERS, Member
from store.apps.registration import MAX_REDIRECT_URIS, Registration
from store.credits.calls import CallEstimate, Hold
from store.credits.prices import TokenCounts
from store.names import SCOPES
from store.oauth.exchange.token_exchange import WantedToken
from store.results import Caller, Visitor
from store.webhooks.attempts import WebhookExchange, WebhookResponse
from store.webhooks.deliveries import WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.driver import Service
from tests.support.store.charges import PRICE

SESSIONS = 100
"""The most sessions of a person, unless the operator changes the setting."""
NAME, PERSON = "Wettertagebuch für Vereine und Schulen {:02}", "Augusta Ada King, Countess of Lovelace {:02}"
AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile Safari/604.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0",
    "Mozilla/5.0 (Linux; Android 15; SM-S931B) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile SamsungBrowser/29.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
)
NOW = 1_790_000_000_000
SPENDS = ("profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write")
URIS = tuple(f"https://wettertagebuch-{n:02}.example.com/oauth/callback" for n in range(MAX_REDIRECT_URIS))
HOME = "https://wettertagebuch.example.com/"


def network(number: int) -> str:
    """An address of the longest kind."""
    return f"2001:db8:85a3:{0xA000 + number:x}:8a2e:370:7334:{0xA000 + number:x}"


async def sign_in(store: Store, email: str, number: int) -> Session:
    """Another session of a person."""
    credentials = await store.people.credentials(email)
    assert credentials
    visitor = Visitor(network(number), device_words(AGENTS[number % len(AGENTS)]))
    session = store.sessions.open((await store.sessions.start(credentials, visitor)).cookie)
    assert session
    return session


async def fill_factors(store: Store, user: str) -> None:
    """Passkeys and accounts elsewhere."""
    person, rows = keys.person(user), dict[Any, Any]()
    for number in range(MOST_PASSKEYS):
        credential, name = encode(bytes([number]) * 32), f"Firefox auf dem Rechner im Arbeitszimmer {number:02}"
        rows[f"k:{credential}"] = msgpack.packb([b"key", name, ["internal", "hybrid"]])
        rows |= {f"n:{credential}": f"0 {NOW}", f"c:{credential}": str(NOW - number)}
    await store.client.hset(person["passkeys"], mapping=rows)
    linked = dict[Any, Any]()
    for number in range(MOST_IDENTITIES):
        one = UpstreamIdentity(f"https://login-{number}.example.com/tenant", f"{number:032x}")
        linked[one.name] = f"{one.text}\n{NOW} {NOW} augusta.ada.king.lovelace.{number}@example.com"
    await store.client.hset(person["identities"], mapping=linked)


async def fill_trails(store: Store, user: str, apps: list[Registration]) -> None:
    """The activity."""
    person = keys.person(user)
    for trail, event in (("audit", "consent_given"), ("activity", "token_exchanged")):
        lines = [
            f"{NOW - number} {event} {apps[number % len(apps)].client_id} {network(number)} Samsung Internet on Android"
            for number in range(ACTIVITY_KEPT)
        ]
        await store.client.set(person[trail], "".join(f"{line}\n" for line in lines))


async def connect(store: Store, user: str, number: int, *, budgets: bool) -> Registration:
    """An app, connected with every scope, with a limit and perhaps two budgets."""
    host = f"wettertagebuch-{number}.example.com"
    app = Registration(
        f"weather-diary-{number:03}",
        NAME.format(number),
        (f"https://{host}/callback",),
        SPENDS,
        homepage=f"https://{host}/",
    )
    await store.apps.create(app)
    await store.tokens.mint(user, app, SPENDS)
    facts: dict[Any, Any] = {"last_used_at": NOW, "spend_limit": 5_000_000}
    for one in ("credits", "llm-inference") if budgets else ():
        facts[f"budget:{one}"] = f"5000000 month 0 {NOW + 10**12} claude-sonnet-5 claude-opus-5"
    await store.client.hset(keys.grant(user, app.client_id), mapping=facts)
    return app


async def caller_of(store: Store, user: str, app: Registration) -> Caller:
    """An app with a token of the person, and room in the windows."""
    tokens = await store.tokens.mint(user, app, SPENDS)
    token = store.tokens.open_access(tokens.access_token)
    assert token
    await store.client.delete(keys.limit(user, "ai"))
    return Caller.of(token, SCOPES)


async def fill_credits(store: Store, user: str, apps: list[Registration]) -> None:
    """A ledger of several pages, calls in progress, and spending by app and model."""
    await store.credits.grant(user, 900_000_000, reason="A gift card of 900 dollars, number 1007")
    for number in range(60 + 32):
        estimate = CallEstimate(f"claude-sonnet-5-2026-{number % 30:02}", PRICE, 1, 249_999, 1, lasts=600_000)
        held = await store.calls.hold(await caller_of(store, user, apps[number % len(apps)]), "credits:spend", estimate)
        assert isinstance(held, Hold)
        if number < 60:
            await store.calls.settle(held, TokenCounts(90_000, 12_000, 40_000, 3_000, 500, web_search=3))


async def hand_on(store: Store, user: str, app: Registration, number: int) -> None:
    """Helpers of an app."""
    root = (await store.tokens.mint(user, app, SPENDS)).access_token
    for one in range(number):
        await store.client.delete(keys.limit(user, "oauth"))
        subject = await store.token_exchange.subject(app, root, "")
        name = f"Hilfsprogramm für die Wetterkarte {one:03}"
        wanted = WantedToken(scopes=SPENDS[2:], details="credits 5000 total *", name=name)
        await store.token_exchange.exchange(app, subject, wanted, None, "")


async def own_apis(store: Store, owner: str) -> ApiRegistration:
    """APIs of a person; the first one has the most scopes."""
    words = "What you ordered, when, and what it cost, for the last two years."
    scopes = tuple(
        ApiScope(f"orders:read-part-{n:02}", f"See the orders of the department {n:02}", words, care=True)
        for n in range(MAX_API_SCOPES)
    )
    first = ApiRegistration("https://orders.example.com/v1", "Orders of the weather diary", scopes, owner=owner)
    await store.apis.create(first)
    for n in range(40):
        api = ApiRegistration(f"https://orders-{n}.example.com/v1", NAME.format(n), scopes[:10], owner=owner)
        await store.apis.create(api)
    return first


async def own_app(service: Service, api: ApiRegistration) -> Registration:
    """An app of the person with a full team, log and list of deliveries, which uses every scope of an API."""
    store, owner = service.store, service.ada
    people = [
        await service.add_person(f"augusta.ada.king.lovelace.{n:02}@example.com", PERSON.format(n))
        for n in range(MOST_MEMBERS - 1)
    ]
    app = Registration(
        "own-app",
        NAME.format(99),
        URIS,
        SPENDS,
        homepage=HOME,
        api_scopes=tuple(f"{api.client_id}/{one.name}" for one in api.scopes),
        owner=owner,
        post_logout_redirect_uris=URIS,
        webhook_url=f"{HOME}latchkey/events",
        members=tuple(Member(one, "developer", NOW, owner) for one in people),
        device_grant=True,
    )
    begun, _ = store.webhooks.begun(app)
    app, _ = await store.apps.create(begun)
    await store.owned.give(owner, app.client_id)
    for n in range(MOST_REFUSALS):
        said = f"Wettertagebuch {n // 15} did not register the address that it wants to send you back to."
        sent = f"https://wettertagebuch-{n:02}.example.com/oauth/back"
        store.app_log.refused(app.client_id, Cause("authorize", "invalid_request", said, sent))
    await store.app_log.flush()
    for n in range(40):
        other = replace(begun, client_id=f"own-{n:02}", name=NAME.format(n), members=())
        await store.apps.create(replace(other, api_scopes=app.api_scopes))
        await store.owned.give(owner, other.client_id)
    for n in range(100):
        store.app_stats.spent(app.client_id, 40_000, f"claude-sonnet-5-2026-{n:02}", TokenCounts(900, 120, 40).counted)
    await store.app_stats.flush()
    await fill_deliveries(store, owner)
    return app


async def fill_deliveries(store: Store, user: str) -> None:
    """Deliveries of the own apps: waiting, and tried in vain with the longest requests and answers that are kept."""
    apps = (*["own-app"] * 60, *(f"own-{n:02}" for n in range(30)))
    for client in apps:
        event = WebhookEvent(new_event_id(), "grant.revoked", client, user, await store.apps.now(), {"reason": "ended"})
        assert await store.deliveries.enqueue(event)
    headers = tuple((f"X-Request-Header-{n:02}", "a value of a usual length, as proxies add it") for n in range(30))
    text = b'{"error": "The receiver is not available at the moment.", "status": 503}, ' * 60
    exchange = WebhookExchange(f"{HOME}latchkey/events", headers, text, WebhookResponse(headers, text), 1200)
    for one in await store.deliveries.claim(200, 30):
        await store.deliveries.settle(one.id, one.attempts, delivered=False, status=503, exchange=exchange)
