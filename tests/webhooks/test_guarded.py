"""The re-authentication page, which continues with the submitted form."""

from __future__ import annotations

import asyncio
import html

import pytest
from tornado.httpclient import HTTPResponse

from outbound.mail.message import plain_text
from store import keys
from store.lifetimes import CHANGE_APP
from store.refused import Unproved
from store.wiring import Store
from tests.support.browser import email_links
from tests.support.browser.email_links import Post
from tests.support.browser.second_factors import SECURITY, Person, says
from tests.support.calls.every import CALLS
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of, json_of
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import App, reauth
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

OWN = "/developer/apps/mine"
TYPED = {
    "name": "Mine & <yours>",
    "redirect_uris": "https://a.example/cb\r\nhttps://b.example/cb",
    "scope:profile": "on",
}


async def stale(service: Service, clock: FakeClock) -> Person:
    """Ada, who owns an app and signed in more than ten minutes ago."""
    ada = await Person.arrive(service)
    await service.add_app("mine", owner=service.ada)
    clock.advance(601)
    return ada


async def sends(browser: Browser, action: str = OWN, **fields: str) -> HTTPResponse:
    tab = "credentials" if action.endswith("rotate") else "settings"
    page = await browser.get(f"{OWN}/{tab}")
    return await browser.submit(page, action, **fields)


async def test_input_is_kept_and_saved_after_reauthentication(clock: FakeClock, service: Service) -> None:
    ada = await stale(service, clock)
    before = ada.browser.cookies["latchkey_session"]
    confirm = await sends(ada.browser, **TYPED)
    assert (confirm.code, says(confirm, "You asked to change your app")) == (403, True)
    found, _ = await service.store.apps.fresh("mine")
    assert found is not None
    assert found.name == "Mine", "nothing was done"
    wrong = await ada.browser.submit(confirm, OWN, confirm_password="wrong")
    assert (wrong.code, says(wrong, "Incorrect password")) == (400, True)
    saved = await ada.browser.submit(wrong, OWN, confirm_password=PASSWORD)
    assert saved.headers["Location"] == f"{OWN}/settings?saved"
    app, _ = await service.store.apps.fresh("mine")
    assert app is not None
    assert app.name == TYPED["name"]
    assert app.redirect_uris == ("https://a.example/cb", "https://b.example/cb")
    assert ada.browser.cookies["latchkey_session"] != before, "a copy of the cookie from before is worthless"


async def test_one_reauthentication_covers_several_changes(clock: FakeClock, service: Service) -> None:
    ada = await stale(service, clock)
    confirm = await sends(ada.browser, f"{OWN}/rotate")
    shown = await ada.browser.submit(confirm, f"{OWN}/rotate", confirm_password=PASSWORD)
    assert b"lk_cs_" in shown.body
    form = {**fields_of(shown, f"{OWN}/end-secret")}
    assert (await ada.browser.send(f"{OWN}/end-secret", "POST", form=form)).code == 303
    clock.advance(601)
    assert (await sends(ada.browser, f"{OWN}/rotate")).code == 403


async def test_with_a_second_step_reauthentication_needs_it(service: Service) -> None:
    ada = await Person.arrive(service)
    await service.add_app("mine", owner=service.ada)
    await ada.add_app()
    confirm = await sends(ada.browser, f"{OWN}/rotate")
    assert confirm.code == 403, "a sign-in is not enough"
    for code in ("", "000000"):
        refused = await ada.browser.submit(confirm, f"{OWN}/rotate", confirm_password=PASSWORD, confirm_code=code)
        assert (refused.code, says(refused, "That code is wrong")) == (400, True)
    shown = await ada.browser.submit(confirm, f"{OWN}/rotate", confirm_password=PASSWORD, confirm_code=await ada.code())
    assert b"lk_cs_" in shown.body
    assert (await sends(ada.browser, **TYPED)).code == 303


async def test_a_passkey_reauthenticates_for_app_changes(service: Service) -> None:
    ada = await Person.arrive(service)
    await service.add_app("mine", owner=service.ada)
    await ada.add_passkey()
    confirm = await sends(ada.browser, **TYPED)
    assert 'data-options="/account/security/confirm/options"' in confirm.body.decode()
    xsrf = fields_of(confirm, OWN)["_xsrf"]
    options = json_of(
        await ada.browser.send(
            f"{SECURITY}/confirm/options", "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"}
        )
    )["publicKey"]
    wrong = await ada.browser.submit(confirm, OWN, credential="{}")
    assert wrong.code == 400
    options = json_of(
        await ada.browser.send(
            f"{SECURITY}/confirm/options", "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"}
        )
    )["publicKey"]
    saved = await ada.browser.submit(confirm, OWN, credential=ada.device.get(options))
    assert saved.headers["Location"] == f"{OWN}/settings?saved"


async def test_the_reauthentication_page_keeps_only_listed_fields_and_no_secret(
    clock: FakeClock, service: Service
) -> None:
    ada = await stale(service, clock)
    page = html.unescape(
        (await sends(ada.browser, **TYPED, current_password="hunter-2", odd="odd-field")).body.decode()
    )
    assert TYPED["name"] in page
    for word in ("hunter-2", "odd-field"):
        assert word not in page


