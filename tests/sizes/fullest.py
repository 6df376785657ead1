"""A person with as much as the limits allow: sessions, passkeys, connected apps and what they handed on, documents,
credits, activity, and an own app with a full log and team."""

from __future__ import annotations

import json
from typing import Any

import msgpack

from store import keys
from store.accounts.identities import MOST_IDENTITIES, UpstreamIdentity
from store.accounts.signin.passkeys import MOST as MOST_PASSKEYS
from store.accounts.signin.passkeys import encode
from store.accounts.signin.sessions import ACTIVITY_KEPT, Session
from store.app_log import MOST as MOST_REFUSALS
from store.app_log import Cause
from store.apps.api_record import MAX_API_SCOPES, ApiRegistration, ApiScope
from store.apps.owners.invitations import MOST_OPEN
from store.apps.owners.roles import MOST_MEMBERS, Member
from store.apps.registration import MAX_REDIRECT_URIS, Registration
from store.credits.calls import CallEstimate
from store.credits.prices import TokenCounts
from store.names import SCOPES
from store.oauth.budgets import Budget, written
from store.oauth.exchange.token_exchange import WantedToken
from store.results import Caller, Visitor
from store.webhooks.deliveries import WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.driver import EMAIL, PASSWORD, Service
from tests.support.store.charges import PRICE
from tests.support.store.many_documents import stock

APPS, SESSIONS, COLLECTIONS, OWN_APPS = 200, 100, 1000, 20
"""Most apps, sessions and collections, as the settings have them where nobody changes them."""
HANDED_ON = 100
NAME = "Wettertagebuch für Vereine und Schulen {:02}"
"""The name of an app, of about 40 characters."""
AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0",
    "Mozilla/5.0 (Linux; Android 15; SM-S931B) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile SamsungBrowser/29.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
)
NOW = 1_790_000_000_000
SPENDS = ("profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write")


def network(number: int) -> str:
    """An address of the longest kind."""
    return f"2001:db8:85a3:{number:04x}:8a2e:370:7334:{number:04x}"


async def session_of(store: Store, email: str, number: int) -> Session:
    """Another session of a person."""
    credentials = await store.people.credentials(email)
    assert credentials
    visitor = Visitor(network(number), AGENTS[number % len(AGENTS)])
    session = store.sessions.open((await store.sessions.start(credentials, visitor)).cookie)
    assert session
    return session


async def fill_factors(store: Store, user: str) -> None:
    """Passkeys and accounts elsewhere."""
    person, rows = keys.person(user), {}
    for number in range(MOST_PASSKEYS):
        credential = encode(bytes([number]) * 32)
        name = f"Firefox auf dem Rechner im Arbeitszimmer {number:02}"
        rows[f"k:{credential}"] = msgpack.packb([b"key", name, ["internal", "hybrid"]])
        rows[f"n:{credential}"] = f"0 {NOW}"
        rows[f"c:{credential}"] = str(NOW - number)
    await store.client.hset(person["passkeys"], mapping=rows)
    linked = {}
    for number in range(MOST_IDENTITIES):
        one = UpstreamIdentity(f"https://login-{number}.example.com/tenant", f"{number:032x}")
        linked[one.name] = f"{one.text}\n{NOW} {NOW} augusta.ada.king.lovelace.{number}@example.com"
    await store.client.hset(person["identities"], mapping=linked)


async def fill_trails(store: Store, user: str, clients: list[str]) -> None:
    """The activity."""
    person = keys.person(user)
    for trail, event in (("audit", "consent_given"), ("activity", "documents_exported")):
        lines = [
            f"{NOW - number} {event} {clients[number % len(clients)]} {network(number)} Samsung Internet on Android\n"
            for number in range(ACTIVITY_KEPT)
        ]
        await store.client.set(person[trail], "".join(lines))


async def connect(store: Store, user: str, number: int) -> Registration:
    """An app, connected with every scope, two budgets and some documents."""
    name, host = NAME.format(number), f"wettertagebuch-{number}.example.com"
    app = Registration(
        f"weather-diary-{number:03}", name, (f"https://{host}/callback",), SPENDS, homepage=f"https://{host}/"
    )
    await store.apps.create(app)
    await store.tokens.mint(user, app, SPENDS)
    grant = keys.grant(user, app.client_id)
    await store.client.hset(grant, mapping={"last_used_at": NOW, "spend_limit": 5_000_000})
    for one in ("credits", "llm-inference") if number >= 40 else ():
        await store.client.hset(grant, f"budget:{one}", f"5000000 month 0 {NOW + 10**12} claude-sonnet-5 claude-opus-5")
    usage = keys.hosted(user, app.client_id)["usage"]
    await store.client.hset(usage, mapping={"documents": 12, "bytes": 123_456, "collections": 1})
    return app


