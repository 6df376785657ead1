"""Authorization requests that name resources: in the query, by form, as JSON, pushed and signed. RFC 8707 2.1."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

from tests.oauth.pushed.test_pushed import at as pushed_at
from tests.oauth.pushed.test_pushed import parameters
from tests.support.http.api_shop import BILLS, BOTH, ORDERS, OWN, READ, Shop, error_of
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.http.key_app import key_app

pytestmark = pytest.mark.gen_test(timeout=60)


def redirect_error(response: Any) -> str:
    """The error of a redirect to the app."""
    assert response.code == 303, response.body
    return answer_of(response)["error"]


@pytest.mark.rfc("8707 2.1 error")
async def test_wrong_targets_go_back_to_the_app(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    for changes, code in (
        ({"scope": "profile", "resource": "https://nobody.example"}, "invalid_target"),
        ({"scope": "write data:read"}, "invalid_target"),
        ({"scope": "read"}, "invalid_target"),
        ({"scope": "write", "resource": BILLS.identifier}, "invalid_scope"),
        ({"scope": "nothing"}, "invalid_scope"),
    ):
        assert redirect_error(await browser.get(shop.app.authorize_url(**changes))) == code, changes
    two = (
        shop.app.authorize_url(scope="read")
        + "&"
        + urlencode({"resource": [ORDERS.identifier, BILLS.identifier]}, doseq=True)
    )
    assert redirect_error(await browser.get(two)) == "invalid_target"
    await service.store.apis.update(ORDERS.client_id, status="disabled")
    url = shop.app.authorize_url(scope="write")
    assert redirect_error(await browser.get(url)) == "invalid_target"
    await service.store.apis.update(ORDERS.client_id, status="active", scopes=(READ,))
    assert redirect_error(await browser.get(url)) == "invalid_scope"


@pytest.mark.rfc("8707 2 several")
async def test_a_request_may_name_ours_beside_the_api_by_query_form_and_json(service: Service) -> None:
    shop = await Shop.open(service)
    browser = await service.signed_in()
    both = {"resource": [service.base_url, ORDERS.identifier]}
    url = shop.app.authorize_url(scope="data:read write") + "&" + urlencode(both, doseq=True)
    tokens = json_of(await shop.app.exchange(answer_of(await browser.consent(url))["code"]))
    assert tokens["scope"] == "write"
    query = url.partition("?")[2]
    posted = await browser.send(
        "/oauth/authorize", "POST", body=query, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert posted.code == 303
    assert "code" in answer_of(await browser.get(posted.headers["Location"]))
    fields: dict[str, Any] = {
        name: values if name == "resource" else values[0] for name, values in parse_qs(query).items()
    }
    posted = await browser.send(
        "/oauth/authorize", "POST", body=json.dumps(fields), headers={"Content-Type": "application/json"}
    )
    assert posted.code == 303, posted.body
    assert "code" in answer_of(await browser.get(posted.headers["Location"]))
    assert answer_of(await browser.get(f"{url}&state=b"))["error"] == "invalid_request", "nothing else is repeated"


async def test_a_pushed_request_may_name_resources(service: Service) -> None:
    shop = await Shop.open(service)
    both = {"resource": [service.base_url, ORDERS.identifier]}
    form = {**parameters(shop.app, scope="data:read write"), "client_secret": shop.app.secret or ""}
    url, json_body = f"{service.base_url}/api/oauth/par", {"Content-Type": "application/json"}
    browser = await service.signed_in()
    for body, headers in (
        (urlencode({**form, **both}, doseq=True), {}),
        (json.dumps({**form, **both}), json_body),
        (json.dumps({**form, "resource": ORDERS.identifier}), json_body),
    ):
        pushed = await send(url, "POST", body=body, headers=headers)
        assert pushed.code == 201, pushed.body
        back = await browser.consent(pushed_at(shop.app, json_of(pushed)["request_uri"]))
        assert json_of(await shop.app.exchange(answer_of(back)["code"]))["scope"] == "write"
    for resource in ("https://nobody.example", [ORDERS.identifier, BILLS.identifier]):
        refused = await send(url, "POST", body=json.dumps({**form, "resource": resource}), headers=json_body)
        assert error_of(refused) == (400, "invalid_target"), resource
    await service.store.apis.update(ORDERS.client_id, status="disabled")
    named = {**form, "resource": ORDERS.identifier}
    assert error_of(await send(url, "POST", form=named)) == (400, "invalid_target")


@pytest.mark.rfc("8707 2.1 JWT")
async def test_a_signed_request_may_name_resources(service: Service) -> None:
    app = await key_app(service, scopes=OWN, api_scopes=BOTH)
    await Shop.open(service)
    browser = await service.signed_in()
    for resource in (ORDERS.identifier, [ORDERS.identifier], [service.base_url, ORDERS.identifier]):
        inside = app.request_object(scope="data:read write", resource=resource)
        answer = answer_of(await browser.consent(app.signed_url(inside, resource=BILLS.identifier)))
        assert json_of(await app.exchange(answer["code"]))["scope"] == "write", resource
    for wrong in ([ORDERS.identifier, BILLS.identifier], [7], {"a": ORDERS.identifier}):
        inside = app.request_object(scope="write", resource=wrong)
        assert redirect_error(await browser.get(app.signed_url(inside))) == "invalid_target", wrong
