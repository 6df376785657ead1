"""An account after some weeks of use: several apps, documents, credits spent day by day. The pictures and the tour show
it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from runtime import demo
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.registration import DYNAMIC, Registration
from store.apps.self_registered.documents import read_document
from store.apps.self_registered.kept import REFRESH_DAYS
from store.credits.calls import CallEstimate, Hold
from store.credits.prices import TokenCounts
from store.lifetimes import UNUSED_APP
from store.names import SCOPES
from store.oauth.assertions.issuers import TrustedIssuers
from store.oauth.exchange.token_exchange import WantedToken
from store.results import Caller, Visitor
from tests.support.browser.pictures import drawn
from tests.support.browser.tour_kit import DAY, DAYS, Stand
from tests.support.calls.assertions import said_of, trusted_for
from tests.support.store.charges import PRICE, charge
from tests.support.store.credit_spender import PRICE as TOKEN_PRICE
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import shown

PHONE = Visitor("203.0.113.9", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1")
LONG = "Überregionales Niederschlagsmengenaufzeichnungsarchiv für Hobbymeteorologinnen"
"""A very long name, which must not break a page's layout."""
SPENDS = ("profile", "credits:read", "credits:spend", "data:read", "data:write")
KEEPS = ("profile", "data:read", "data:write")
ORDERS = ApiRegistration(
    "https://orders.example.com/v1",
    "Orders",
    (
        ApiScope("orders:read", "See your orders", "What you ordered, when, and what it cost."),
        ApiScope("orders:write", "Place orders", "It can order in your name, up to 100 $ a day.", care=True),
    ),
)
TIMES = ApiRegistration(
    "https://timetable.example.org", "Timetable", (ApiScope("times:read", "See your timetable"),), token_format="jwt"
)
ORDERED = ("orders:read", "orders:write")
TOOLS = "https://tools.example/client"
"""The address of an app's metadata document, and the app's client id."""
NOTE = {"text": "Read the chapter on ferns again.", "tags": ["ferns", "to read"], "pages": [112, 131]}


async def furnish(stand: Stand) -> None:
    """Lets days pass for the demo's person."""
    person = (await stand.store.operator.find(demo.EMAIL)).user
    weather = await register(stand, "weather-diary", "Weather Diary", SPENDS, homepage="https://weather.example/")
    archive = await register(stand, "archive", LONG, KEEPS, homepage="https://archive.weather.example/" + "of/" * 30)
    reader = await register(stand, "old-reader", "Old Reader", KEEPS)
    await register(stand, "curious", "Curious", ("profile", "credits:read", "credits:spend", "apps:read", *KEEPS[1:]))
    await stand.store.credits.grant(person, 20_000_000, reason="Gift card, number 1007")
    for day in range(DAYS):
        for app, times in ((weather, 3), (archive, day % 3), (reader, day % 2)):
            for number in range(times):
                await charge(stand.store, person, app, 40_000 + 31_000 * ((day * 5 + number) % 7), searches=number % 2)
                stand.store.app_stats.called(app.client_id, limited=number == 1)
                tokens_used = TokenCounts(900, 120, 4000, 300, 50, web_search=number % 2)
                stand.store.app_stats.spent(app.client_id, 40_000, "echo-1", tokens_used.counted)
        await stand.store.app_stats.flush()
        stand.clock.advance(DAY)
        if day == DAYS - 3:
            await sign_in_elsewhere(stand)
            await keep(stand, person, archive, 102)
    await keep(stand, person, weather, 3)
    await keep(stand, person, reader, 2)
    session = await sign_in_elsewhere(stand)
    await stand.store.grants.revoke(session, reader.client_id, PHONE)
    await stand.store.tokens.mint(person, archive, KEEPS)
    tokens = await stand.store.tokens.mint(person, weather, SPENDS)
    await hand_on(stand, weather, tokens.access_token)
    estimate = CallEstimate("echo-1", PRICE, 1, 249_999, 1, lasts=DAY * 1000)
    await stand.store.calls.hold(caller_with(stand, tokens.access_token), "credits:spend", estimate)
    await shown(stand.store, session)
    await stand.store.credits.set_spend_limit(session, weather.client_id, 5_000_000, PHONE)
    await stand.store.owned.give(person, weather.client_id)
    await stand.store.apps.update(weather.client_id, owner=person)
    for api in (replace(ORDERS, owner=person), TIMES):
        await stand.store.apis.create(api)
    await stand.store.apps.update("archive", api_scopes=tuple(f"{ORDERS.client_id}/{one}" for one in ORDERED))
    await stand.store.apps.update("curious", api_scopes=(f"{ORDERS.client_id}/orders:read",))
    await by_document(stand)
    notes = await registered_itself(stand, "pocket-notes", "Pocket Notes")
    await stand.store.tokens.mint(person, notes, ("openid", "profile"))
    await stand.store.profiles.save_picture(session, drawn("WEBP", (256, 256), (70, 120, 95)), PHONE)


