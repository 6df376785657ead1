"""Pausing an app and resuming it: calls, introspection, refreshes, consent, the trail and the export."""

from __future__ import annotations

import json

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.moving.person_export import as_lines
from tests.oauth.exchange.exchanging import JWT, handed
from tests.support.http.api_shop import ORDERS, Shop
from tests.support.http.driver import Browser, Service, answer_of, fields_of, json_of, send
from tests.support.http.upstream import ScriptedUpstream
from tests.support.store.ai_spender import SDK, Spender, assert_error, mint

pytestmark = pytest.mark.gen_test(timeout=20)
APPS = "/account/apps"


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


async def press(browser: Browser, client: str, button: str) -> int:
    """Presses a button of an app on the page of connected apps; returns the status."""
    return (await browser.submit(await browser.get(APPS), f"{APPS}/{client}/{button}")).code


async def test_a_paused_app_is_refused_everywhere_until_resumed(service: Service, upstream: ScriptedUpstream) -> None:
    scopes = ("profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write")
    spender = await Spender.make(service, *scopes)
    client, browser = spender.app.client_id, await service.signed_in()
    paths = ("/credits/balance", "/credits/usage", "/apps", "/data/_meta/usage", "/data/notes", "/ai/models")

    async def answers() -> list[HTTPResponse]:
        return [await spender.app.userinfo(spender.token), *[await spender.get(path) for path in paths]]

    assert {answer.code for answer in await answers()} == {200}
    windows = {key async for key in service.store.client.scan_iter(match=f"{keys.prefix(spender.user)}limit:*")}
    before = await service.store.client.mget(sorted(windows))
    assert await press(browser, client, "pause") == 303
    for answer in await answers():
        assert_error(answer, 403, "app_paused")
        assert "WWW-Authenticate" not in answer.headers
    put = await send(
        f"{service.base_url}/api/v1/data/notes/a",
        "PUT",
        body="{}",
        headers={"Authorization": f"Bearer {spender.token}", "Content-Type": "application/json"},
    )
    assert_error(put, 403, "app_paused")
    refused = await spender.ask(path=SDK)
    assert (refused.code, json_of(refused)["error"]["type"]) == (403, "permission_error")
    chat = await spender.ask(path="/api/v1/ai/v1/chat/completions")
    assert (chat.code, json_of(chat)["error"]["code"]) == (403, "app_paused")
    assert not upstream.calls
    assert await service.store.client.mget(sorted(windows)) == before, "a refused call takes nothing from a window"
    # Other apps of the person go on.
    other = await mint(service, service.native, "profile")
    assert (await service.native.userinfo(other)).code == 200
    assert await press(browser, client, "resume") == 303
    assert {answer.code for answer in await answers()} == {200}
    assert (await spender.ask()).code == 200


async def test_introspection_says_inactive_and_refreshes_go_on(service: Service) -> None:
    api, secret = await service.store.apis.create(
        ApiRegistration("https://orders.example", "Orders", (ApiScope("orders:read", "See your orders"),))
    )
    await service.store.apps.update("web-app", api_scopes=(f"{api.client_id}/orders:read",))
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)

    async def is_active(token: str, client: str, own: str) -> bool:
        form = {"token": token, "client_id": client, "client_secret": own}
        return bool(json_of(await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form))["active"])

    person = (await service.store.operator.find("ada@example.com")).user
    app = await service.store.apps.find("web-app")
    assert app is not None
    there = await service.store.tokens.mint(person, app, (f"{api.client_id}/orders:read",), api=api.client_id)
    web = service.web
    assert web.secret is not None
    for client, own, token in (
        (api.client_id, secret, there.access_token),
        (web.client_id, web.secret, tokens["access_token"]),
        (web.client_id, web.secret, tokens["refresh_token"]),
    ):
        assert await is_active(token, client, own)
        assert await press(browser, "web-app", "pause") == 303
        assert not await is_active(token, client, own)
        assert await press(browser, "web-app", "resume") == 303
    assert await press(browser, "web-app", "pause") == 303
    fresh = json_of(await web.refresh(tokens["refresh_token"]))
    assert_error(await web.userinfo(fresh["access_token"]), 403, "app_paused")
    assert (await web.userinfo("lk_at_invented")).code == 401, "only a live token learns of the pause"
    assert await press(browser, "web-app", "resume") == 303
    assert (await web.userinfo(fresh["access_token"])).code == 200


