"""Scopes of APIs in the portal: what an owner may choose, and what the app gets by that."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from handlers.developer.api_boxes import MOST_APIS, api_boxes, offered_scopes
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.registration import Registration
from tests.support.browser.own_apps import URI, client_id_of, facts, own_app, register, site
from tests.support.http.api_shop import BILLS, ORDERS, READ, WRITE, about, at
from tests.support.http.driver import App, Browser, Service, fields_of, json_of, text_of

__all__ = ["facts", "site"]  # fixtures

READS, WRITES = at(ORDERS, "read", "write")


async def opened(service: Service) -> str:
    """Registers both APIs. Returns the secret of the one for orders."""
    await service.store.apis.create(BILLS)
    return (await service.store.apis.create(ORDERS))[1]


async def scopes_of(service: Service, client_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The scopes of APIs that an app has, and those among them that its owner chose."""
    app, _ = await service.store.apps.fresh(client_id)
    assert app is not None
    return app.api_scopes, app.owner_scopes


async def save(browser: Browser, client_id: str, untick: tuple[str, ...] = (), **fields: str) -> Any:
    where = f"/developer/apps/{client_id}"
    form = {
        **fields_of(await browser.get(f"{where}/settings"), where),
        "name": "My App",
        "redirect_uris": URI,
        **fields,
    }
    for scope in untick:
        del form[f"scope:{scope}"]
    return await browser.send(where, "POST", form=form)


def itself(app: App, **fields: str) -> Any:
    return app.token(grant_type="client_credentials", resource=ORDERS.identifier, **fields)


def test_boxes_are_of_active_apis_and_scopes_without_care() -> None:
    off = replace(BILLS, status="disabled")
    (group,) = api_boxes([ORDERS, off])
    assert (group.name, group.identifier) == ("Orders", ORDERS.identifier)
    assert [box.scope for box in group.boxes] == [READS]


def test_what_the_app_has_is_shown_so_that_it_can_be_given_back() -> None:
    gone = f"{BILLS.client_id}/read"
    groups = api_boxes([ORDERS], (READS, WRITES, gone))
    assert offered_scopes(groups) == (READS, WRITES, gone)
    assert groups[-1].name == ""


def test_many_apis_make_no_endless_form_and_those_in_use_come_first() -> None:
    many = [ApiRegistration(f"https://api{n}.example", f"API {n}", (ApiScope("read", "Read"),)) for n in range(200)]
    last = f"{many[-1].client_id}/read"
    groups = api_boxes(many, (last,))
    assert len(groups) == MOST_APIS + 1
    assert groups[0].boxes[0].scope == last


@pytest.mark.gen_test
async def test_an_owner_sees_titles_and_gets_tokens_for_the_chosen_scope(service: Service) -> None:
    secret = await opened(service)
    browser = await service.signed_in()
    shown = text_of(await browser.get("/developer/register"))
    assert "What can it do in Orders ? https://orders.example" in shown
    assert f"{READ.title} read {READ.detail}" in shown
    assert WRITE.title not in shown
    app = await own_app(service, browser, **{f"scope:{READS}": "on"})
    assert await scopes_of(service, app.client_id) == ((READS,), (READS,))
    tokens = await service.tokens(app, scope="read", resource=ORDERS.identifier)
    told = await about(service, tokens["access_token"], ORDERS.client_id, secret)
    assert (told["active"], told["scope"]) == (True, "read")


@pytest.mark.gen_test
async def test_an_app_may_have_scopes_of_an_api_alone_and_is_tried_with_them(service: Service) -> None:
    await opened(service)
    browser = await service.confirmed()
    page = await register(browser, **{"scope:profile": None, f"scope:{READS}": "on"})
    assert page.code == 200
    assert "no scope of this server" in text_of(page)
    where = f"/developer/apps/{client_id_of(page)}/try"
    begun = await browser.submit(await browser.get(where), where)
    back = await browser.consent(begun.headers["Location"])
    shown = text_of(await browser.get(back.headers["Location"]))
    assert "3. The API" in shown
    assert "4. The end" in shown
    assert await scopes_of(service, client_id_of(page)) == ((READS,), (READS,))


@pytest.mark.gen_test
@pytest.mark.parametrize("form", ["opaque", "jwt"])
@pytest.mark.parametrize("bound", [False, True])
async def test_a_try_shows_what_the_api_learns(service: Service, form: str, bound: bool) -> None:
    await opened(service)
    await service.store.apis.update(ORDERS.client_id, token_format=form)
    browser = await service.confirmed()
    more: dict[str, Any] = {"dpop_required": "on"} if bound else {}
    page = await register(browser, **{"scope:profile": None, f"scope:{READS}": "on", **more})
    where = f"/developer/apps/{client_id_of(page)}/try"
    begun = await browser.submit(await browser.get(where), where)
    back = await browser.consent(begun.headers["Location"])
    shown = text_of(await browser.get(back.headers["Location"]))
    scheme = "DPoP" if bound else "Bearer"
    learned = (
        f'"aud": "{ORDERS.identifier}"',
        f'"sub": "{service.ada}"',
        '"scope": "read"',
        f'"token_type": "{scheme}"',
    )
    for words in ("Your app calls Orders", f"GET {ORDERS.identifier} Authorization: {scheme} ", *learned):
        assert words in shown
    assert ("a signed JWT" in shown) == (form == "jwt")
    assert not re.findall(r"lk_at_[\w-]{20,}|[\w-]{20,}\.[\w-]{20,}\.", shown), "tokens are cut short"