async def test_a_script_gets_json(clock: FakeClock, service: Service) -> None:
    ada = await stale(service, clock)
    xsrf = fields_of(await ada.browser.get(f"{OWN}/settings"), OWN)["_xsrf"]
    answer = await ada.browser.send(
        f"{OWN}/rotate", "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"}
    )
    assert (answer.code, json_of(answer)["error"]) == (403, "access_denied")


async def test_enabling_needs_reauthentication_and_disabling_does_not(clock: FakeClock, service: Service) -> None:
    ada = await stale(service, clock)
    assert (await sends(ada.browser, f"{OWN}/status")).code == 303
    confirm = await sends(ada.browser, f"{OWN}/status")
    assert (confirm.code, says(confirm, "switch your app on")) == (403, True)
    assert (await ada.browser.submit(confirm, f"{OWN}/status", confirm_password=PASSWORD)).code == 303


async def test_a_mail_tells_the_owner_what_changed_from_where_and_what_to_do(post: Post) -> None:
    ada = await Person.arrive(post.service)
    await ada.reauth()
    await post.service.add_app("mine", owner=post.service.ada)
    await sends(ada.browser)
    await post.settled()
    assert not [mail for mail in post.mails.to(EMAIL) if "was changed" in mail["Subject"]], "nothing changed"
    await sends(ada.browser, **TYPED)
    await post.settled()
    mail = plain_text(await post.mails.newest(EMAIL, "Your app Mine was changed"))
    for words in (
        "- Name: Mine & <yours> (was Mine)",
        "- Redirect URI added: https://b.example/cb",
        "- Redirect URI removed: https://app.example/callback",
        "127.0.0.1",
        "If this wasn’t you",
        "/account/security",
        "/developer/apps/mine",
    ):
        assert words in mail


@pytest.mark.parametrize("name", ["update", "rotate", "drop_secret", "set_webhook", "rotate_webhook"])
async def test_app_changes_are_refused_after_the_reauthentication_expired(memory_store: Store, name: str) -> None:
    """The page asks first; the script that notes the change decides, so that a factor added meanwhile counts."""
    world = await World.make(memory_store)
    change = await CALLS[f"owned.{name}"].prepare(world)
    await App.add(world)
    client = (await memory_store.owned.list(world.session)).apps[0].client_id
    before = await memory_store.client.get(keys.app(client))
    with pytest.raises(Unproved):
        await change()
    assert await memory_store.client.get(keys.app(client)) == before
    await reauth(world)
    await change()
    assert await memory_store.client.get(keys.app(client)) != before


async def fill_window(world: World) -> None:
    """Uses up this hour's app changes."""
    window = keys.limit(world.user, CHANGE_APP.name)
    while await refusal_of(world.store.limits._take_key(CHANGE_APP, window)) is None:
        pass


@pytest.mark.parametrize("name", ["update", "rotate", "set_webhook", "rotate_webhook", "prove_domain"])
async def test_app_changes_are_limited_per_owner_and_hour(memory_store: Store, clock: FakeClock, name: str) -> None:
    world = await World.make(memory_store)
    change = await CALLS[f"owned.{name}"].prepare(world)
    client = (await memory_store.owned.list(world.session)).apps[0].client_id
    await fill_window(world)
    before, noted = await memory_store.client.get(keys.app(client)), await world.events()
    assert await refusal_of(change()) == "rate_limited"
    assert await memory_store.client.get(keys.app(client)) == before
    assert await world.events() == noted
    clock.advance(CHANGE_APP.period // 1000)
    await reauth(world)
    await change()
    assert await memory_store.client.get(keys.app(client)) != before


@pytest.mark.parametrize("name", ["drop_secret", "delete", "switched off"])
async def test_a_full_window_does_not_prevent_disabling_or_removal(memory_store: Store, name: str) -> None:
    world = await World.make(memory_store)
    change = await CALLS["owned.update" if name == "switched off" else f"owned.{name}"].prepare(world)
    client = (await memory_store.owned.list(world.session)).apps[0].client_id
    await fill_window(world)
    before = await memory_store.client.get(keys.app(client))
    if name == "switched off":
        await memory_store.owned.update(world.session, client, "app_disabled", VISITOR, status="off")
    else:
        await change()
    assert await memory_store.client.get(keys.app(client)) != before


async def test_concurrent_requests_to_disable_send_one_mail(post: Post) -> None:
    ada = await Person.arrive(post.service)
    await post.service.add_app("mine", owner=post.service.ada)
    form = {**fields_of(await ada.browser.get(f"{OWN}/settings"), f"{OWN}/status"), "status": "off"}
    await post.settled()
    before = len(post.mails.to(EMAIL))
    await asyncio.gather(*(ada.browser.send(f"{OWN}/status", "POST", form=form) for _ in range(10)))
    await post.settled()
    assert [mail["Subject"] for mail in post.mails.to(EMAIL)[before:]] == ["Your app Mine was changed"]