async def test_a_paused_app_gets_no_jwt_that_an_api_would_accept(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt")
    browser = await service.signed_in()
    code = await service.code(shop.app, browser, scope="read", resource=ORDERS.identifier)
    tokens = await shop.tokens("read", browser, resource=ORDERS.identifier)
    assert await press(browser, "shop", "pause") == 303
    late = json_of(await shop.app.exchange(code))
    fresh = await shop.refresh(tokens)
    child = await handed(shop.app, tokens["access_token"], subject_token_type=JWT)
    for issued in (late, fresh, child):
        assert "." not in issued["access_token"], "an API that checks JWTs does not know of the pause"
        assert issued["expires_in"] <= ORDERS.token_lifetime
        assert await shop.at(ORDERS, issued["access_token"]) == {"active": False}
    assert await press(browser, "shop", "resume") == 303
    assert (await shop.at(ORDERS, fresh["access_token"]))["active"]
    assert (await shop.refresh(fresh))["access_token"].count(".") == 2


async def test_a_paused_app_gets_no_profile_by_refreshing(service: Service) -> None:
    await service.store.apps.update("web-app", scopes=("openid", "profile"), refresh_retry_seconds=60)
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser, scope="openid profile")
    assert await press(browser, "web-app", "pause") == 303
    for _ in range(2):  # the second is a repetition
        fresh = json_of(await service.web.refresh(tokens["refresh_token"]))
        assert fresh["scope"] == "openid profile"
        assert "id_token" not in fresh, "it would say what userinfo does not"
    assert await press(browser, "web-app", "resume") == 303
    assert "id_token" in json_of(await service.web.refresh(fresh["refresh_token"]))


async def test_only_a_decision_of_the_person_ends_a_pause(service: Service) -> None:
    browser, app = await service.signed_in(), service.web
    token = (await service.tokens(browser=browser))["access_token"]
    assert "code" in answer_of(await browser.get(app.authorize_url()))
    assert await press(browser, app.client_id, "pause") == 303
    assert answer_of(await browser.get(app.authorize_url(prompt="none")))["error"] == "consent_required"
    page = await browser.get(app.authorize_url())
    assert b"You paused this app" in page.body
    denied = await browser.submit(page, "/api/oauth/authorize", decision="deny")
    assert answer_of(denied)["error"] == "access_denied"
    assert_error(await app.userinfo(token), 403, "app_paused")
    assert "code" in answer_of(await browser.consent(app.authorize_url()))
    assert (await app.userinfo(token)).code == 200
    assert "code" in answer_of(await browser.get(app.authorize_url()))
    # A page that was open before the pause does not mention it.
    page = await browser.get(app.authorize_url(prompt="consent"))
    assert await press(browser, app.client_id, "pause") == 303
    assert "code" in answer_of(await browser.submit(page, "/api/oauth/authorize", decision="allow"))
    assert_error(await app.userinfo(token), 403, "app_paused")
    assert await press(browser, app.client_id, "resume") == 303
    # A disconnected app comes back without its pause.
    assert await press(browser, app.client_id, "pause") == 303
    assert await press(browser, app.client_id, "revoke") == 303
    fresh = await service.tokens(browser=browser)
    assert (await app.userinfo(fresh["access_token"])).code == 200


async def test_a_repeated_click_changes_nothing_and_the_trail_and_the_export_have_the_pause(service: Service) -> None:
    browser, store = await service.signed_in(), service.store
    await service.tokens(browser=browser)
    for button in ("pause", "pause", "resume", "resume", "pause"):
        page = await browser.get(APPS)
        token = fields_of(page, f"{APPS}/web-app/revoke")
        assert (await browser.send(f"{APPS}/web-app/{button}", "POST", form=token)).code == 303
        assert (await browser.send(f"{APPS}/no-app/{button}", "POST", form=token)).code == 404
        assert (await browser.send(f"{APPS}/web-app/{button}", "POST", form={})).code == 403
    found = await store.operator.find("ada@example.com")
    events = [one.event for one in found.activity if one.event in ("app_paused", "app_resumed")]
    assert events == ["app_paused", "app_resumed", "app_paused"]
    lines = [json.loads(line) async for line, _ in as_lines(store, found)]
    (exported,) = (line for line in lines if line["type"] == "app")
    assert exported["pausedAt"]
