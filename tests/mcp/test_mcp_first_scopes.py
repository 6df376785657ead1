"""What an assistant asks for that registered itself and names no scope: what the metadata of /mcp say. RFC 6749 3.3."""

from __future__ import annotations

import pytest

from handlers.core.site import Site
from runtime.mcp_wiring import open_mcp
from settings.declared import Settings
from store.wiring import Store
from tests.oauth.pushed.test_pushed import address as push_address
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.http.mcp_app import mcp_site
from tests.support.http.self_registered import register

FIRST = ("profile", "data:read", "credits:read")


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """A server on which assistants register themselves, and first ask for more than the profile."""
    memory_store.self_registered.scopes = ("openid", "profile", "email", "data:read", "data:write")
    made = mcp_site(memory_store, base_url, dynamic_registration="open")
    server = open_mcp(Settings(mcp="on", mcp_scopes=FIRST), base_url, "Latchkey")
    object.__setattr__(made, "mcp", server)
    return made


@pytest.mark.gen_test
@pytest.mark.parametrize("way", ["browser", "pushed"])
async def test_a_request_without_scope_asks_for_what_the_metadata_name_and_the_app_may_have(
    service: Service, site: Site, way: str
) -> None:
    app, browser, server = await register(service.base_url), await service.signed_in(), f"{service.base_url}/mcp"
    found = await send(f"{service.base_url}/.well-known/oauth-protected-resource/mcp")
    assert json_of(found)["scopes_supported"] == list(FIRST)
    challenge = (await send(server, "POST", form={})).headers["WWW-Authenticate"]
    assert 'scope="profile data:read credits:read"' in challenge
    address = app.authorize_url(scope=None, resource=server, state=None)
    if way == "pushed":
        address = await push_address(app, scope=None, resource=server, state=None)
    tokens = json_of(await app.exchange(answer_of(await browser.consent(address))["code"]))
    assert tokens["scope"] == "profile data:read", "not credits:read, which such apps may not have"
    # Without a resource, and where it may have none of them, it gets the least that says who somebody is.
    for scopes, resource in ((site.store.self_registered.scopes, None), (("openid", "profile"), server)):
        site.store.self_registered.scopes = scopes
        site.store.apps.forget()
        code = answer_of(await browser.consent(app.authorize_url(scope=None, resource=resource, state=None)))["code"]
        assert json_of(await app.exchange(code))["scope"] == "profile"


@pytest.mark.gen_test
async def test_changed_first_scopes_count_for_requests_that_wait(service: Service, site: Site) -> None:
    app, browser = await register(service.base_url), await service.signed_in()
    address = await push_address(app, scope=None, resource=f"{service.base_url}/mcp", state=None)
    object.__setattr__(site, "mcp", open_mcp(Settings(mcp="on"), service.base_url, "Latchkey"))
    tokens = json_of(await app.exchange(answer_of(await browser.consent(address))["code"]))
    assert tokens["scope"] == "profile"
