"""The parameter `authorization_details`: what it takes, and that everything else is refused wherever it comes.
RFC 9396 2, 5, 6."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.params import Params
from handlers.oauth.details import MAX_DETAILS, check_details
from store.refused import Refused
from tests.oauth.device.devices import Device, a_tv, ask, let_in
from tests.support.http.driver import App, Service, answer_of, json_of, send
from tests.support.http.key_app import key_app, query_pairs

MODEL = "latchkey-echo"
CREDITS: dict[str, Any] = {"type": "credits", "limit": 3_000_000, "period": "total"}
INFERENCE: dict[str, Any] = {"type": "llm-inference", "budget": 100_000}
SPENDS = "profile credits:spend"


def parsed(text: object, **fields: Any) -> str:
    """What becomes of the parameter."""
    return check_details(Params({"authorization_details": text}), {MODEL, "other"}.__contains__, **fields)


@pytest.mark.parametrize(
    ("details", "written"),
    [
        ([CREDITS], "credits 3000000 total *"),
        ([{"type": "credits", "limit": 1}], "credits 1 total *"),
        ([{**CREDITS, "period": "month", "models": ["other", MODEL]}], f"credits 3000000 month {MODEL} other"),
        ([INFERENCE, CREDITS], "credits 3000000 total *\nllm-inference 100000 total *"),
        ([{**INFERENCE, "models": [MODEL]}], f"llm-inference 100000 total {MODEL}"),
    ],
)
def test_known_details_have_one_form(details: list[Any], written: str) -> None:
    assert parsed(json.dumps(details)) == written


def test_a_request_without_the_parameter_has_no_details() -> None:
    assert parsed(None) == parsed("") == ""


WRONG = {
    "an unknown member": [{**CREDITS, "color": "red"}],
    "a common field of RFC 9396": [{**CREDITS, "actions": ["spend"]}],
    "another type's member": [{**INFERENCE, "period": "month"}],
    "an end that only the person sets": [{**CREDITS, "expires_at": 4102444800}],
    "an unknown type": [{"type": "payment_initiation"}],
    "an unknown type after a known one": [CREDITS, {"type": "openid_credential"}],
    "no type": [{"limit": 5}],
    "a type that is a list": [{**CREDITS, "type": ["credits"]}],
    "no amount": [{"type": "credits"}],
    "an amount of nothing": [{**CREDITS, "limit": 0}],
    "a negative amount": [{**CREDITS, "limit": -5}],
    "an amount with a fraction": [{**CREDITS, "limit": 1.0}],
    "an amount that is true": [{**CREDITS, "limit": True}],
    "an amount in text": [{**CREDITS, "limit": "5"}],
    "more than a million dollars": [{**CREDITS, "limit": 10**12 + 1}],
    "an unknown period": [{**CREDITS, "period": "day"}],
    "a period of null": [{**CREDITS, "period": None}],
    "no models": [{**CREDITS, "models": []}],
    "models of null": [{**CREDITS, "models": None}],
    "a model in text": [{**CREDITS, "models": MODEL}],
    "a model that is not offered": [{**CREDITS, "models": ["free credits for you"]}],
    "all models by a star": [{**CREDITS, "models": ["*"]}],
    "a model twice": [{**CREDITS, "models": [MODEL, MODEL]}],
    "the same type twice": [CREDITS, {**CREDITS, "period": "month"}],
    "three details": [CREDITS, INFERENCE, INFERENCE],
    "an empty array": [],
    "an object": CREDITS,
    "a text": "credits",
    "null in the array": [None],
}


@pytest.mark.trap(65)
@pytest.mark.parametrize("details", WRONG.values(), ids=WRONG.keys())
def test_anything_unknown_in_details_is_refused(details: Any) -> None:
    with pytest.raises(Refused) as refusal:
        parsed(json.dumps(details))
    assert refusal.value.code == "invalid_authorization_details"


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "not JSON",
        "[" * 9 + "]" * 9,
        "[" * 2000 + "]" * 2000,
        '[{"type":"credits","limit":1,"limit":2}]',
        json.dumps([CREDITS]) + " " * MAX_DETAILS,
        "[" + "9" * 4000 + "]",
        "\ud800",
        7,
        [CREDITS],
    ],
)
def test_what_is_no_short_json_text_is_refused(text: object) -> None:
    with pytest.raises(Refused) as refusal:
        parsed(text)
    assert refusal.value.code == "invalid_authorization_details"


def test_a_token_request_may_repeat_what_the_token_response_said() -> None:
    granted = [{**CREDITS, "models": ["gone"], "expires_at": 4102444800}]
    assert parsed(json.dumps(granted), granted=True) == "credits 3000000 total 4102444800000 gone"
    assert parsed(json.dumps([{**CREDITS, "limit": 0}]), granted=True) == "credits 0 total 0 *"


async def pushed(app: App, **fields: str) -> HTTPResponse:
    """A pushed request of a confidential app."""
    form = {**query_pairs(app.authorize_url(scope=SPENDS)), "client_secret": app.secret or "", **fields}
    return await send(f"{app.base_url}/api/oauth/par", "POST", form=form)


@pytest.mark.gen_test
@pytest.mark.trap(65)
async def test_unknown_details_are_refused_at_every_door(service: Service) -> None:
    browser, wrong = await service.signed_in(), json.dumps([{**CREDITS, "color": "red"}])
    back = answer_of(await browser.get(service.web.authorize_url(scope=SPENDS, authorization_details=wrong)))
    assert (back["error"], back["state"]) == ("invalid_authorization_details", "a-state")
    assert "code" not in back
    refused = await pushed(service.web, authorization_details=wrong)
    assert (refused.code, json_of(refused)["error"]) == (400, "invalid_authorization_details")

    code = await service.code(browser=browser, scope=SPENDS)
    for grant in ("authorization_code", "client_credentials"):
        answer = await service.web.exchange(code, grant_type=grant, authorization_details=wrong)
        assert (answer.code, json_of(answer)["error"]) == (400, "invalid_authorization_details")
    tokens = json_of(await service.web.exchange(code))
    answer = await service.web.refresh(tokens["refresh_token"], authorization_details=wrong)
    assert (answer.code, json_of(answer)["error"]) == (400, "invalid_authorization_details")
    assert (await service.web.refresh(tokens["refresh_token"])).code == 200, "the refusal used nothing up"


@pytest.mark.gen_test
@pytest.mark.trap(65)
async def test_a_signed_request_has_details_as_an_array(service: Service) -> None:
    app = await key_app(service)
    browser = await service.signed_in()
    signed = app.signed_url(app.request_object(scope=SPENDS, authorization_details=[CREDITS]))
    tokens = json_of(await app.exchange(answer_of(await browser.consent(signed))["code"]))
    assert tokens["authorization_details"] == [CREDITS]
    wrong = app.signed_url(app.request_object(scope=SPENDS, authorization_details=[{**CREDITS, "color": "red"}]))
    assert answer_of(await browser.get(wrong))["error"] == "invalid_authorization_details"


@pytest.mark.gen_test
async def test_a_pushed_request_has_details(service: Service) -> None:
    answer = await pushed(service.web, authorization_details=json.dumps([CREDITS]))
    assert answer.code == 201
    browser = await service.signed_in()
    url = f"/oauth/authorize?client_id=web-app&request_uri={quote_plus(json_of(answer)['request_uri'])}"
    code = answer_of(await browser.consent(url))["code"]
    assert json_of(await service.web.exchange(code))["authorization_details"] == [CREDITS]


@pytest.mark.gen_test
@pytest.mark.trap(65)
async def test_a_device_asks_for_a_budget(service: Service) -> None:
    tv, browser = await a_tv(service, scopes=("profile", "credits:spend")), await service.signed_in()
    for asked in ([{**CREDITS, "color": "red"}], [{**CREDITS, "expires_at": 4102444800}]):
        refused = await ask(tv, scope=None, authorization_details=json.dumps(asked))
        assert json_of(refused)["error"] == "invalid_authorization_details"
    device = await Device.begun(tv, scope=None, authorization_details=json.dumps([CREDITS]))
    await let_in(browser, device)
    tokens = json_of(await device.poll())
    assert (tokens["scope"], tokens["authorization_details"]) == ("credits:spend", [CREDITS])


@pytest.mark.gen_test
async def test_an_app_that_may_not_spend_gets_no_budget(service: Service) -> None:
    app = await service.add_app("reader", scopes=("profile",))
    browser = await service.signed_in()
    url = app.authorize_url(scope="profile", authorization_details=json.dumps([CREDITS]))
    assert answer_of(await browser.get(url))["error"] == "invalid_scope"


@pytest.mark.gen_test
async def test_the_types_are_in_the_metadata(service: Service) -> None:
    for path in ("oauth-authorization-server", "openid-configuration", "oauth-protected-resource"):
        document = json_of(await send(f"{service.base_url}/.well-known/{path}"))
        assert document["authorization_details_types_supported"] == ["credits", "llm-inference"], path