async def fill_credits(store: Store, user: str, apps: list[Registration]) -> None:
    """A ledger of several pages, calls in progress, and days of spending by app and model."""
    await store.credits.grant(user, 900_000_000, reason="A gift card of 900 dollars, number 1007")
    person = keys.person(user)
    for number in range(60):
        caller = await caller_of(store, user, apps[number % 40])
        await store.client.delete(keys.limit(user, "ai"))
        held = await store.calls.hold(caller, "credits:spend", estimate(number))
        await store.calls.settle(held, TokenCounts(90_000, 12_000, 40_000, 3_000, 500, web_search=3))
    for number in range(32):
        caller = await caller_of(store, user, apps[number])
        await store.client.delete(keys.limit(user, "ai"))
        await store.calls.hold(caller, "credits:spend", estimate(number))


def estimate(number: int) -> CallEstimate:
    return CallEstimate(f"claude-sonnet-5-2026-{number % 30:02}", PRICE, 1, 249_999, 1, lasts=600_000)


async def caller_of(store: Store, user: str, app: Registration) -> Caller:
    tokens = await store.tokens.mint(user, app, SPENDS)
    token = store.tokens.open_access(tokens.access_token)
    assert token
    return Caller.of(token, SCOPES)


async def hand_on(store: Store, user: str, app: Registration) -> None:
    """Helpers of an app."""
    root = (await store.tokens.mint(user, app, SPENDS)).access_token
    for number in range(HANDED_ON):
        if number % 50 == 0:
            await store.client.delete(keys.limit(user, "oauth"))
        subject = await store.token_exchange.subject(app, root, "")
        name = f"Hilfsprogramm für die Wetterkarte {number:03}"
        wanted = WantedToken(scopes=SPENDS[2:], details="credits 5000 total *", name=name)
        await store.token_exchange.exchange(app, subject, wanted, None, "")


async def own_app(store: Store, service: Service) -> Registration:
    """An app with a full team, log and list of deliveries."""
    people = [await service.add_person(f"augusta.ada.king.lovelace.{n:02}@example.com", f"Augusta Ada King Lovelace {n:02}") for n in range(MOST_MEMBERS - 1)]
    api = ApiRegistration("https://orders.example.com/v1", "Orders of the weather diary", tuple(
        ApiScope(f"orders:read-part-{n:02}", f"See the orders of the department {n:02}", "What you ordered, when, and what it cost, for the last two years.", care=True) for n in range(MAX_API_SCOPES)), owner=service.ada)
    await store.apis.create(api)
    scopes = tuple(f"{api.client_id}/{one.name}" for one in api.scopes)
    uris = tuple(f"https://wettertagebuch-{n:02}.example.com/oauth/callback" for n in range(MAX_REDIRECT_URIS))
    app = Registration("own-app", NAME.format(99), uris, SPENDS, api_scopes=scopes, owner=service.ada, homepage="https://wettertagebuch.example.com/",
        post_logout_redirect_uris=uris, webhook_url="https://wettertagebuch.example.com/latchkey/events",
        members=tuple(Member(one, "developer", NOW, service.ada) for one in people), private_key_jwt=False, device_grant=True)
    begun, _ = store.webhooks.begun(app)
    app, secret = await store.apps.create(begun)
    await store.owned.give(service.ada, app.client_id)
    for n in range(MOST_OPEN):
        await store.teams._invitations.make(app.client_id, f"augusta.ada.king.lovelace.{n:02}@example.org", "developer", service.ada)
    for n in range(MOST_REFUSALS):
        if n % 2:
            store.app_log.refused(app.client_id, Cause("authorize", "invalid_request", f"Wettertagebuch {n // 15} did not register the address that it wants to send you back to.", f"https://wettertagebuch-{n:02}.example.com/oauth/back"))
        else:
            store.app_log.refused(app.client_id, Cause("token", "invalid_scope", f"The app did not register these scopes: {n}", f"orders:read-part-{n:02} data:read"))
    await store.app_log.flush()
    for n in range(60):
        assert await store.deliveries.enqueue(WebhookEvent(new_event_id(), "grant.revoked", app.client_id, service.ada, await store.apps.now(), {"reason": "disconnected"}))
    for n in range(OWN_APPS):
        other = Registration(f"own-{n:02}", NAME.format(n), uris[:1], SPENDS, owner=service.ada, homepage="https://wettertagebuch.example.com/")
        await store.apps.create(other)
        await store.owned.give(service.ada, other.client_id)
    for n in range(100):
        other = Registration(f"user-{n:02}", NAME.format(n), uris[:1], SPENDS, api_scopes=scopes[:3])
        await store.apps.create(other)
    for n in range(80):
        await store.apis.create(ApiRegistration(f"https://api-{n}.example.com/v1", f"Orders of the weather diary {n}", api.scopes[:10], owner=service.ada))
    return app