async def hand_on(stand: Stand, app: Registration, token: str) -> None:
    """An app hands on a part of its access, and its helper a part of that. With three more, the list is long enough to
    scroll."""
    root = token
    helpers = (("Rain planner", SPENDS[2:], 500_000), (LONG, SPENDS[2:4], 200_000), ("", SPENDS[3:4], 0))
    for name, scopes, limit in helpers:
        part = f"credits {limit} total *" if limit else ""
        subject = await stand.store.token_exchange.subject(app, token, "")
        wanted = WantedToken(scopes=scopes, details=part, name=name)
        token = (await stand.store.token_exchange.exchange(app, subject, wanted, None, "")).access_token
    for scopes in (SPENDS[2:], SPENDS[3:4], SPENDS[3:4]):
        subject = await stand.store.token_exchange.subject(app, root, "")
        wanted = WantedToken(scopes=scopes, name="Rain planner")
        await stand.store.token_exchange.exchange(app, subject, wanted, None, "")


async def register(stand: Stand, client_id: str, name: str, scopes: tuple[str, ...], **facts: Any) -> Registration:
    """An app."""
    registration = Registration(client_id, name, (f"https://{client_id}.example/callback",), scopes, **facts)
    return (await stand.store.apps.create(registration))[0]


async def registered_itself(stand: Stand, client_id: str, name: str) -> Registration:
    """An app that registered itself, which somebody is about to allow."""
    kept, back = stand.store.self_registered, (f"https://{client_id}.example/callback",)
    facts: dict[str, Any] = {"pkce_required": True, "origin": DYNAMIC, "refresh_lifetime_days": REFRESH_DAYS}
    app = Registration(client_id, name, back, (), public=True, **facts)
    await kept.claim(client_id, UNUSED_APP)
    assert await kept.save(app, b"", UNUSED_APP)
    await kept.keep(app)
    return await kept.filled(app)


async def by_document(stand: Stand) -> None:
    """The app of a metadata document that was read a moment ago."""
    stand.store.apps.documents = True
    now = await stand.store.apps.now()
    document = {"client_id": TOOLS, "client_name": "Tool Box", "redirect_uris": [f"{TOOLS}/callback"]}
    read = read_document(json.dumps(document).encode(), TOOLS, now + 10 * DAY * 1000, stand.site.base_url, "Latchkey")
    await stand.store.self_registered.claim(read.client_id, UNUSED_APP)
    await stand.store.self_registered.put(read, now, UNUSED_APP)


async def keep(stand: Stand, person: str, app: Registration, documents: int) -> None:
    """Connects the app and has it store some notes and settings."""
    tokens = await stand.store.tokens.mint(person, app, app.scopes)
    keeper = Keeper(stand.store, caller_with(stand, tokens.access_token))
    if documents > 100:  # more than a page
        return await keeper.fill(documents, 2, json.dumps(NOTE).encode())
    for number in range(documents):
        await keeper.put(f"diary/2026-03-{number + 1:02}", json.dumps(NOTE).encode())
    await keeper.put("settings/display", b'{"units":"metric"}')


def caller_with(stand: Stand, access_token: str) -> Caller:
    """The person that an access token belongs to."""
    token = stand.store.tokens.open_access(access_token)
    assert token is not None
    return Caller.of(token, SCOPES)


async def spend_of_budget(stand: Stand, client_id: str, amount: int) -> None:
    """The app, which has a budget, makes a call that costs this many micro-dollars."""
    person, app = (await stand.store.operator.find(demo.EMAIL)).user, await stand.store.apps.find(client_id)
    assert app is not None
    tokens = await stand.store.tokens.mint(person, app, ("credits:spend",))
    estimate = CallEstimate("latchkey-echo", TOKEN_PRICE, amount, 0, 0, lasts=60_000)
    held = await stand.store.calls.hold(caller_with(stand, tokens.access_token), "credits:spend", estimate)
    assert isinstance(held, Hold)
    await stand.store.calls.settle(held, TokenCounts(amount, 0))


async def connected_by_issuer(stand: Stand, client_id: str) -> TrustedIssuers:
    """A company's identity provider gives the app access; the issuers that the operator trusts from now on."""
    app, base = await stand.store.apps.find(client_id), stand.service.base_url
    assert app is not None
    trusted = trusted_for(client_id, base, "apps:read", "data:read")
    await stand.store.assertion_grants.issue(app, trusted, said_of(demo.EMAIL), "", (), base)
    return TrustedIssuers((trusted,))


async def sign_in_elsewhere(stand: Stand) -> Any:
    """The person's session on a phone."""
    credentials = await stand.store.people.verify(demo.EMAIL, demo.PASSWORD)
    assert credentials is not None
    session = stand.store.sessions.open((await stand.store.sessions.start(credentials, PHONE)).cookie)
    assert session is not None
    return session
