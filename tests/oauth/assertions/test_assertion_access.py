"""What an assertion gives: one resource, scopes that all agree on, and nothing that the person took away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.moving.person_export import as_lines
from store.names import ASSERTION_GRANT
from tests.oauth.assertions.identity_provider import MOST, Enterprise, granted, refused
from tests.support.http.api_shop import BILLS, ORDERS, Shop, called
from tests.support.http.documented_app import URL, Publisher
from tests.support.http.dpop_app import BoundApp
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.http.key_app import KeyApp, key_for, set_of
from tests.support.store.checked_store import checked, findings

pytestmark = pytest.mark.gen_test(timeout=30)
APPS = "/account/apps"


async def page_of(service: Service) -> str:
    """The page of connected apps."""
    return (await (await service.signed_in()).get(APPS)).body.decode()


async def test_a_token_is_for_one_resource_and_scopes_that_all_agree_on(
    enterprise: Enterprise, service: Service
) -> None:
    shop = await Shop.open(service)
    jwt = ApiRegistration("https://jwt.example", "Signed", (ApiScope("read", "See"),), token_format="jwt")
    await service.store.apis.create(jwt)
    await service.store.apps.update("shop", api_scopes=(*_registered(shop), f"{jwt.client_id}/read"))
    most = (
        (service.base_url, MOST),
        (ORDERS.identifier, ("*",)),
        (BILLS.identifier, ("admin",)),
        (jwt.identifier, ("read",)),
    )
    enterprise.trusts("shop", resources=most)

    def said(**changes: Any) -> str:
        return enterprise.assertion(client_id="shop", **changes)

    orders = await granted(shop.app, said(resource=ORDERS.identifier))
    assert (orders["scope"], orders["expires_in"]) == ("read", 300), "`write` needs care, and nobody named it"
    assert (await shop.at(ORDERS, orders["access_token"]))["scope"] == "read"
    assert (await shop.at(BILLS, orders["access_token"])) == {"active": False}
    assert (await called(service, orders["access_token"])).code == 401
    bills = await granted(shop.app, said(resource=[BILLS.identifier], scope="admin read"))
    assert bills["scope"] == "admin"
    signed = await granted(shop.app, said(resource=jwt.identifier))
    assert signed["access_token"].count(".") == 2
    # Of several, the request names one.
    several = said(resource=[ORDERS.identifier, BILLS.identifier])
    assert (await refused(shop.app, several))[:2] == (400, "invalid_target")
    assert (await refused(shop.app, several, resource=service.base_url))[:2] == (400, "invalid_target")
    assert (await granted(shop.app, several, resource=BILLS.identifier))["scope"] == "admin"
    assert (await refused(shop.app, said()))[:2] == (400, "invalid_target")
    assert (await granted(shop.app, said(), resource=f"{service.base_url}/"))[
        "scope"
    ] == "profile email apps:read data:read"
    assert (await refused(shop.app, said(resource=f"{service.base_url}/mcp")))[:2] == (400, "invalid_grant")
    # What the operator names and nobody registered gives nothing.
    enterprise.trusts("shop", resources=(("https://gone.example", ("*",)),))
    assert (await refused(shop.app, said()))[:2] == (400, "invalid_target")
    assert findings(await checked(service.store, deep=True)) == []


def _registered(shop: Shop) -> tuple[str, ...]:
    return tuple(f"{api.client_id}/{scope.name}" for api in (ORDERS, BILLS) for scope in api.scopes)


async def test_spending_has_the_limit_that_the_operator_names(enterprise: Enterprise, service: Service) -> None:
    everything = ((service.base_url, ("*",)),)
    enterprise.trusts(resources=everything)
    assert "credits:spend" not in (await granted(service.web, enterprise.assertion()))["scope"]
    enterprise.trusts(resources=((service.base_url, ("credits:spend",)),), spend_limit=3_000_000)
    assert (await granted(service.web, enterprise.assertion()))["scope"] == "credits:spend"
    assert "Its limit is $3.00." in await page_of(service)
    # The person changes it, and a later assertion does not.
    browser = await service.confirmed()
    page = await browser.get(APPS)
    assert (await browser.submit(page, f"{APPS}/web-app/limit", dollars="1")).code == 303
    await granted(service.web, enterprise.assertion())
    assert "Its limit is $1.00." in await page_of(service)
    # Nor does one that gives the scope again.
    await service.store.client.hset(keys.grant(service.ada, "web-app"), "scope", "profile")
    await granted(service.web, enterprise.assertion())
    assert "Its limit is $1.00." in await page_of(service)


async def test_a_lower_limit_of_the_issuer_counts_from_the_next_assertion(
    enterprise: Enterprise, service: Service
) -> None:
    for limit, shown in ((3, 3), (2, 2), (4, 2)):
        enterprise.trusts(resources=((service.base_url, ("credits:spend",)),), spend_limit=limit * 1_000_000)
        await granted(service.web, enterprise.assertion())
        assert f"Its limit is ${shown}.00." in await page_of(service), "only the person raises it"
    # A limit that the person chose is theirs.
    browser = await service.confirmed()
    page = await browser.get(APPS)
    assert (await browser.submit(page, f"{APPS}/web-app/limit", dollars="3")).code == 303
    enterprise.trusts(resources=((service.base_url, ("credits:spend",)),), spend_limit=1_000_000)
    await granted(service.web, enterprise.assertion())
    assert "Its limit is $3.00." in await page_of(service)
    assert findings(await checked(service.store, deep=True)) == []


async def test_an_app_that_the_operator_disconnected_stays_out(enterprise: Enterprise, service: Service) -> None:
    await granted(service.web, enterprise.assertion())
    await service.store.people_acts.parts.disconnect(service.ada, "web-app")
    assert "Only they" in (await refused(service.web, enterprise.assertion()))[2]
    # Also when the connection has left no trace.
    await service.store.client.delete(keys.grant(service.ada, "web-app"))
    assert "Only they" in (await refused(service.web, enterprise.assertion()))[2]
    browser = await service.signed_in()
    assert "code" in answer_of(await browser.consent(service.web.authorize_url(scope="profile")))
    assert (await granted(service.web, enterprise.assertion(scope="profile")))["scope"] == "profile"


async def test_an_app_that_was_disconnected_before_the_issuer_was_trusted_stays_out(
    enterprise: Enterprise, service: Service
) -> None:
    enterprise.trusts("another-app")
    browser = await service.signed_in()
    assert "code" in answer_of(await browser.consent(service.web.authorize_url(scope="profile")))
    assert (await browser.submit(await browser.get(APPS), f"{APPS}/web-app/revoke")).code == 303
    assert not await service.store.client.hexists(keys.person(service.ada)["user"], "kept_out:web-app")
    enterprise.trusts()
    assert "Only they" in (await refused(service.web, enterprise.assertion()))[2]


async def test_an_issuer_gives_nothing_that_the_person_left_out(enterprise: Enterprise, service: Service) -> None:
    enterprise.trusts(resources=((service.base_url, ("profile", "credits:spend")),), spend_limit=3_000_000)
    browser, web = await service.signed_in(), service.web
    spends = await service.tokens(web, browser, scope="profile credits:spend")
    url = web.authorize_url(scope="profile credits:spend", prompt="consent")
    assert "code" in answer_of(await browser.consent(url, untick=("credits:spend",)))
    assert (await granted(web, enterprise.assertion()))["scope"] == "profile"
    assert "Only they can" in (await refused(web, enterprise.assertion(scope="credits:spend")))[2]
    # Otherwise an earlier sign-in would have it again, for longer than the operator trusts the issuer.
    assert json_of(await web.refresh(spends["refresh_token"]))["scope"] == "profile"
    person = await service.store.operator.find("ada@example.com")
    exported = [json.loads(line) async for line, _ in as_lines(service.store, person)]
    assert [one["leftOut"] for one in exported if one["type"] == "app"] == [["credits:spend"]]
    assert findings(await checked(service.store, deep=True)) == []
    # Until they allow it.
    assert "code" in answer_of(await browser.consent(url))
    assert (await granted(web, enterprise.assertion()))["scope"] == "profile credits:spend"
    assert not await service.store.client.hexists(keys.grant(service.ada, "web-app"), "left_out")


async def test_the_person_sees_who_connected_the_app_and_keeps_it_out(enterprise: Enterprise, service: Service) -> None:
    token = (await granted(service.web, enterprise.assertion()))["access_token"]
    shown = await page_of(service)
    assert "<bdi>Example Works</bdi>" in shown
    assert enterprise.provider.url.removeprefix("http://") in shown
    person = await service.store.operator.find("ada@example.com")
    assert [one.event for one in person.activity].count("app_connected_by_issuer") == 1
    exported = [json.loads(line) async for line, _ in as_lines(service.store, person)]
    assert [one["connectedBy"] for one in exported if one["type"] == "app"] == [enterprise.provider.url]
    # A paused app gets tokens, as by a refresh, and they are refused.
    browser = await service.signed_in()
    assert (await browser.submit(await browser.get(APPS), f"{APPS}/web-app/pause")).code == 303
    paused = (await granted(service.web, enterprise.assertion()))["access_token"]
    assert json_of(await called(service, paused))["error"] == "app_paused"
    assert (await browser.submit(await browser.get(APPS), f"{APPS}/web-app/revoke")).code == 303
    assert (await called(service, token)).code == 401
    status, code, said = await refused(service.web, enterprise.assertion())
    assert (status, code) == (400, "invalid_grant")
    assert "Only they can allow it again" in said
    assert findings(await checked(service.store, deep=True)) == []
    # Also after the grant has ended.
    await service.store.client.delete(f"{{{service.ada[:3]}}}:{service.ada}:grant:web-app")
    assert "Only they" in (await refused(service.web, enterprise.assertion()))[2]
    person = await service.store.operator.find("ada@example.com")
    exported = [json.loads(line) async for line, _ in as_lines(service.store, person)]
    assert [one["keptOutApps"] for one in exported if one["type"] == "profile"] == [["web-app"]]
    # The person's own word counts, and is theirs.
    assert "code" in answer_of(await browser.consent(service.web.authorize_url()))
    assert (await granted(service.web, enterprise.assertion(scope="profile data:read")))["scope"]
    assert "Example Works" not in await page_of(service)
    # What the issuer adds to it is the issuer's.
    assert (await granted(service.web, enterprise.assertion(scope="apps:read")))["scope"]
    assert "Example Works" in await page_of(service)


async def test_the_operator_may_leave_the_consent_to_the_person(enterprise: Enterprise, service: Service) -> None:
    enterprise.trusts(implied=False)
    assert "has not allowed this app yet" in (await refused(service.web, enterprise.assertion()))[2]
    browser = await service.signed_in()
    url = service.web.authorize_url(scope="profile data:read")
    assert "code" in answer_of(await browser.consent(url))
    assert (await granted(service.web, enterprise.assertion()))["scope"] == "profile data:read"
    assert (await browser.submit(await browser.get(APPS), f"{APPS}/web-app/revoke")).code == 303
    assert (await refused(service.web, enterprise.assertion()))[:2] == (400, "invalid_grant")


async def test_what_an_issuer_gave_is_no_word_of_the_person(enterprise: Enterprise, service: Service) -> None:
    assert (await granted(service.web, enterprise.assertion()))["scope"]
    enterprise.trusts(implied=False)
    assert "has not allowed this app yet" in (await refused(service.web, enterprise.assertion()))[2]
    browser = await service.signed_in()
    assert "code" in answer_of(await browser.consent(service.web.authorize_url(scope="profile", prompt="consent")))
    assert (await granted(service.web, enterprise.assertion()))["scope"]


async def test_a_sign_in_without_a_page_is_no_word_of_the_person(enterprise: Enterprise, service: Service) -> None:
    await service.store.apps.update("web-app", first_party=True)
    assert (await granted(service.web, enterprise.assertion()))["scope"]
    browser, url = await service.signed_in(), service.web.authorize_url(scope="profile")
    assert "code" in answer_of(await browser.get(url))
    assert "Example Works" in await page_of(service)
    assert (await browser.submit(await browser.get(APPS), f"{APPS}/web-app/revoke")).code == 303
    assert (await browser.get(url)).code == 200
    assert "Only they" in (await refused(service.web, enterprise.assertion()))[2]


async def test_an_assertion_that_is_bound_to_a_key_counts_with_its_proof(
    enterprise: Enterprise, service: Service
) -> None:
    bound, thief = BoundApp(service.web), BoundApp(service.web)
    text = enterprise.assertion(cnf={"jkt": bound.device.jkt}, scope="profile")
    fields = {"grant_type": ASSERTION_GRANT, "assertion": text}
    assert json_of(await bound.token(proof="", **fields))["error"] == "invalid_dpop_proof"
    assert json_of(await thief.token(**fields))["error"] == "invalid_grant"
    answer = json_of(await bound.token(**fields))
    assert answer["token_type"] == "DPoP"
    assert (await bound.call(answer["access_token"])).code == 200
    assert (await called(service, answer["access_token"])).code == 401


async def test_requests_count_in_the_window_of_the_app(enterprise: Enterprise, service: Service) -> None:
    form = {"grant_type": ASSERTION_GRANT, "client_id": "web-app", "client_secret": service.web.secret or ""}
    url = f"{service.base_url}/api/oauth/token"
    first = await send(url, "POST", form={**form, "assertion": enterprise.assertion()})
    second = await send(url, "POST", form={**form, "assertion": enterprise.assertion(aud="https://other.example")})
    assert (first.code, second.code) == (200, 400)
    assert {one.headers["X-RateLimit-Limit"] for one in (first, second)} == {"600"}
    left = [int(one.headers["X-RateLimit-Remaining"]) for one in (first, second)]
    assert left[1] < left[0], "a refused one counts, too"


async def test_an_app_of_a_metadata_document_may_begin_here(
    enterprise: Enterprise, service: Service, tmp_path: Path
) -> None:
    publisher = await Publisher.make(tmp_path)
    key = key_for("ES256", 2)
    publisher.publishes(token_endpoint_auth_method="private_key_jwt", jwks=json.loads(set_of(key)))
    service.store.apps.documents = True
    object.__setattr__(enterprise.site, "client_documents", publisher.documents)
    app = KeyApp(service.base_url, URL, None, key=key)
    assert (await refused(app, enterprise.assertion(client_id=URL)))[:2] == (401, "invalid_client")
    assert publisher.fetched == 0
    enterprise.trusts(URL, resources=((service.base_url, ("profile",)),))
    assert (await granted(app, enterprise.assertion(client_id=URL)))["scope"] == "profile"
    assert (await granted(app, enterprise.assertion(client_id=URL)))["scope"] == "profile"
    assert publisher.fetched == 1
    await publisher.domain.receiver.close()
