"""The consent page and POST /api/oauth/authorize over HTTP. SPEC 1, 4.2."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.support.http.decision import DECIDE, decide_as_json
from tests.support.http.driver import CALLBACK, EMAIL, NAME, Service, answer_of, fields_of, json_of, send
from tests.support.processes.engines import FakeClock

TEN_MINUTES = 600


@pytest.mark.gen_test
async def test_the_page_names_the_app_the_scopes_and_the_redirect_target(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(scope="profile credits:spend"))
    text = page.body.decode()
    for words in ("Web App", "app.example", EMAIL, NAME, "See who you are", "Spend from your balance", "Take care"):
        assert words in text
    assert "Store documents" not in text
    assert "a-state" not in fields_of(page, DECIDE).values()


@pytest.mark.gen_test
@pytest.mark.openid("core 16.22 307")
@pytest.mark.trap(18)
@pytest.mark.spec("4.2")
async def test_a_form_decision_redirects_with_303(service: Service) -> None:
    browser = await service.signed_in()
    for decision, expected in (("allow", "code"), ("deny", "error")):
        page = await browser.get(service.web.authorize_url(prompt="consent"))
        response = await browser.submit(page, DECIDE, decision=decision)
        assert response.code == 303
        assert response.headers["Location"].startswith(CALLBACK + "?")
        assert answer_of(response)["state"] == "a-state"
        assert expected in answer_of(response)
    reason = "The person denied the request."
    assert answer_of(response) == {
        **{"error": "access_denied", "error_description": reason},
        **{"state": "a-state", "iss": service.base_url},
    }


@pytest.mark.gen_test
@pytest.mark.spec("4.2")
@pytest.mark.spec("1")
async def test_a_json_decision_gets_the_redirect_target(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    response = await decide_as_json(browser, page)
    assert response.code == 200
    assert set(json_of(response)) == {"redirect_to"}
    assert response.headers["Content-Type"] == "application/json"
    url = json_of(response)["redirect_to"]
    assert url.startswith(CALLBACK + "?code=lk_ac_")
    code = re.search("code=([^&]+)", url)
    assert code
    assert (await service.web.exchange(code[1])).code == 200
    page = await browser.get(service.web.authorize_url(prompt="consent"))
    denied = await decide_as_json(browser, page, decision="deny")
    assert "error=access_denied&error_description=The+person+denied" in json_of(denied)["redirect_to"]


@pytest.mark.gen_test
@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_a_json_decision_keeps_the_answer_out_of_the_address_if_the_app_wants_a_form(
    service: Service, decision: str
) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(response_mode="form_post", prompt="consent"))
    answer = json_of(await decide_as_json(browser, page, decision=decision))
    assert answer["redirect_to"] == CALLBACK
    assert (answer["form"]["state"], answer["form"]["iss"]) == ("a-state", service.base_url)
    if decision == "deny":
        assert answer["form"]["error"] == "access_denied"
    else:
        assert (await service.web.exchange(answer["form"]["code"])).code == 200


@pytest.mark.gen_test
async def test_unticked_scopes_are_not_granted_and_a_later_decision_replaces_them(service: Service) -> None:
    browser = await service.signed_in()
    redirect = await browser.consent(service.web.authorize_url(), untick=("data:write",))
    tokens = json_of(await service.web.exchange(answer_of(redirect)["code"]))
    assert tokens["scope"] == "profile data:read"
    # Asking again for all of them asks the person again, and shows what stands.
    page = await browser.get(service.web.authorize_url())
    assert page.code == 200
    assert page.body.count(b"Already allowed") == 2
    response = await decide_as_json(browser, page, scopes=["data:write"])
    assert "code=" in json_of(response)["redirect_to"]
    # The scopes that were left out are gone from tokens given out before.
    assert (await service.web.userinfo(tokens["access_token"])).code == 403
    refreshed = await service.web.refresh(tokens["refresh_token"])
    assert refreshed.code == 400
    assert json_of(refreshed)["error"] == "invalid_grant"


@pytest.mark.gen_test
@pytest.mark.parametrize("mode", ["query", "form_post"])
async def test_unticking_everything_shows_the_page_of_the_same_request_again(service: Service, mode: str) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url(scope="profile"))
    url = service.web.authorize_url(scope="profile credits:spend", response_mode=mode)
    page = await browser.get(url)
    before = fields_of(page, DECIDE)
    form = {name: value for name, value in before.items() if not name.startswith("scope:")}
    refused = await browser.send(DECIDE, "POST", form={**form, "spend_dollars": '7.5"', "decision": "allow"})
    assert refused.code == 400
    assert "Location" not in refused.headers
    text = refused.body.decode()
    assert "Choose at least one of the things" in text
    after = fields_of(refused, DECIDE)
    assert (after["request_id"], after["next"]) == (before["request_id"], before["next"])
    assert 'value="on"' in text
    assert 'value="on" checked' not in text, "a hasty second click allows nothing that the person unticked"
    assert (text.count("Already allowed"), text.count('value="7.5&quot;"')) == (1, 1)
    # The request is the same one, and it can be answered once.
    ticks = {"scope:credits:spend": "on", "spend_dollars": "7.5"}
    allowed = await browser.submit(refused, DECIDE, decision="allow", **ticks)
    assert allowed.code == (200 if mode == "form_post" else 303)
    assert (await browser.submit(refused, DECIDE, decision="allow", **ticks)).code == 400


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("scopes", "error"),
    [
        pytest.param([], "invalid_scope", id="none"),
        pytest.param([""], "invalid_scope", id="an empty name"),
        pytest.param([" "], "invalid_scope", id="a space"),
        pytest.param(["", ""], "invalid_scope", id="two empty names"),
        pytest.param(["apps:read"], "invalid_scope", id="one the app did not ask for"),
        pytest.param(["profile", "credits:spend"], "invalid_scope", id="one too many"),
        pytest.param(["everything"], "invalid_scope", id="one that does not exist"),
        pytest.param(["profile data:read"], "invalid_scope", id="two in one"),
        pytest.param(["\ud800"], "invalid_request", id="a lone surrogate"),
        pytest.param(["pro\0file"], "invalid_request", id="a NUL"),
        pytest.param("profile", "invalid_request", id="no list"),
        pytest.param(7, "invalid_request", id="a number"),
        pytest.param([7], "invalid_request", id="a list of numbers"),
        pytest.param({"profile": True}, "invalid_request", id="an object"),
        pytest.param(["profile", "profile"], None, id="one named twice"),
        pytest.param('["profile"]', None, id="JSON text of a list, as forms send it"),
    ],
)
async def test_chosen_scopes_must_be_among_the_requested_ones(service: Service, scopes: Any, error: str | None) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    response = await decide_as_json(browser, page, scopes=scopes)
    assert response.code == (400 if error else 200)
    assert json_of(response).get("error") == error
    if error:  # nothing was granted
        assert b"No connected apps" in (await browser.get("/account/apps")).body


@pytest.mark.gen_test
async def test_a_request_is_used_up_by_its_decision(service: Service) -> None:
    browser = await service.signed_in()
    for decision in ("allow", "deny"):
        page = await browser.get(service.web.authorize_url(prompt="consent"))
        assert (await browser.submit(page, DECIDE, decision=decision)).code == 303
        for again in ("allow", "deny"):
            response = await browser.submit(page, DECIDE, decision=again)
            assert response.code == 400
            assert "Location" not in response.headers


@pytest.mark.gen_test
async def test_a_request_expires_after_ten_minutes(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    clock.advance(TEN_MINUTES - 1)
    assert (await browser.submit(page, DECIDE, decision="allow")).code == 303
    page = await browser.get(service.web.authorize_url(prompt="consent"))
    clock.advance(TEN_MINUTES)
    response = await browser.submit(page, DECIDE, decision="allow")
    assert response.code == 400
    assert "Location" not in response.headers


@pytest.mark.gen_test
async def test_nobody_can_decide_another_persons_request(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    await service.add_person("eve@example.com", "Eve")
    eve = await service.signed_in("eve@example.com")
    own = await eve.get(service.web.authorize_url())
    for decision in ("allow", "deny"):
        response = await decide_as_json(eve, own, request_id=fields_of(page, DECIDE)["request_id"], decision=decision)
        assert response.code == 400
        assert json_of(response)["error"] == "invalid_request"
    assert (await browser.submit(page, DECIDE, decision="allow")).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"decision": None}, id="no decision"),
        pytest.param({"decision": "yes"}, id="another word"),
        pytest.param({"decision": "ALLOW"}, id="another case"),
        pytest.param({"decision": True}, id="no text"),
        pytest.param({"request_id": None}, id="no request"),
        pytest.param({"request_id": "lk_rq_invented"}, id="an invented request"),
        pytest.param({"request_id": ["a"]}, id="a list for the request"),
    ],
)
async def test_malformed_decisions_decide_nothing(service: Service, changes: dict[str, Any]) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    response = await decide_as_json(browser, page, **changes)
    assert response.code == 400
    assert json_of(response)["error"] == "invalid_request"
    assert (await browser.submit(page, DECIDE, decision="allow")).code == 303


@pytest.mark.gen_test
@pytest.mark.trap(5)
async def test_codes_and_sessions_are_not_accepted_as_requests(service: Service) -> None:
    browser = await service.signed_in()
    code = await service.code(browser=browser)
    page = await browser.get(service.web.authorize_url(prompt="consent"))
    for other in (code, browser.cookies["latchkey_session"]):
        response = await decide_as_json(browser, page, request_id=other)
        assert response.code == 400
        assert json_of(response)["error"] == "invalid_request"


@pytest.mark.gen_test
async def test_a_signed_out_decision_redirects_to_sign_in_and_back(service: Service) -> None:
    browser = await service.signed_in()
    url = service.web.authorize_url()
    page = await browser.get(url)
    session = browser.cookies.pop("latchkey_session")
    response = await browser.submit(page, DECIDE, decision="allow")
    assert response.code == 303
    assert response.headers["Location"] == f"/signin?next={quote(url, safe='')}"
    for evil in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        response = await browser.send(DECIDE, "POST", form={**fields_of(page, DECIDE), "next": evil})
        assert response.headers["Location"] == "/signin?next=%2F"
    as_json = await decide_as_json(browser, page)
    assert as_json.code == 401
    assert json_of(as_json)["error"] == "login_required"
    browser.cookies["latchkey_session"] = session
    await service.store.operator.set_status(EMAIL, "disabled")
    assert (await decide_as_json(browser, page)).code == 401


@pytest.mark.gen_test
async def test_a_decision_must_come_from_the_sessions_browser(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    form = {**fields_of(page, DECIDE), "decision": "allow"}
    response = await send(service.base_url + DECIDE, "POST", form=form)
    assert response.code == 403
    bearer = {"Authorization": f"Bearer {(await service.tokens())['access_token']}"}
    assert (await send(service.base_url + DECIDE, "POST", form=form, headers=bearer)).code == 403


@pytest.mark.gen_test
async def test_use_another_account_returns_to_the_request(service: Service) -> None:
    browser = await service.signed_in()
    url = service.web.authorize_url()
    page = await browser.get(url)
    target = re.search(r'name="next" value="([^"]*)"', page.body.decode())
    assert target
    response = await browser.submit(page, "/signout", next=html.unescape(target[1]))
    assert response.code == 303
    assert response.headers["Location"] == url
    assert (await browser.get(url)).headers["Location"].startswith("/signin?next=")


@pytest.mark.gen_test
async def test_hostile_names_are_shown_as_text(service: Service) -> None:
    name = "<img src=x onerror=alert(1)>\"'&amp;</bdi>"
    await service.add_person("mallory@example.com", name)
    app = await service.add_app("hostile", name=name, homepage="https://app.example/?<script>")
    browser = await service.signed_in("mallory@example.com")
    pages = [await browser.get(app.authorize_url())]
    await browser.submit(pages[0], DECIDE, decision="allow")
    pages += [
        await browser.get(path) for path in ("/account", "/account/apps", "/account/credits", "/account/security", "/")
    ]
    for page in pages:
        text = page.body.decode()
        assert page.code == 200
        assert "<img src=x" not in text
        assert not re.search(r"<script(?! src=\"/static/)", text)
        assert "onerror=alert(1)>" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;&quot;" in text
    refused = await browser.get(app.authorize_url(redirect_uri="https://evil.test/<b>"))
    assert b"<img src=x" not in refused.body
    assert b"<b>" not in refused.body


@pytest.mark.gen_test
async def test_a_form_decision_with_repeated_parameters_is_refused(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    form = list({**fields_of(page, DECIDE), "decision": "deny"}.items())
    response = await browser.send(
        DECIDE,
        "POST",
        body=urlencode([*form, ("decision", "allow")]),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert response.code == 400
    assert b"No connected apps" in (await browser.get("/account/apps")).body