@pytest.mark.gen_test
async def test_an_app_cannot_be_tried_while_its_only_api_is_off(service: Service) -> None:
    await opened(service)
    browser = await service.confirmed()
    page = await register(browser, **{"scope:profile": None, f"scope:{READS}": "on"})
    await service.store.apis.update(ORDERS.client_id, status="disabled")
    where = f"/developer/apps/{client_id_of(page)}/try"
    refused = await browser.submit(await browser.get(where), where)
    assert refused.code == 400
    assert "switched off or deleted" in text_of(refused)


@pytest.mark.gen_test
@pytest.mark.parametrize("name", [WRITES, "api_0123456789abcde/read", "read", "admin", f"{READS} {WRITES}"])
async def test_a_scope_without_a_box_is_not_registered(service: Service, name: str) -> None:
    await opened(service)
    app = await own_app(service, await service.signed_in(), **{f"scope:{name}": "on"})
    assert await scopes_of(service, app.client_id) == ((), ())


@pytest.mark.gen_test
async def test_an_owner_s_scopes_give_the_app_no_token_for_itself(service: Service) -> None:
    await opened(service)
    browser = await service.confirmed()
    app = await own_app(service, browser, **{f"scope:{READS}": "on"})
    refused = await itself(app)
    assert (refused.code, json_of(refused)["error"]) == (400, "unauthorized_client")
    # The operator gives the app another one; the owner's choice stays the owner's.
    await service.store.apps.update(app.client_id, api_scopes=(READS, WRITES))
    assert json_of(await itself(app))["scope"] == "write"
    assert json_of(await itself(app, scope="read"))["error"] == "invalid_scope"
    # An owner who gives a scope back and takes it again has chosen it.
    assert (await save(browser, app.client_id, untick=(WRITES,))).code == 303
    assert await scopes_of(service, app.client_id) == ((READS,), (READS,))
    assert json_of(await itself(app))["error"] == "unauthorized_client"
    await service.store.apps.update(app.client_id, api_scopes=(READS,), owner_scopes=())
    assert json_of(await itself(app))["scope"] == "read"
    assert (await save(browser, app.client_id)).code == 303
    assert json_of(await itself(app))["scope"] == "read", "what the operator gave stays the operator's"


@pytest.mark.gen_test
async def test_an_app_with_scopes_of_apis_alone_gets_no_token_for_itself_either(service: Service) -> None:
    await opened(service)
    app = await own_app(service, await service.confirmed(), **{f"scope:{READS}": "on"})
    await service.store.apps.update(app.client_id, scopes=())
    refused = await itself(app)
    assert (refused.code, json_of(refused)["error"]) == (400, "unauthorized_client")


@pytest.mark.gen_test
async def test_a_form_keeps_the_scopes_of_an_api_that_is_switched_off(service: Service) -> None:
    await opened(service)
    browser = await service.confirmed()
    app = await own_app(service, browser, **{f"scope:{READS}": "on"})
    await service.store.apis.update(ORDERS.client_id, status="disabled")
    assert "Scopes that no API has anymore" in text_of(await browser.get(f"/developer/apps/{app.client_id}/settings"))
    assert (await save(browser, app.client_id, homepage="https://mine.example/")).code == 303
    assert await scopes_of(service, app.client_id) == ((READS,), (READS,))
    assert (await save(browser, app.client_id, untick=(READS,))).code == 303
    assert await scopes_of(service, app.client_id) == ((), ())


def test_the_owner_s_scopes_survive_the_store() -> None:
    app = Registration("an-app", "An App", (URI,), ("profile",), api_scopes=(READS, WRITES), owner_scopes=(WRITES,))
    assert Registration.unpack(app.pack()) == app
    assert "ownerScopes" not in app.record()


@pytest.mark.gen_test
async def test_a_change_of_an_api_shows_in_the_form_at_once(service: Service) -> None:
    browser = await service.signed_in()
    assert "What can it do in" not in text_of(await browser.get("/developer/register"))
    await opened(service)
    assert "What can it do in Orders" in text_of(await browser.get("/developer/register"))
    await service.store.apis.update(ORDERS.client_id, name="Purchases")
    assert "What can it do in Purchases" in text_of(await browser.get("/developer/register"))
