"""Budgets over HTTP: the consent page, the token response, introspection, AI calls, and the page of connected apps."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from tests.support.http.decision import DECIDE, decide_as_json
from tests.support.http.driver import Browser, Service, answer_of, fields_of, json_of, send
from tests.support.store.ai_spender import assert_error

MODEL = "latchkey-echo"
CREDITS: dict[str, Any] = {"type": "credits", "limit": 3_000_000, "period": "total"}
MONTHLY: dict[str, Any] = {**CREDITS, "period": "month"}
INFERENCE: dict[str, Any] = {"type": "llm-inference", "budget": 100_000}
LIMIT = "/account/apps/web-app/limit"


def url_for(service: Service, *details: dict[str, Any], **changes: str | None) -> str:
    """A request for budgets alone, as an app sends it that asks for nothing else."""
    return service.web.authorize_url(**{"scope": None, "authorization_details": json.dumps(details), **changes})


async def granted(service: Service, browser: Browser, *details: dict[str, Any], **fields: str) -> dict[str, Any]:
    """The token response after a decision on the page, with these values of its fields."""
    page = await browser.get(url_for(service, *details))
    form = {**fields_of(page, DECIDE), **fields, "decision": "allow"}
    back = await browser.send(DECIDE, "POST", form=form)
    assert back.code == 303, back.body
    tokens: dict[str, Any] = json_of(await service.web.exchange(answer_of(back)["code"]))
    return tokens


async def introspected(service: Service, token: str) -> dict[str, Any]:
    """What the app learns of its token."""
    form = {"token": token, "client_id": "web-app", "client_secret": service.web.secret or ""}
    answer: dict[str, Any] = json_of(await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form))
    return answer


async def ask(service: Service, token: str, path: str = "messages", **changes: Any) -> HTTPResponse:
    """An AI call."""
    question = {"model": MODEL, "max_tokens": 20, "messages": [{"role": "user", "content": "Hello"}], **changes}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return await send(f"{service.base_url}/api/v1/ai/v1/{path}", "POST", body=json.dumps(question), headers=headers)


def words_of(page: HTTPResponse) -> str:
    """The page without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.body.decode()).split())


