"""POST /api/oauth/authorize: what the person lets the app spend in a month."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store.oauth.grants import Grant
from tests.support.http.decision import DECIDE, decide_as_json
from tests.support.http.driver import Browser, Service, answer_of, fields_of, json_of

SPENDS = "profile credits:spend"


async def grant_of(service: Service, browser: Browser) -> Grant | None:
    """The app's grant from the person; None if it is not connected."""
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    grants = (await service.store.grants.list(session)).grants
    return next((grant for grant in grants if grant.client == "web-app"), None)


async def limit_of(service: Service, browser: Browser) -> int | None:
    """The limit of the connected app, in micro-dollars a month."""
    grant = await grant_of(service, browser)
    assert grant is not None
    return grant.spend_limit


def offered(page: HTTPResponse) -> str:
    """The amount on the page, in dollars."""
    field = re.search(r'<input[^>]*name="spend_dollars"[^>]*value="([^"]*)"', page.body.decode())
    assert field
    return field[1]


@pytest.mark.gen_test
@pytest.mark.spec("4.2")
async def test_a_limit_is_asked_only_with_the_spending_scope(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(scope=SPENDS))
    assert b"Up to </span><input" in page.body
    assert b"dollars a month" in page.body
    assert "If you leave it empty" in page.body.decode()
    assert offered(page) == "5.00"
    other = await browser.get(service.web.authorize_url(scope="profile credits:read"))
    assert b"spend_dollars" not in other.body


@pytest.mark.gen_test
@pytest.mark.spec("4.2")
async def test_the_limit_on_the_page_is_set_and_offered_again(service: Service) -> None:
    browser = await service.signed_in()
    url = service.web.authorize_url(scope=SPENDS, prompt="consent")
    for typed, limit, again in (
        ("12.5", 12_500_000, "12.50"),
        ("0", 0, "0.00"),
        ("0.000001", 1, "0.000001"),
        (" $1000000.00 ", 10**12, "1000000.00"),
        ("", None, ""),
        ("3", 3_000_000, "3.00"),
    ):
        page = await browser.get(url)
        answer = await browser.submit(page, DECIDE, decision="allow", spend_dollars=typed)
        assert "code" in answer_of(answer)
        assert await limit_of(service, browser) == limit
        assert offered(await browser.get(url)) == again
    # It outlives a consent without the scope, a denial and a disconnection.
    await browser.consent(service.web.authorize_url(scope="profile", prompt="consent"))
    assert offered(await browser.get(url)) == "3.00"
    await browser.submit(await browser.get(url), DECIDE, decision="deny", spend_dollars="4")
    await browser.submit(await browser.get("/account/apps"), "/account/apps/web-app/revoke")
    assert offered(await browser.get(url)) == "3.00"


@pytest.mark.gen_test
@pytest.mark.parametrize("typed", ["1,500", "-1", "five", "0.0000001", "1000000.01", "1e3"])
async def test_an_invalid_amount_shows_a_page_and_keeps_the_request(service: Service, typed: str) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(scope=SPENDS))
    refused = await browser.submit(page, DECIDE, decision="allow", spend_dollars=typed)
    assert refused.code == 400
    assert refused.headers["Content-Type"].startswith("text/html")
    assert b"such as 5 or 5.00" in refused.body
    assert b"Nothing was changed" in refused.body
    assert await grant_of(service, browser) is None
    allowed = await browser.submit(page, DECIDE, decision="allow", spend_dollars="2")
    assert "code" in answer_of(allowed)
    assert await limit_of(service, browser) == 2_000_000


@pytest.mark.gen_test
async def test_an_amount_applies_only_if_spending_is_allowed(service: Service) -> None:
    browser = await service.signed_in()
    url = service.web.authorize_url(scope=SPENDS, prompt="consent")
    denied = await browser.submit(await browser.get(url), DECIDE, decision="deny", spend_dollars="five")
    assert answer_of(denied)["error"] == "access_denied"
    page = await browser.get(url)
    form = {**fields_of(page, DECIDE), "decision": "allow", "spend_dollars": "five"}
    del form["scope:credits:spend"]
    assert "code" in answer_of(await browser.send(DECIDE, "POST", form=form))
    assert await limit_of(service, browser) is None
    # A form of the page from before there were limits has no such field: what stands is left.
    await browser.submit(await browser.get(url), DECIDE, decision="allow", spend_dollars="2")
    await browser.submit(await browser.get(url), DECIDE, decision="allow")
    assert await limit_of(service, browser) == 2_000_000


@pytest.mark.gen_test
@pytest.mark.spec("4.2")
@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        pytest.param({"spend_limit": 2_000_000}, 2_000_000, id="a number"),
        pytest.param({"spend_limit": "2000000"}, 2_000_000, id="its digits"),
        pytest.param({"spend_limit": 0}, 0, id="nothing"),
        pytest.param({"spend_limit": 10**12}, 10**12, id="the most"),
        pytest.param({"spend_limit": None}, None, id="no limit"),
        pytest.param({}, 7_000_000, id="as it is"),
        pytest.param({"spend_dollars": "9"}, 7_000_000, id="the field of the page without its boxes"),
        pytest.param(
            {"spend_limit": 1, "spend_dollars": "9", "boxes": "1", "scope:credits:spend": "on"},
            9_000_000,
            id="the field of the page takes its place",
        ),
        pytest.param({"spend_limit": 1, "scopes": ["profile"]}, 7_000_000, id="without the scope"),
    ],
)
async def test_a_json_decision_sets_a_spend_limit(service: Service, sent: dict[str, Any], limit: int | None) -> None:
    browser = await service.signed_in()
    url = service.web.authorize_url(scope=SPENDS, prompt="consent")
    await browser.submit(await browser.get(url), DECIDE, decision="allow", spend_dollars="7")
    form = fields_of(await browser.get(url), DECIDE)
    headers = {"Content-Type": "application/json", "Accept": "application/json", "X-Xsrftoken": form["_xsrf"]}
    body = json.dumps({"request_id": form["request_id"], "decision": "allow", **sent})
    response = await browser.send(DECIDE, "POST", headers=headers, body=body)
    assert response.code == 200, response.body
    assert await limit_of(service, browser) == limit


@pytest.mark.gen_test
@pytest.mark.parametrize("sent", [-1, 10**12 + 1, 2.0, "2.0", "$2", True, [2], {"amount": 2}])
async def test_an_invalid_spend_limit_decides_nothing(service: Service, sent: Any) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(scope=SPENDS))
    response = await decide_as_json(browser, page, spend_limit=sent)
    assert response.code == 400
    assert json_of(response)["error"] == "invalid_request"
    assert await grant_of(service, browser) is None
    assert (await decide_as_json(browser, page, spend_limit=2)).code == 200
    assert await limit_of(service, browser) == 2


@pytest.mark.gen_test
async def test_a_spend_limit_in_a_form_must_be_digits(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(scope=SPENDS))
    form = {name: fields_of(page, DECIDE)[name] for name in ("_xsrf", "request_id")}
    form |= {"decision": "allow", "scopes": '["credits:spend"]'}
    assert (await browser.send(DECIDE, "POST", form={**form, "spend_limit": "1.5"})).code == 400
    assert (await browser.send(DECIDE, "POST", form={**form, "spend_limit": "1500000"})).code == 303
    assert await limit_of(service, browser) == 1_500_000
