"""No page of lists has 40,000 bytes of HTML, however many rows a person, an app or the operator has, with names and
texts of usual length. Forms with the scopes of many APIs, and those of an API with many scopes, may be larger."""

from __future__ import annotations

import re
from typing import Any

import pytest

from handlers.core.site import Site
from store.results import Visitor
from tests.admin.conftest import Console
from tests.sizes import fullest
from tests.sizes.fullest import NAME, PERSON, SESSIONS, SPENDS, network
from tests.support.http.driver import EMAIL, App, Browser, Service
from tests.support.store.many_documents import stock
from tests.support.store.second_factors import shown

pytestmark = pytest.mark.gen_test(timeout=120)

MOST = 40_000
"""Bytes of HTML."""
WRONG = ("-1", "0", "1000000", "one", "1.5", "%C2%B2", "1e3", "0x1")
"""Numbers of pages that no page has."""


@pytest.fixture
def base_url(_unused_port: tuple[Any, int]) -> str:
    """An origin for which browsers offer passkeys."""
    return f"http://localhost:{_unused_port[1]}"


@pytest.fixture
def site(memory_store: Any, base_url: str) -> Site:
    """A server whose operator lets people have many apps."""
    return Site(memory_store, base_url, apps_per_person=100)


async def sizes(browser: Browser, *paths: str) -> dict[str, int]:
    """The bytes of these pages, in English and in Japanese."""
    found = {}
    for path in paths:
        for language in ("en", "ja"):
            page = await browser.get(path, **{"Accept-Language": language})
            assert page.code == 200, (path, page.code)
            found[f"{path[:200]} {language}"] = len(page.body)
    return found


def large(found: dict[str, int]) -> dict[str, int]:
    """The pages that are too large."""
    return {path: size for path, size in found.items() if size >= MOST}


async def check_numbers(browser: Browser, *lists: str) -> None:
    """Each list, an address that ends with the name of its parameter, refuses what is no number of a page, and shows
    its last page past the end."""
    for path in lists:
        for wrong in WRONG:
            assert (await browser.get(f"{path}={wrong}")).code == 400, (path, wrong)
        assert not large(await sizes(browser, f"{path}=999999", f"{path}=2", f"{path}=")), path


async def test_pages_of_a_person_stay_small(service: Service) -> None:
    store, user = service.store, service.ada
    browser = await service.confirmed()
    for number in range(SESSIONS - 2):
        await fullest.sign_in(store, EMAIL, number)
    await fullest.fill_factors(store, user)
    apps = [await fullest.connect(store, user, number, budgets=number > 15) for number in range(30)]
    await fullest.fill_trails(store, user, apps)
    await fullest.fill_credits(store, user, apps[:15])
    for app in apps[-2:]:
        await fullest.hand_on(store, user, app, 30)
    one = b'{"station": "Wetterstation 0815", "grad": -3, "ort": "N\xc3\xbcrnberg"}'
    documents = {f"messungen-{n % 1000:04}/wetterstation-{n:06}": one for n in range(1500)}
    await stock(store, user, apps[5].client_id, documents)
    await stock(store, user, apps[6].client_id, {"messungen/alle": b"[" + b",".join([one] * 900) + b"]"})
    session = store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    await shown(store, session)
    data, named = f"/account/apps/{apps[5].client_id}/data", f"/account/apps?app={apps[-1].client_id}"
    document = f"/account/apps/{apps[6].client_id}/data/messungen/alle"
    found = await sizes(
        browser,
        *("/account", "/account/security", "/account/security/activity", "/account/apps", f"{named}&helpers=2"),
        *("/account/credits", "/account/credits?days=90", "/account/credits/usage?days=90", "/account/delete"),
        *(data, f"{data}?collection=messungen-0500", document),
    )
    assert not large(found)
    await check_numbers(
        browser,
        *(f"/account/security?{name}" for name in ("sessions", "passkeys", "accounts")),
        *("/account/apps?page", f"{named}&helpers", f"{data}?collections", f"{document}?page"),
        *(f"/account/credits/usage?{name}_page" for name in ("models", "apps", "days")),
    )


async def test_pages_of_a_developer_stay_small(service: Service) -> None:
    api = await fullest.own_apis(service.store, service.ada)
    await fullest.own_app(service, api)
    browser, app = await service.confirmed(), "/developer/apps/own-app"
    pages = ("", "/credentials", "/log", "/usage", "/team", "/webhooks", "/try")
    asked = App(service.base_url, "own-app", None, fullest.URIS[0])
    scopes = " ".join((*SPENDS, *(scope.name for scope in api.scopes)))
    consent = asked.authorize_url(scope=scopes, resource=api.identifier)
    found = await sizes(
        browser,
        *("/developer/apps", "/developer/apis", consent),
        *(f"{app}{page}" for page in pages),
    )
    listed = (await browser.get(f"{app}/webhooks")).body.decode()
    found |= await sizes(browser, re.findall(rf'href="({app}/webhooks/[^"?]+)"', listed)[-1])
    assert not large(found)
    lists = ("/developer/apps?apps", "/developer/apps?teams", "/developer/apis?page")
    await check_numbers(
        browser,
        *lists,
        f"{app}/usage?models_page",
        f"{app}/log?page",
    )


async def test_pages_of_the_console_stay_small(service: Service) -> None:
    store, user, console = service.store, service.ada, Console(service)
    for number in range(SESSIONS):
        await fullest.sign_in(store, EMAIL, number)
    await fullest.fill_factors(store, user)
    apps = [await fullest.connect(store, user, number, budgets=False) for number in range(30)]
    await fullest.fill_trails(store, user, apps)
    await fullest.fill_credits(store, user, apps)
    for app in apps:
        await stock(store, user, app.client_id, {f"messungen-{n:02}/wetterstation": b"1" for n in range(12)})
    api = await fullest.own_apis(store, user)
    await fullest.own_app(service, api)
    for n in range(60):
        email, visitor = f"augusta.ada.king.lovelace.{n:03}@example.net", Visitor(network(n), fullest.AGENTS[0])
        facts: dict[str, Any] = {"verified": True, "event": "created_by_operator", "visitor": visitor}
        await store.people.create(email, PERSON.format(n), None, **facts)
    await store.security.flush()
    browser = (await console.operator("admin")).browser
    person, own, one = f"/admin/people/{user}", "/admin/apps/own-app", f"/admin/apis/{api.client_id}"
    pages = ("", "/people", "/audit", "/apps", "/apis", "/webhooks", "/credits", f"/credits?person={user}", "/health")
    delivery = re.findall(r'href="(/admin/webhooks/[^"?]+)"', (await browser.get("/admin/webhooks")).body.decode())[-1]
    assert not large(await sizes(browser, *(f"/admin{page}" for page in pages), person, own, one, delivery))
    lists = ("passkeys", "accounts", "sessions", "apps", "registered", "documents")
    named = (f"{own}?refusals", f"{one}?apps", "/admin/apis?page", f"/admin/apis?query={NAME[:6]}&page")
    await check_numbers(browser, *(f"{person}?{name}" for name in lists), *named)
