"""A second step that an app or a scope demands: at the authorization endpoint, and at every other way to a token."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from tests.accounts.test_required_step import SETUP
from tests.oauth.device.devices import Device, let_in, type_code
from tests.support.browser.second_factors import Person, says
from tests.support.http.api_shop import ORDERS, Shop
from tests.support.http.driver import ALL_SCOPES, App, Browser, Service, answer_of, fields_of, json_of

pytestmark = pytest.mark.gen_test(timeout=60)
WEAK = "needs a stronger sign-in than the one you used"


def target_of(location: str) -> str:
    """Where a sign-in page leads on."""
    return parse_qs(urlsplit(location).query)["next"][0]


def offered(page: HTTPResponse) -> str:
    """The address of the stronger sign-in that a page offers."""
    found = re.search(r'class="button full" href="([^"]+)"', page.body.decode())
    assert found
    return html.unescape(found[1])


async def set_up(service: Service, browser: Browser, target: str) -> Person:
    """Signs in for a target that demands a second step, and sets one up on the way."""
    asked = await browser.sign_in(next=target)
    assert asked.headers["Location"].startswith(SETUP), asked.headers["Location"]
    page, ada = await browser.get(asked.headers["Location"]), Person(service, browser)
    ada.secret = service.store.factors.open_secret(service.ada, fields_of(page, SETUP)["secret"])
    assert (await browser.submit(page, SETUP, code=await ada.code(-1))).code == 200
    return ada


async def demanding(service: Service, **fields: Any) -> App:
    """An app for which the operator demands a second step."""
    return await service.add_app("vault", **{"second_step": True, **fields})


async def strong(service: Service, app: App) -> Browser:
    """A browser whose person set up a second step for the app."""
    browser = service.browser()
    await set_up(service, browser, target_of((await browser.get(app.authorize_url())).headers["Location"]))
    return browser


async def test_a_person_sets_a_step_up_on_the_way_to_the_app(service: Service) -> None:
    app = await demanding(service)
    assert "code" in answer_of(await (await strong(service, app)).consent(app.authorize_url())), "the same request"


@pytest.mark.parametrize("by", ["second_step", "owner_second_step"])
async def test_a_signed_in_person_is_asked_and_comes_back(service: Service, by: str) -> None:
    app = await service.add_app("vault", scopes=("openid", "profile"), **{by: True})
    where, browser = app.authorize_url(scope="openid"), await service.signed_in()
    page = await browser.get(where)
    assert (says(page, WEAK), says(page, "we’ll help you set one up")) == (True, True)
    sign_in = offered(page)
    assert (await browser.get(sign_in)).code == 200, "a session of one step does not lead back to the same page"
    await set_up(service, browser, target_of(sign_in))
    assert "code" in answer_of(await browser.consent(where))
    weak = await service.browser().sign_in()
    assert weak.headers["Location"].startswith("/signin/second")


async def test_remembered_consent_and_the_operators_own_app_need_the_step_too(service: Service) -> None:
    browser, web = await service.signed_in(), service.web
    own = await service.add_app("own", scopes=("openid",), first_party=True)
    assert "code" in answer_of(await browser.consent(web.authorize_url()))
    assert "code" in answer_of(await browser.get(own.authorize_url(scope="openid")))
    for app in (web, own):
        await service.store.apps.update(app.client_id, second_step=True)
    for where in (web.authorize_url(), own.authorize_url(scope="openid")):
        assert says(await browser.get(where), WEAK)
        assert answer_of(await browser.get(f"{where}&prompt=none"))["error"] == "interaction_required"


async def test_an_app_learns_nothing_about_who_is_signed_in_by_guessing(service: Service) -> None:
    app = await demanding(service, scopes=("openid",))
    browser = await service.signed_in()
    claims = json.dumps({"id_token": {"sub": {"value": service.ada}}})
    answer = answer_of(await browser.get(app.authorize_url(scope="openid", prompt="none", claims=claims)))
    assert answer["error"] == "login_required"


async def test_levels_that_the_app_requests_take_nothing_from_the_rule(service: Service) -> None:
    app = await demanding(service, scopes=("openid",))
    browser = await service.signed_in()
    errors = [
        answer_of(await browser.get(app.authorize_url(scope="openid", prompt="none", acr_values=levels)))["error"]
        for levels in ("1", "1 2", "2", "phr")
    ]
    assert errors == [*["interaction_required"] * 2, *["unmet_authentication_requirements"] * 2]


async def test_a_page_from_before_the_rule_decides_nothing(service: Service) -> None:
    browser = await service.signed_in()
    form = fields_of(await browser.get(service.web.authorize_url()), "/api/oauth/authorize")
    await service.store.apps.update("web-app", owner_second_step=True)
    assert (await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": "allow"})).code == 400


async def test_a_session_of_one_step_decides_no_request_of_two(service: Service) -> None:
    app = await demanding(service)
    weak = await service.signed_in()
    browser = await strong(service, app)
    form = fields_of(await browser.get(app.authorize_url()), "/api/oauth/authorize")
    own = fields_of(await weak.get(service.web.authorize_url()), "/api/oauth/authorize")
    answer = await weak.send("/api/oauth/authorize", "POST", form={**form, "_xsrf": own["_xsrf"], "decision": "allow"})
    assert answer.code == 400


async def test_older_refresh_tokens_give_nothing_until_the_person_shows_the_step(service: Service) -> None:
    app = await service.add_app("app", scopes=("openid", *ALL_SCOPES))
    weak = await service.signed_in()
    for scope in ("profile", "openid profile"):
        old = await service.tokens(app, weak, scope=scope)
        await service.store.apps.update("app", second_step=True)
        answer = await app.refresh(old["refresh_token"])
        assert (answer.code, json_of(answer)["error"]) == (400, "invalid_grant")
        assert "two-step verification" in json_of(answer)["error_description"]
        await service.store.apps.update("app", second_step=False)
        assert (await app.refresh(old["refresh_token"])).code == 200, "the family stays"
    await service.store.apps.update("app", second_step=True)
    browser = await strong(service, app)
    for scope in ("profile", "openid profile"):
        new = json_of(await app.exchange(answer_of(await browser.get(app.authorize_url(scope=scope)))["code"]))
        assert (await app.refresh(new["refresh_token"])).code == 200


async def test_a_scope_of_this_server_demands_it(service: Service) -> None:
    service.store.apis.stepped = ("data:read",)
    app = await service.add_app("notes", scopes=("profile", "data:read"))
    browser = await service.signed_in()
    old = await service.tokens(app, browser, scope="profile")
    assert says(await browser.get(app.authorize_url(scope="profile data:read")), WEAK)
    service.store.apis.stepped = ()
    wide = await service.tokens(app, browser, scope="profile data:read")
    service.store.apis.stepped = ("data:read",)
    assert json_of(await app.refresh(old["refresh_token"]))["scope"] == "profile"
    narrowed = json_of(await app.refresh(wide["refresh_token"]))
    assert narrowed["scope"] == "profile", "without the scope that demands a step"
    only = await app.refresh(narrowed["refresh_token"], scope="data:read")
    assert json_of(only)["error"] in ("invalid_scope", "invalid_grant")


async def test_the_address_is_not_had_by_another_name(service: Service) -> None:
    """`profile` includes the address."""
    app = await service.add_app("notes", scopes=("openid", "profile", "data:read"))
    browser = await service.signed_in()
    old = await service.tokens(app, browser, scope="openid profile data:read")
    service.store.apis.stepped = ("email",)
    for scope in ("profile", "openid profile", "email"):
        assert says(await browser.get(app.authorize_url(scope=scope)), WEAK), scope
    assert "code" in answer_of(await browser.get(app.authorize_url(scope="openid data:read")))
    new = json_of(await app.refresh(old["refresh_token"]))
    assert new["scope"] == "openid data:read"
    assert "email" not in json_of(await app.userinfo(new["access_token"]))


async def test_a_request_from_before_the_rule_gets_nothing_that_demands_it(service: Service) -> None:
    """A consent page, and a code that is on its way."""
    app = await service.add_app("notes", scopes=("profile", "data:read"))
    browser = await service.signed_in()
    where, only = app.authorize_url(scope="profile data:read"), app.authorize_url(scope="data:read")
    form = fields_of(await browser.get(where), "/api/oauth/authorize")
    service.store.apis.stepped = ("data:read",)
    answer = await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": "allow"})
    assert json_of(await app.exchange(answer_of(answer)["code"]))["scope"] == "profile"
    service.store.apis.stepped = ()
    code = answer_of(await browser.get(only))["code"]
    service.store.apis.stepped = ("data:read",)
    assert json_of(await app.exchange(code))["error"] in ("invalid_grant", "invalid_scope")


async def test_a_scope_of_an_api_demands_it(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    old = await shop.tokens("read write", browser, resource=ORDERS.identifier)
    scopes = tuple(replace(one, second_step=one.name == "write") for one in ORDERS.scopes)
    await service.store.apis.update(ORDERS.client_id, scopes=scopes)
    api = await service.store.apis.fresh(ORDERS.client_id)
    assert api
    assert api.scopes == scopes
    assert (await shop.refresh(old))["scope"] == "read"
    where = shop.app.authorize_url(scope="read write", resource=ORDERS.identifier)
    assert says(await browser.get(where), WEAK)
    assert not says(await browser.get(shop.app.authorize_url(scope="read", resource=ORDERS.identifier)), WEAK)
    await set_up(service, browser, target_of((await service.browser().get(where)).headers["Location"]))
    new = await shop.app.exchange(answer_of(await browser.consent(where))["code"])
    assert (json_of(new)["scope"], (await shop.refresh(json_of(new)))["scope"]) == ("read write", "read write")


async def test_a_token_exchange_widens_nothing(service: Service) -> None:
    shop = await Shop.open(service)
    tokens = await shop.tokens("read write", resource=ORDERS.identifier)
    scopes = tuple(replace(one, second_step=one.name == "write") for one in ORDERS.scopes)
    await service.store.apis.update(ORDERS.client_id, scopes=scopes)
    tokens = await shop.refresh(tokens)
    kind = "urn:ietf:params:oauth:token-type:access_token"
    grant = "urn:ietf:params:oauth:grant-type:token-exchange"
    subject = {"subject_token": tokens["access_token"], "subject_token_type": kind}
    wider = await shop.app.token(grant_type=grant, scope="write", **subject)
    assert json_of(wider)["error"] == "invalid_scope"


async def test_a_device_needs_a_person_with_the_step(service: Service) -> None:
    app = await demanding(service)
    device, browser = await Device.begun(app), await service.signed_in()
    page = await type_code(browser, device.user_code)
    assert says(page, WEAK)
    sign_in = offered(page)
    target = target_of(sign_in)
    assert (await browser.get(sign_in)).code == 200
    await set_up(service, browser, target)
    assert device.user_code in (await browser.get(target)).body.decode()
    await let_in(browser, device)
    tokens = json_of(await device.poll())
    assert (await app.refresh(tokens["refresh_token"])).code == 200


async def test_an_app_never_takes_the_operators_rule_back(service: Service) -> None:
    app = await service.store.apps.find("web-app")
    assert app
    assert not app.demands_step
    changed = replace(app, second_step=True)
    for mine in (True, False):
        assert replace(changed, owner_second_step=mine).demands_step


async def test_a_forged_mark_makes_nobody_set_a_step_up(service: Service) -> None:
    real = target_of((await service.browser().get((await demanding(service)).authorize_url())).headers["Location"])
    mark = parse_qs(urlsplit(real).query)["progress"][0]
    for target in (f"/account?progress={mark}", "/oauth/authorize?progress=x"):
        answer = await service.browser().sign_in(next=target)
        assert not answer.headers["Location"].startswith(SETUP)


def test_scopes_of_apis_keep_the_demand() -> None:
    api = replace(ORDERS, scopes=tuple(replace(one, second_step=True) for one in ORDERS.scopes))
    assert type(api).unpack(api.pack()) == api
