"""An app is switched to the profile `fapi2`: what it had from before passes no more."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.oauth.authorize import try_page
from store.apps.api_record import ApiRegistration, ApiScope
from store.refused import Refused
from tests.oauth.fapi2.test_algorithms import switched
from tests.oauth.pushed.test_pushed import address, is_over
from tests.support.http.api_shop import ORDERS, Shop, at
from tests.support.http.dpop_app import BoundApp, error_of
from tests.support.http.driver import CALLBACK, Service, fields_of, json_of
from tests.support.http.fapi_app import FapiApp

pytestmark = pytest.mark.gen_test(timeout=60)

SCOPES = ("openid", "profile", "data:read")


async def test_bearer_tokens_from_before_are_dead_and_their_family_lives_on_bound(service: Service) -> None:
    before = await service.add_app("bank", scopes=SCOPES)
    old = await service.tokens(before, scope="openid profile")
    assert (await before.userinfo(old["access_token"])).code == 200
    app = await switched(service, "bank")
    assert (await before.userinfo(old["access_token"])).code == 401
    assert (await app.call(old["access_token"])).code == 401, "nor is it one with a proof"
    assert (await app.introspect(old["access_token"])) == {"active": False}
    assert error_of(await app.refresh(old["refresh_token"], dpop="")) == (400, "invalid_dpop_proof")
    new = json_of(await app.refresh(old["refresh_token"]))
    assert (await app.call(new["access_token"])).code == 200
    assert (await app.introspect(new["access_token"]))["active"]


async def test_a_bearer_token_for_an_api_is_not_live_there_any_more(service: Service) -> None:
    shop = await Shop.open(service, "bank", scopes=("openid",), api_scopes=at(ORDERS, "read"))
    old = (await shop.tokens("openid read", resource=ORDERS.identifier))["access_token"]
    issued = await shop.app.token(grant_type="client_credentials", resource=ORDERS.identifier)
    own = json_of(issued)["access_token"]
    assert [(await shop.at(ORDERS, token))["active"] for token in (old, own)] == [True, True]
    await service.store.apps.update("bank", dpop_required=True)
    assert [await shop.at(ORDERS, token) for token in (old, own)] == [{"active": False}] * 2
    assert await shop.to_app(own) == {"active": False}


async def test_codes_and_open_pages_from_before_are_void(service: Service) -> None:
    app, browser = await FapiApp.of(service, profile="none"), await service.signed_in()
    code = (await app.answer(browser))["code"]
    page = await browser.get(app.address(await app.push(prompt="consent")))
    await service.store.apps.update(app.client_id, profile="fapi2")
    assert error_of(await app.exchange(code)) == (400, "invalid_grant")
    form = {**fields_of(page, "/api/oauth/authorize"), "decision": "allow"}
    decided = await browser.send("/api/oauth/authorize", "POST", form=form)
    assert decided.code == 400
    assert "Location" not in decided.headers


async def test_a_request_pushed_before_the_switch_is_void(service: Service) -> None:
    """Whoever pushed it may have proven less than the profile demands, such as an old secret."""
    before = await service.add_app("bank", scopes=SCOPES)
    pushed, browser = await address(before, scope="openid profile"), await service.signed_in()
    app = await switched(service, "bank")
    assert await is_over(browser, pushed)
    # Any other change leaves a pushed request alone, as long as it still passes.
    later = app.address(await app.push())
    await service.store.apps.update("bank", name="Another bank")
    assert (await browser.get(later)).code == 200


async def test_a_page_that_was_open_before_an_app_had_to_push_gives_no_code(service: Service) -> None:
    app, browser = await service.add_app("careful-app"), await service.signed_in()
    page = await browser.get(app.authorize_url())
    await service.store.apps.update("careful-app", require_pushed=True)
    form = {**fields_of(page, "/api/oauth/authorize"), "decision": "allow"}
    decided = await browser.send("/api/oauth/authorize", "POST", form=form)
    assert decided.code == 400
    assert "Location" not in decided.headers


async def test_the_secret_of_before_proves_nothing(service: Service) -> None:
    before = await service.add_app("bank", scopes=SCOPES)
    code = await service.code(before, scope="openid")
    await switched(service, "bank")
    assert error_of(await before.exchange(code)) == (401, "invalid_client")
    with pytest.raises(Refused):
        await service.store.apps.rotate_secret("bank")


async def test_dpop_required_ends_bearer_tokens_without_the_profile_too(service: Service) -> None:
    app = await service.add_app("careful")
    old = await service.tokens(app)
    await service.store.apps.update("careful", dpop_required=True)
    assert (await app.userinfo(old["access_token"])).code == 401
    with pytest.raises(Refused, match="invalid_dpop_proof"):
        await service.store.tokens.mint(service.ada, (await found(service, "careful")), ("profile",))
    bound = BoundApp(app)
    new = json_of(await bound.refresh(old["refresh_token"]))
    assert (await bound.call(new["access_token"])).code == 200


async def found(service: Service, client_id: str) -> Any:
    app = await service.store.apps.find(client_id)
    assert app
    return app


# The portal


async def test_the_owner_can_try_such_an_app(service: Service) -> None:
    app, browser = await FapiApp.of(service, owner=service.ada), await service.signed_in()
    where = f"/developer/apps/{app.client_id}/try"
    sent = await browser.submit(await browser.get(where), where)
    assert "request_uri=" in sent.headers["Location"]
    back = await browser.consent(sent.headers["Location"])
    assert back.headers["Location"].startswith(try_page(service.base_url, app.client_id))
    page = (await browser.get(back.headers["Location"])).body.decode()
    for words in ("The end", "Authorization: DPoP", service.ada):
        assert words in page
    families = [key async for key in service.store.client.scan_iter("*:family:*")]
    assert families
    assert all([await service.store.client.hget(key, "revoked") for key in families])


async def test_the_form_of_the_owner_cannot_weaken_an_app(service: Service) -> None:
    app, browser = await FapiApp.of(service, owner=service.ada), await service.confirmed()
    where, before = f"/developer/apps/{app.client_id}", await found(service, app.client_id)
    page = await browser.get(f"{where}/settings")
    for weaker in ({"redirect_uris": "http://localhost/cb"}, {"refresh_retry_seconds": "0"}, {"omit_iss": "on"}):
        refused = await browser.submit(page, where, **{**typed(before), **weaker})
        assert refused.code == 400
        assert b"the profile fapi2 demands" in refused.body
        assert await found(service, app.client_id) == before
    saved = await browser.submit(page, where, **{**typed(before), "name": "Another name"})
    assert saved.code == 303
    scope = ApiScope("old", "See old things")
    old = ApiRegistration("https://old.example", "Old", (scope,), token_format="jwt", signing_alg="RS256")
    api, _ = await service.store.apis.create(old)
    page = await browser.get(f"{where}/settings")
    refused = await browser.submit(page, where, **{**typed(before), f"scope:{api.client_id}/old": "on"})
    assert (refused.code, b"not those of https://old.example" in refused.body) == (400, True)
    assert (await found(service, app.client_id)).api_scopes == ()


def typed(app: Any) -> dict[str, str]:
    """The fields of the form that are no boxes."""
    return {"name": app.name, "redirect_uris": CALLBACK, "refresh_retry_seconds": "60", "homepage": ""}