@pytest.mark.gen_test
async def test_the_page_says_what_is_asked_in_words_and_money(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(url_for(service, {**CREDITS, "models": [MODEL]}))
    words = words_of(page)
    assert "Up to dollars in all" in words
    assert "The app asks for $3.00. You can lower it. It can use only these models: Latchkey Echo." in words
    assert "For an hour" in words
    assert 'name="budget_credits"' in page.body.decode()
    assert "spend_dollars" not in page.body.decode()
    assert "Up to dollars a month" in words_of(await browser.get(url_for(service, MONTHLY, INFERENCE)))


@pytest.mark.gen_test
async def test_the_page_says_that_an_earlier_budget_still_counts(service: Service) -> None:
    browser, said = await service.signed_in(), "The budget that you allowed before still counts too."
    url = service.web.authorize_url(scope="credits:spend", prompt="consent")
    assert said not in words_of(await browser.get(url))
    await granted(service, browser, CREDITS)
    page = await browser.get(url)
    assert said in words_of(page)
    assert "there’s no limit" not in words_of(page)
    # Also if it is shown again, because nothing was ticked.
    form = fields_of(page, DECIDE)
    del form["scope:credits:spend"]
    again = await browser.send(DECIDE, "POST", form={**form, "decision": "allow"})
    assert (again.code, said in words_of(again)) == (400, True)
    for without in (url_for(service, CREDITS), service.web.authorize_url(scope="profile")):
        assert said not in words_of(await browser.get(without))


@pytest.mark.gen_test
async def test_the_token_response_has_what_was_granted_and_introspection_what_is_used(service: Service) -> None:
    await service.store.credits.grant(service.ada, 10_000_000)
    browser = await service.signed_in()
    tokens = await granted(service, browser, CREDITS, INFERENCE)
    assert tokens["authorization_details"] == [CREDITS, INFERENCE]
    assert tokens["scope"] == "credits:spend"
    before = await introspected(service, tokens["access_token"])
    assert (before["authorization_details"], before["budget_used"]) == ([CREDITS, INFERENCE], 0)
    charged = json_of(await ask(service, tokens["access_token"], "chat/completions"))["usage"]["credits_charged"]
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert (await introspected(service, token))["budget_used"] == charged > 0
    refreshed = json_of(await service.web.refresh(tokens["refresh_token"]))
    assert refreshed["authorization_details"] == [CREDITS, INFERENCE]
    reader = json_of(await service.web.exchange(await service.code(browser=browser, scope="profile")))
    assert "authorization_details" not in reader, "this token can't spend"
    assert "budget_used" not in await introspected(service, reader["access_token"])


@pytest.mark.gen_test
async def test_the_person_lowers_the_amount_and_says_for_how_long(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await granted(service, browser, CREDITS, budget_credits="0.5", budgets_last="3600")
    (detail,) = tokens["authorization_details"]
    ends = detail.pop("expires_at")
    assert detail == {**CREDITS, "limit": 500_000}
    asked = json.dumps([{**detail, "expires_at": ends}])
    again = await service.web.refresh(tokens["refresh_token"], authorization_details=asked)
    assert json_of(again)["authorization_details"] == [{**detail, "expires_at": ends}]
    other = await service.web.refresh(
        json_of(again)["refresh_token"], authorization_details=json.dumps([{**detail, "expires_at": ends + 1}])
    )
    assert json_of(other)["error"] == "invalid_authorization_details"


@pytest.mark.gen_test
@pytest.mark.parametrize("typed", ["3.01", "", "0", "much", "5,000"])
async def test_a_wrong_amount_decides_nothing(service: Service, typed: str) -> None:
    browser = await service.signed_in()
    page = await browser.get(url_for(service, CREDITS))
    form = {**fields_of(page, DECIDE), "budget_credits": typed, "decision": "allow"}
    assert (await browser.send(DECIDE, "POST", form=form)).code == 400
    back = await browser.send(DECIDE, "POST", form={**form, "budget_credits": "3"})
    assert json_of(await service.web.exchange(answer_of(back)["code"]))["authorization_details"] == [CREDITS]


@pytest.mark.gen_test
async def test_no_form_raises_what_the_app_asked_for(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await granted(service, browser, CREDITS, budget_credits="900", asked_credits="900000000")
    assert tokens["authorization_details"] == [CREDITS]


@pytest.mark.gen_test
async def test_a_program_decides_on_budgets_in_json(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(url_for(service, CREDITS))
    for wrong in ({"budgets": {"credits": 0}}, {"budgets": {"gold": 5}}, {"budgets": [5]}, {"budgets_last": 5}):
        assert (await decide_as_json(browser, page, **wrong)).code == 400, wrong
    back = json_of(await decide_as_json(browser, page, budgets={"credits": 7}, budgets_last=60))
    code = re.search(r"code=([^&]+)", back["redirect_to"])
    assert code
    (detail,) = json_of(await service.web.exchange(code[1]))["authorization_details"]
    assert detail["limit"] == 7


@pytest.mark.gen_test
async def test_a_request_for_a_budget_always_shows_the_page(service: Service) -> None:
    browser = await service.signed_in()
    await granted(service, browser, CREDITS)
    assert (await browser.get(url_for(service, CREDITS))).code == 200
    remembered = await browser.get(service.web.authorize_url(scope="credits:spend"))
    assert "code" in answer_of(remembered)
    quiet = await browser.get(url_for(service, CREDITS, prompt="none"))
    assert answer_of(quiet)["error"] == "consent_required"


@pytest.mark.gen_test
async def test_an_unticked_box_gives_no_budget(service: Service) -> None:
    browser = await service.signed_in()
    url = url_for(service, CREDITS, scope="profile")
    back = await browser.consent(url, untick=("credits:spend",))
    tokens = json_of(await service.web.exchange(answer_of(back)["code"]))
    assert tokens["scope"] == "profile"
    assert "authorization_details" not in tokens


@pytest.mark.gen_test
async def test_a_used_up_budget_and_another_model_are_refused_in_each_dialect(service: Service) -> None:
    await service.store.credits.grant(service.ada, 10_000_000)
    browser = await service.signed_in()
    small = (await granted(service, browser, {**CREDITS, "limit": 1}))["access_token"]
    messages = await ask(service, small)
    refused = json_of(messages)["error"]
    assert (messages.code, refused["type"], refused["code"]) == (402, "billing_error", "budget_exhausted")
    chat = await ask(service, small, "chat/completions")
    assert (chat.code, json_of(chat)["error"]["code"]) == (402, "budget_exhausted")
    assert json_of(chat)["error"]["type"] == "insufficient_quota"
    headers = {"Authorization": f"Bearer {small}", "Content-Type": "application/json"}
    question = json.dumps({"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]})
    native = await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=question, headers=headers)
    assert_error(native, 402, "budget_exhausted")


@pytest.mark.gen_test
async def test_the_page_of_apps_shows_and_changes_budgets(service: Service) -> None:
    await service.store.credits.grant(service.ada, 10_000_000)
    browser = await service.confirmed()
    token = (await granted(service, browser, {**MONTHLY, "models": [MODEL]}))["access_token"]
    charged = json_of(await ask(service, token, "chat/completions"))["usage"]["credits_charged"]
    page = await browser.get("/account/apps")
    words = words_of(page)
    assert "of $3.00 used this month. Only for these models: Latchkey Echo." in words
    assert f'<rect class="part" width="{max(1, charged * 100 // 3_000_000)}%"' in page.body.decode()
    form = {**fields_of(page, LIMIT), "dollars": ""}
    wrong = await browser.send(LIMIT, "POST", form={**form, "budget_credits": "lots"})
    assert wrong.code == 400
    assert 'value="lots"' in wrong.body.decode()
    done = await browser.send(LIMIT, "POST", form={**form, "budget_credits": "0.000001", "budget_llm-inference": "5"})
    assert done.code == 303
    assert json_of(await ask(service, token, "chat/completions"))["error"]["code"] == "budget_exhausted"
    (detail,) = (await introspected(service, token))["authorization_details"]
    assert detail == {**MONTHLY, "limit": 1, "models": [MODEL]}
