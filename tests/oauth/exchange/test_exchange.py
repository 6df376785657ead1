"""Token exchange: who gets a delegated token, what it says, and what ends it. RFC 8693."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from store.oauth.exchange.token_exchange import DEEPEST
from tests.oauth.exchange.exchanging import JWT, TYPE, exchange, form_of, handed, refused, root_of
from tests.support.http.api_shop import BILLS, ORDERS, Shop, about, called
from tests.support.http.dpop_app import BoundApp, Device
from tests.support.http.driver import App, Service, json_of, send
from tests.support.store.checked_store import checked, findings

CREDITS: dict[str, Any] = {"type": "credits", "limit": 3000, "period": "total"}


async def active(service: Service, token: str, app: App | None = None) -> bool:
    """Whether a token is live, for its app and for a call."""
    app = app or service.web
    told = (await about(service, token, app.client_id, app.secret))["active"]
    answered = (await called(service, token)).code
    assert told == (answered == 200)
    return bool(told)


@pytest.mark.gen_test
@pytest.mark.rfc("8693 2.2.1 answer")
@pytest.mark.rfc("8693 2.2.1 scope")
@pytest.mark.rfc("8693 4.1 act")
async def test_an_app_hands_on_a_token_that_says_who_acts(service: Service) -> None:
    root = await root_of(service, details=[CREDITS])
    child = await handed(
        service.web, root, scope="profile credits:spend", authorization_details=[{**CREDITS, "limit": 50}]
    )
    assert child.keys() == {
        *("access_token", "issued_token_type", "token_type", "expires_in", "scope", "authorization_details")
    }, "no refresh token"
    assert (child["issued_token_type"], child["token_type"]) == (TYPE, "Bearer")
    assert child["scope"] == "profile credits:spend"
    assert child["authorization_details"] == [{**CREDITS, "limit": 50}]
    assert 3500 < child["expires_in"] <= 3600
    act = {"sub": "web-app", "client_id": "web-app"}
    facts = await about(service, child["access_token"], "web-app", service.web.secret)
    assert (facts["act"], facts["sub"], facts["client_id"]) == (act, service.ada, "web-app")
    assert (facts["authorization_details"], facts["budget_used"]) == ([{**CREDITS, "limit": 50}], 0)
    assert "act" not in await about(service, root, "web-app", service.web.secret)
    grandchild = await handed(service.web, child["access_token"], scope="profile")
    facts = await about(service, grandchild["access_token"], "web-app", service.web.secret)
    assert (facts["act"], facts["scope"]) == ({**act, "act": act}, "profile")
    assert await active(service, grandchild["access_token"])
    assert findings(await checked(service.store, deep=True)) == []


@pytest.mark.gen_test
@pytest.mark.trap(63)
@pytest.mark.rfc("8693 2.1 resource")
@pytest.mark.rfc("8693 2.1 several")
@pytest.mark.rfc("8693 2.2.2 invalid_target")
async def test_nothing_that_comes_from_a_token_is_wider(service: Service) -> None:
    root = await root_of(service, details=[{**CREDITS, "models": ["latchkey-echo"]}])
    child = await handed(
        service.web, root, scope="profile credits:spend", authorization_details=[CREDITS], expires_in="60"
    )
    token = child["access_token"]
    assert child["expires_in"] == 60
    assert child["authorization_details"] == [{**CREDITS, "models": ["latchkey-echo"]}], "those of its budget above"
    details = {"authorization_details": [{**CREDITS, "limit": 3001}]}
    assert await refused(service.web, token, **details) == (400, "invalid_authorization_details")
    for wrong in ({**CREDITS, "period": "month"}, {"type": "llm-inference", "budget": 1}):
        assert await refused(service.web, token, authorization_details=[wrong]) == (
            400,
            "invalid_authorization_details",
        )
    narrow = (await handed(service.web, token, scope="profile"))["access_token"]
    assert await refused(service.web, narrow, authorization_details=[CREDITS]) == (400, "invalid_authorization_details")
    for scope in ("data:read", "profile data:read", "invented", "data:write", "email"):
        assert await refused(service.web, token, scope=scope) == (400, "invalid_scope")
    base = service.base_url
    for resource in ("https://orders.example", f"{base}/mcp", "https://invented.example", f"{base}#a", "/", "orders"):
        assert await refused(service.web, token, resource=resource) == (400, "invalid_target")
        assert await refused(service.web, token, audience=resource) == (400, "invalid_target")
    assert await refused(service.web, token, expires_in="61") == (400, "invalid_request")
    same = await handed(service.web, token, resource=base, audience=f"{base}/")
    assert same["expires_in"] <= 60
    # RFC 8693 2.1: both may be repeated.
    for audiences, answer in (((base, f"{base}/"), None), ((base, f"{base}/mcp"), "invalid_target")):
        sent = {**form_of(token), "client_id": "web-app", "client_secret": service.web.secret, "audience": audiences}
        response = await send(f"{base}/api/oauth/token", "POST", body=urlencode(sent, doseq=True))
        assert json_of(response).get("error") == answer


@pytest.mark.gen_test
@pytest.mark.trap(63)
@pytest.mark.rfc("8693 2.1 unharmed")
async def test_there_is_no_sixth_generation(service: Service) -> None:
    token = await root_of(service)
    chain = [token]
    for _ in range(DEEPEST):
        chain.append((await handed(service.web, chain[-1]))["access_token"])
    assert await refused(service.web, chain[-1]) == (400, "invalid_request")
    assert [await active(service, one) for one in chain] == [True] * 6


@pytest.mark.gen_test
@pytest.mark.trap(63)
async def test_a_chain_through_a_revoked_token_is_dead(service: Service) -> None:
    for ended in range(3):
        chain = [await root_of(service)]
        for _ in range(3):
            chain.append((await handed(service.web, chain[-1]))["access_token"])
        await service.web.revoke(chain[ended], client_id="web-app", client_secret=service.web.secret or "")
        assert [await active(service, one) for one in chain] == [True] * ended + [False] * (4 - ended)
        for one in chain[ended:]:
            assert await refused(service.web, one) == (400, "invalid_request")


@pytest.mark.gen_test
async def test_a_child_ends_with_the_refresh_token_of_its_root_and_with_the_grant(service: Service) -> None:
    browser = await service.signed_in()
    for how in ("refresh token", "replay", "disconnect"):
        tokens = await service.tokens(scope="profile", prompt="consent")
        child = await handed(service.web, (await handed(service.web, tokens["access_token"]))["access_token"])
        fresh = json_of(await service.web.refresh(tokens["refresh_token"]))
        assert await active(service, child["access_token"]), "the access token that it comes from lives"
        if how == "refresh token":
            await service.web.revoke(fresh["refresh_token"])
        elif how == "replay":
            await service.web.refresh(fresh["refresh_token"])
            await service.web.refresh(tokens["refresh_token"])
        else:
            page = await browser.get("/account/apps")
            await browser.submit(page, "/account/apps/web-app/revoke")
        assert not await active(service, child["access_token"])


@pytest.mark.gen_test
@pytest.mark.rfc("8693 2.1 authentication")
async def test_only_the_app_of_a_token_hands_it_on(service: Service) -> None:
    root = await root_of(service)
    other = await service.add_app("other-app")
    assert await refused(other, root) == (400, "invalid_request")
    assert await refused(other, "lk_at_invented") == (400, "invalid_request")
    tokens = await service.tokens(scope="profile", prompt="consent")
    assert await refused(service.web, tokens["refresh_token"]) == (400, "invalid_request")
    response = await exchange(service.web, root, client_secret="wrong")
    assert (response.code, json_of(response)["error"]) == (401, "invalid_client")
    shop = await Shop.open(service)
    api = App(service.base_url, ORDERS.client_id, shop.secrets[ORDERS.client_id])
    assert await refused(api, root) == (400, "invalid_request"), "the token is not for this API"
    assert (await exchange(App(service.base_url, ORDERS.client_id, "wrong"), root)).code == 401


@pytest.mark.gen_test
@pytest.mark.trap(51)
async def test_an_api_hands_on_its_token_and_no_third_does(service: Service) -> None:
    shop = await Shop.open(service)
    orders, bills = (App(service.base_url, api.client_id, shop.secrets[api.client_id]) for api in (ORDERS, BILLS))
    token = (await shop.tokens("openid data:read read write", resource=ORDERS.identifier))["access_token"]
    first = await handed(shop.app, token, resource=ORDERS.identifier)
    child = await handed(
        orders, first["access_token"], scope="read", audience=ORDERS.client_id, resource=ORDERS.identifier
    )
    assert child["expires_in"] <= 300
    facts = await shop.at(ORDERS, child["access_token"])
    of_app, of_api = ({"sub": one, "client_id": one} for one in ("shop", ORDERS.client_id))
    assert (facts["act"], facts["scope"], facts["aud"]) == ({**of_api, "act": of_app}, "read", ORDERS.identifier)
    assert facts["client_id"] == "shop"
    assert await shop.at(BILLS, child["access_token"]) == {"active": False}
    assert (await called(service, child["access_token"])).code == 401
    assert await refused(bills, token) == (400, "invalid_request")
    for target in (BILLS.identifier, service.base_url):
        assert await refused(orders, token, resource=target) == (400, "invalid_target")
        assert await refused(shop.app, token, resource=target) == (400, "invalid_target")
    assert await refused(orders, token, scope="data:read") == (400, "invalid_scope")
    assert await refused(orders, token, scope="admin") == (400, "invalid_scope")
    assert findings(await checked(service.store, deep=True)) == []


@pytest.mark.gen_test
@pytest.mark.rfc("8693 6 minimal")
async def test_a_jwt_says_who_acts_and_may_be_the_subject_token(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt")
    token = (await shop.tokens("read write", resource=ORDERS.identifier))["access_token"]
    child = await handed(shop.app, token, subject_token_type=JWT, scope="read")
    claims = (await service.store.signing_keys.verify(child["access_token"], types=("at+jwt",))).claims
    facts = await shop.at(ORDERS, child["access_token"])
    assert claims["act"] == facts["act"] == {"sub": "shop", "client_id": "shop"}
    assert (claims["scope"], claims["aud"], claims["sub"]) == ("read", ORDERS.identifier, facts["sub"])
    whole = (await service.store.signing_keys.verify(token, types=("at+jwt",))).claims
    assert claims["exp"] <= whole["exp"]
    assert not claims.keys() & {"email", "name", "picture", "groups"}


@pytest.mark.gen_test
async def test_what_comes_from_a_bound_token_is_bound(service: Service) -> None:
    for public in (False, True):
        app = BoundApp(await service.add_app(f"bound-{public}", public=public))
        tokens = json_of(await app.exchange(await service.code(app.app, scope="profile")))
        form = form_of(tokens["access_token"])
        unproven = await app.token(proof="", **form)
        assert (unproven.code, json_of(unproven)["error"]) == (400, "invalid_dpop_proof")
        child = json_of(await app.token(**form))
        assert child["token_type"] == "DPoP"
        assert (await app.call(child["access_token"])).code == 200
        assert (await called(service, child["access_token"])).code == 401
        helper = BoundApp(app.app, Device())
        answer = await helper.token(**form)
        if public:
            assert (answer.code, json_of(answer)["error"]) == (400, "invalid_request"), "nobody proved the app"
        else:
            assert (await helper.call(json_of(answer)["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.rfc("8693 2.1 required")
@pytest.mark.rfc("8693 2.1 actor type")
@pytest.mark.rfc("8693 2.1 validation")
@pytest.mark.rfc("8693 2.2.2 invalid_request")
@pytest.mark.rfc("8693 3 types")
async def test_malformed_requests_are_refused(service: Service) -> None:
    root = await root_of(service)
    other = await service.tokens(service.native, scope="profile")
    for wrong in (
        {"subject_token": None},
        {"subject_token_type": None},
        {"subject_token_type": "urn:ietf:params:oauth:token-type:id_token"},
        {"subject_token_type": JWT},
        {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        {"actor_token": root},
        {"actor_token_type": TYPE},
        {"actor_token": "invented", "actor_token_type": TYPE},
        {"actor_token": root, "actor_token_type": JWT},
        {"actor_token": other["access_token"], "actor_token_type": TYPE},
        {"expires_in": "0"},
        {"expires_in": "-1"},
        {"expires_in": "1.5"},
        {"expires_in": str(10**17)},
        {"name": "n" * 101},
        {"name": "a\u202eb"},
        {"name": "a" + 9 * "\u0316"},
        {"audience": "a" * 2049},
    ):
        assert await refused(service.web, root, **wrong) == (400, "invalid_request"), wrong
    await handed(service.web, root, actor_token=root, actor_token_type=TYPE, requested_token_type=TYPE, name="Planner")
