"""A token for the MCP server works there only, and no other token works there. RFC 8707, RFC 9728, trap 51."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.core.site import Site
from store.wiring import Store
from tests.oauth.device.devices import Device, a_tv, let_in
from tests.oauth.pushed.test_pushed import address
from tests.support.http.api_shop import ORDERS, Shop, error_of
from tests.support.http.driver import ALL_SCOPES, Service, answer_of, json_of, send
from tests.support.http.mcp_app import call, mcp_site, message, post, result

pytestmark = [pytest.mark.gen_test]
SCOPE = "profile data:read"


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return mcp_site(memory_store, base_url)


def mcp(service: Service) -> str:
    return f"{service.base_url}/mcp"


async def tokens(service: Service, scope: str = SCOPE, **changes: Any) -> dict[str, Any]:
    return await service.tokens(scope=scope, resource=mcp(service), **changes)


async def own_calls(service: Service, token: str) -> list[int]:
    """The statuses of calls of our ordinary API."""
    paths = ("/api/oauth/userinfo", "/api/v1/data/_meta/usage", "/api/v1/data/notes", "/api/v1/credits/balance")
    found = [await send(service.base_url + path, headers={"Authorization": f"Bearer {token}"}) for path in paths]
    return [response.code for response in found]


@pytest.mark.trap(51)
async def test_a_token_for_the_mcp_server_is_dead_elsewhere(service: Service) -> None:
    issued = await tokens(service, " ".join(ALL_SCOPES))
    token = issued["access_token"]
    assert issued["scope"] == " ".join(ALL_SCOPES)
    assert issued["expires_in"] == 3600
    assert (await result(service, token, "who_am_i"))["structuredContent"]["sub"] == service.ada
    assert await own_calls(service, token) == [401] * 4
    body = '{"model": "latchkey-echo", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}'
    for headers in ({"Authorization": f"Bearer {token}"}, {"X-Api-Key": token}):
        kind = {"Content-Type": "application/json", **headers}
        assert (await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=body, headers=kind)).code == 401


@pytest.mark.trap(51)
async def test_a_token_of_ours_or_of_an_api_is_dead_at_the_mcp_server(service: Service) -> None:
    ours = await service.tokens(scope=" ".join(ALL_SCOPES))
    shop = await Shop.open(service)
    theirs = await shop.tokens("profile read", resource="https://orders.example")
    narrow = json_of(await service.web.refresh(ours["refresh_token"], scope="data:read"))
    for token in (ours["access_token"], narrow["access_token"], theirs["access_token"], narrow["refresh_token"], "x"):
        for body in (message("tools/list"), message("initialize"), message("no/such")):
            response = await post(service, token, body)
            assert (response.code, json_of(response)["error"]["data"]["error"]) == (401, "invalid_token")
        assert (await call(service, token, "who_am_i")).code == 401
        assert (await call(service, token, "get_document", collection="notes", id="a")).code == 401


async def test_a_refresh_stays_at_the_resource_that_the_person_saw(service: Service) -> None:
    first = await tokens(service)
    second = json_of(await service.web.refresh(first["refresh_token"]))
    assert (await call(service, second["access_token"], "who_am_i")).code == 200
    third = json_of(await service.web.refresh(second["refresh_token"], resource=mcp(service), scope="data:read"))
    assert third["scope"] == "data:read"
    assert (await call(service, third["access_token"], "who_am_i")).code == 403
    assert (await call(service, third["access_token"], "list_collections")).code == 200
    refused = await service.web.refresh(third["refresh_token"], resource=service.base_url)
    assert error_of(refused) == (400, "invalid_target")
    ours = await service.tokens(scope=SCOPE)
    assert error_of(await service.web.refresh(ours["refresh_token"], resource=mcp(service))) == (400, "invalid_target")
    code = await service.code(scope=SCOPE)
    assert error_of(await service.web.exchange(code, resource=mcp(service))) == (400, "invalid_target")
    code = await service.code(scope=SCOPE, resource=mcp(service))
    assert error_of(await service.web.exchange(code, resource=service.base_url)) == (400, "invalid_target")
    assert (await service.web.exchange(code, resource=f"{mcp(service)}/")).code == 200


async def test_requests_name_the_mcp_server_alone(service: Service) -> None:
    shop = await Shop.open(service, scopes=("openid", "profile", "data:read"))
    browser = await service.signed_in()
    for scope, resources in (
        ("profile", ("https://orders.example",)),
        ("profile", ("",)),
        ("profile read", ()),
        ("credits:read", ()),
    ):
        url = shop.app.authorize_url(scope=scope, resource=mcp(service))
        url += "".join(f"&resource={one or service.base_url}" for one in resources)
        answer = answer_of(await browser.get(url))
        assert answer["error"] in ("invalid_target", "invalid_scope"), (scope, resources)
    # SPEC 2.4's rule for hosted storage is about our own API.
    stores = await service.add_app("stores", hosted_storage=True)
    found = await service.tokens(stores, browser, scope="profile", resource=mcp(service))
    assert found["scope"] == "profile"


async def test_introspection_names_the_mcp_server_to_the_app_alone(service: Service) -> None:
    shop = await Shop.open(service)
    found = await shop.tokens("profile data:read", resource=mcp(service))
    told = await shop.to_app(found["access_token"])
    assert (told["aud"], told["scope"], told["active"]) == (mcp(service), "profile data:read", True)
    assert await shop.at(ORDERS, found["access_token"]) == {"active": False}
    service.store.apis.mcp = False
    assert await shop.to_app(found["access_token"]) == {"active": False}


async def test_a_server_that_is_off_gives_no_tokens_and_answers_404(service: Service, site: Site) -> None:
    code = await service.code(scope=SCOPE, resource=mcp(service))
    object.__setattr__(site, "mcp", None)
    service.store.apis.mcp = False
    assert error_of(await service.web.exchange(code)) == (400, "invalid_target")
    answer = answer_of(await (await service.signed_in()).get(service.web.authorize_url(resource=mcp(service))))
    assert answer["error"] == "invalid_target"
    assert (await post(service, None, message("tools/list"))).code == 404
    assert (await send(f"{service.base_url}/.well-known/oauth-protected-resource/mcp")).code == 404


async def test_metadata_and_challenges_lead_from_the_address_to_a_token(service: Service) -> None:
    well_known = f"{service.base_url}/.well-known/oauth-protected-resource/mcp"
    response = await post(service, None, message("tools/list"))
    named = f'scope="profile", resource_metadata="{well_known}"'
    assert response.code == 401
    assert response.headers["WWW-Authenticate"].startswith(f'Bearer realm="latchkey", {named}')
    dead = await post(service, "lk_at_x", message("tools/list"))
    assert dead.headers["WWW-Authenticate"].startswith(f'Bearer realm="latchkey", error="invalid_token", {named}')
    found = await send(well_known, headers={"MCP-Protocol-Version": "2026-07-28"})
    assert found.headers["Access-Control-Allow-Origin"] == "*"
    metadata = json_of(found)
    assert metadata["resource"] == mcp(service)
    assert metadata["authorization_servers"] == [service.base_url]
    assert metadata["scopes_supported"] == ["profile"]
    server = json_of(await send(f"{service.base_url}/.well-known/oauth-authorization-server"))
    assert server["issuer"] == service.base_url
    assert server["authorization_response_iss_parameter_supported"] is True
    assert "S256" in server["code_challenge_methods_supported"]


async def test_a_missing_scope_is_named_with_those_that_the_token_has(service: Service) -> None:
    token = (await tokens(service))["access_token"]
    refused = await call(service, token, "save_document", collection="notes", id="a", content=1)
    assert refused.code == 403
    challenge = refused.headers["WWW-Authenticate"]
    assert 'error="insufficient_scope", scope="profile data:read data:write", resource_metadata="' in challenge
    assert json_of(refused)["id"] == 1


async def test_withdrawn_scopes_and_ended_grants_count_at_once(service: Service) -> None:
    browser = await service.signed_in()
    token = (await tokens(service, browser=browser))["access_token"]
    assert (await call(service, token, "list_collections")).code == 200
    await browser.consent(
        service.web.authorize_url(scope=SCOPE, resource=mcp(service), prompt="consent"), untick=("data:read",)
    )
    assert (await call(service, token, "list_collections")).code == 403
    assert (await call(service, token, "who_am_i")).code == 200
    await service.web.revoke(token)
    assert (await call(service, token, "who_am_i")).code == 401
    again = (await tokens(service, browser=browser))["access_token"]
    assert (await call(service, again, "who_am_i")).code == 200
    page = await browser.get("/account/apps")
    await browser.submit(page, "/account/apps/web-app/revoke")
    assert (await call(service, again, "who_am_i")).code == 401
    assert (await post(service, again, message("tools/list"))).code == 401


async def test_every_door_of_authorization_leads_to_the_mcp_server(service: Service) -> None:
    browser, tv = await service.signed_in(), await a_tv(service)
    device = await Device.begun(tv, resource=mcp(service), scope=SCOPE)
    await let_in(browser, device)
    found = [json_of(await device.poll())]
    pushed = await address(service.web, scope=SCOPE, resource=mcp(service))
    code = answer_of(await browser.consent(pushed))["code"]
    found.append(json_of(await service.web.exchange(code)))
    for issued in found:
        assert issued["scope"] == SCOPE
        assert (await call(service, issued["access_token"], "list_collections")).code == 200
        assert await own_calls(service, issued["access_token"]) == [401] * 4


async def test_a_paused_app_is_refused_with_every_message_until_resumed(service: Service) -> None:
    browser = await service.signed_in()
    token = (await tokens(service, browser=browser))["access_token"]
    for button, status in (("pause", 403), ("resume", 200)):
        await browser.submit(await browser.get("/account/apps"), f"/account/apps/web-app/{button}")
        for answer in (await post(service, token, message("tools/list")), await call(service, token, "who_am_i")):
            assert answer.code == status
            assert (b"has paused this app" in answer.body) == (button == "pause")
            assert "WWW-Authenticate" not in answer.headers
