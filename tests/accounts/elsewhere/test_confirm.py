"""People without a password confirm who they are with the account that they sign in with."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import pytest

from handlers.core.site import Site
from outbound.identity.providers import Providers
from store import keys
from store.clock import wall
from store.refused import Refused
from tests.support.browser.mailbox import Kept
from tests.support.elsewhere import journeys
from tests.support.elsewhere.double import ProviderDouble
from tests.support.elsewhere.journeys import goes_and_comes, leaves, provider_of
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of
from tests.support.store.second_factors import App
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)

idp, mails, site = journeys.idp, journeys.mails, journeys.site
SECURITY = "/account/security"


@pytest.fixture
def options() -> dict[str, Any]:
    return {"by_address": True, "create": True}


async def made(service: Service, idp: ProviderDouble) -> Browser:
    """A person whose account the provider made just now."""
    browser = service.browser()
    assert (await goes_and_comes(browser, idp)).code == 303
    idp.claims["auth_time"] = int(wall.time())
    return browser


async def confirm_link(browser: Browser, page: str = SECURITY) -> str:
    text = (await browser.get(page)).body.decode()
    found = re.search(rf'href="({SECURITY}/confirm/with/idp\?key=[^"]+)"', text)
    assert found, text
    return found[1].replace("&amp;", "&")


async def test_a_round_trip_confirms_who_a_person_without_a_password_is(service: Service, idp: ProviderDouble) -> None:
    browser = await made(service, idp)
    before = browser.cookies["latchkey_session"]
    link = await confirm_link(browser)
    away = await leaves(browser, link)
    sent = dict(parse_qsl(urlsplit(away).query))
    assert (sent["prompt"], sent["max_age"]) == ("login", "0")
    done = await browser.get(idp.allows(away))
    assert (done.code, done.headers["Location"]) == (303, f"{SECURITY}?confirmed")
    assert browser.cookies["latchkey_session"] != before, "a stolen cookie gains nothing"
    page = await browser.get(f"{SECURITY}?confirmed")
    assert "Set up an app" in page.body.decode()


async def test_a_form_that_asks_for_it_is_sent_again_afterwards(
    service: Service, idp: ProviderDouble, mails: Kept
) -> None:
    browser = await made(service, idp)
    new = "other@elsewhere.example"
    asked = await browser.submit(await browser.get("/account/email"), "/account/email", email=new)
    assert asked.code == 403
    assert "Confirm with Elsewhere" in asked.body.decode()
    link = re.search(rf'href="({SECURITY}/confirm/with/[^"]+)"', asked.body.decode())
    assert link
    done = await goes_and_comes(browser, idp, link[1].replace("&amp;", "&"))
    assert done.headers["Location"] == "/account/email"
    sent = await browser.submit(await browser.get("/account/email"), "/account/email", email=new)
    assert sent.code == 200, sent.body
    await mails.newest(new, "Confirm your new e-mail address")


@pytest.mark.parametrize("why", ["no auth_time", "old auth_time", "another person", "another session"])
async def test_what_is_no_new_sign_in_of_the_person_confirms_nothing(
    service: Service, idp: ProviderDouble, why: str
) -> None:
    browser = await made(service, idp)
    away = await leaves(browser, await confirm_link(browser))
    back = idp.allows(away)
    if why == "no auth_time":
        del idp.claims["auth_time"]
    if why == "old auth_time":
        idp.claims["auth_time"] -= 3600
    if why == "another person":
        idp.subject = "somebody else"
    if why == "another session":
        flow = {name: value for name, value in browser.cookies.items() if "elsewhere" in name}
        browser = await made(service, idp)
        browser.cookies.update(flow)
    page = await browser.get(back)
    assert page.code in (400, 403), page.body
    assert ("set a password" in page.body.decode()) is ("auth_time" in why)
    assert await confirm_link(browser), "the page still asks"


async def test_a_code_follows_where_the_person_has_an_authenticator_app(service: Service, idp: ProviderDouble) -> None:
    browser = await made(service, idp)
    await goes_and_comes(browser, idp, await confirm_link(browser))
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    world = SimpleNamespace(store=service.store, user=session.user, session=session, codes=[], undo=None)
    app = await App.add(cast(World, world))
    await service.store.client.hdel(session.keys()["session"], "proved_at", "shown_at")
    wrong = await browser.submit(await browser.get("/account/email"), "/account/email", email="a@elsewhere.example")
    assert 'name="confirm_code"' not in wrong.body.decode(), "no code without the sign-in there"
    assert (await goes_and_comes(browser, idp, await confirm_link(browser))).code == 303
    page = await browser.get(SECURITY)
    assert "enter a code" in page.body.decode()
    assert "Set up an app" not in page.body.decode()
    assert (await browser.submit(page, f"{SECURITY}/confirm", code="000000")).code == 400
    done = await browser.submit(await browser.get(SECURITY), f"{SECURITY}/confirm", code=app.codes[0])
    assert (done.code, done.headers["Location"]) == (303, f"{SECURITY}?confirmed")
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    factors = await service.store.factors.of(session)
    assert (factors.proved, factors.by_provider) == (True, False)


async def test_a_person_with_a_password_confirms_with_that(service: Service, idp: ProviderDouble, site: Site) -> None:
    idp.claims["email"] = "ada@example.com"
    browser = service.browser()
    await goes_and_comes(browser, idp)
    assert "/confirm/with/" not in (await browser.get(SECURITY)).body.decode()
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    [linked] = (await service.store.factors.of(session)).identities
    with pytest.raises(Refused):
        await service.store.reauth.with_identity(session, linked.identity)


async def test_a_provider_that_never_says_when_is_not_offered(
    service: Service, idp: ProviderDouble, site: Site, app: Any
) -> None:
    browser = await made(service, idp)
    user = await service.store.people.find("ada@elsewhere.example")
    assert user
    known = Providers((provider_of(idp, type="github"),))
    app.site = Site(service.store, site.base_url, providers=known, elsewhere=site.elsewhere)
    page = (await browser.get(SECURITY)).body.decode()
    assert "/confirm/with/" not in page
    assert "Set one with an e-mailed link" in page
    assert await service.store.client.hlen(keys.person(user)["identities"]) == 1


async def test_a_person_without_a_password_deletes_the_account_after_a_sign_in_elsewhere(
    service: Service, idp: ProviderDouble
) -> None:
    browser = await made(service, idp)
    page = await browser.get("/account/delete")
    email = str(idp.claims["email"])
    assert 'name="password"' not in page.body.decode(), "there is none to type"
    form = {"_xsrf": fields_of(page, "/signout")["_xsrf"], "email": email}
    early = await browser.send("/account/delete", "POST", form=form)
    assert (early.code, "Confirm with Elsewhere" in early.body.decode()) == (400, True)
    assert await service.store.people.find(email)
    done = await goes_and_comes(browser, idp, await confirm_link(browser, "/account/delete"))
    assert (done.code, done.headers["Location"]) == (303, "/account/delete")
    page = await browser.get("/account/delete")
    assert 'name="password"' not in page.body.decode()
    wrong = await browser.submit(page, "/account/delete", email="other@example.com")
    assert (wrong.code, "the e-mail address of this account" in wrong.body.decode()) == (400, True)
    done = await browser.submit(page, "/account/delete", email=email)
    assert (done.code, done.headers["Location"]) == (303, "/account/deleted")
    assert await service.store.people.find(email) is None


async def test_a_code_completes_the_sign_in_elsewhere_before_a_deletion(service: Service, idp: ProviderDouble) -> None:
    browser = await made(service, idp)
    await goes_and_comes(browser, idp, await confirm_link(browser))
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    world = SimpleNamespace(store=service.store, user=session.user, session=session, codes=[], undo=None)
    app = await App.add(cast(World, world))
    await service.store.client.hdel(session.keys()["session"], "proved_at", "shown_at")
    await goes_and_comes(browser, idp, await confirm_link(browser, "/account/delete"))
    page, email = await browser.get("/account/delete"), str(idp.claims["email"])
    assert 'name="code"' in page.body.decode()
    for code in ("", "000000"):
        assert (await browser.submit(page, "/account/delete", email=email, code=code)).code == 400
    done = await browser.submit(page, "/account/delete", email=email, code=app.codes[0])
    assert (done.code, done.headers["Location"]) == (303, "/account/deleted")


async def test_a_person_without_a_password_deletes_an_app_after_a_sign_in_elsewhere(
    service: Service, idp: ProviderDouble
) -> None:
    browser = await made(service, idp)
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    await service.add_app("marys")
    await service.store.teams.put("marys", session.user, "owner")
    path = "/developer/apps/marys/delete"
    form = {"_xsrf": fields_of(await browser.get(path), "/signout")["_xsrf"], "confirm": "Marys"}
    assert (await browser.send(path, "POST", form=form)).code == 400
    done = await goes_and_comes(browser, idp, await confirm_link(browser, path))
    assert done.headers["Location"] == path
    done = await browser.submit(await browser.get(path), path, confirm="Marys")
    assert done.headers["Location"] == "/developer/apps?deleted"
    assert (await service.store.apps.fresh("marys"))[0] is None


async def test_a_recent_password_is_no_sign_in_elsewhere(service: Service, idp: ProviderDouble) -> None:
    """Who has a password types it before a deletion, however recently they confirmed with it."""
    browser = service.browser()
    assert (await browser.sign_in()).code == 303
    page = await browser.get(SECURITY)
    assert (await browser.submit(page, f"{SECURITY}/confirm", password=PASSWORD)).code == 303
    page = await browser.get("/account/delete")
    assert 'name="password"' in page.body.decode()
    for password in ("", "wrong"):
        gone = await browser.submit(page, "/account/delete", email=EMAIL, password=password)
        assert (gone.code, "Incorrect password" in gone.body.decode()) == (400, True)
    assert await service.store.people.find(EMAIL)
