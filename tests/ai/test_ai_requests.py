"""Who may make an AI call, and which parts of a request reach the upstream. SPEC 2.4, 4.6, 5.4, 8.1."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import KEY, VENDOR_MODEL, Plan, ScriptedUpstream, failing, message
from tests.support.store.ai_spender import (
    NATIVE,
    PLENTY,
    SDK,
    OpenStream,
    Spender,
    assert_error,
    bound,
    cost,
    mint,
    question,
    session_of,
)
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test(timeout=20)


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


async def test_the_most_a_call_can_cost_is_held_while_it_runs(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(0)
    upstream.plan = Plan(gate=gate)
    stream = await OpenStream.open(spender)
    while not upstream.calls:
        await asyncio.sleep(0)
    account = await spender.account()
    most = cost(bound(question()), 100)
    assert (account.paid, account.held, account.spendable) == (PLENTY, most, PLENTY - most)
    balance = json_of(await spender.get("/credits/balance"))
    assert (balance["paid"], balance["held"], balance["spendable"]) == (PLENTY, most, PLENTY - most)
    for _ in range(100):
        gate.release()
    await (await stream.begin()).rest()
    stream.cut()
    assert await spender.charged() == [cost(25, 31)]


async def test_max_tokens_is_capped_by_the_balance_in_the_upstream_request(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service, amount=0)
    most = bound(question())
    for output in (1, 7, 99, 100):
        # One micro-dollar less would not pay for that many.
        await service.store.credits.grant(spender.user, cost(most, output) - (await spender.account()).paid)
        upstream.plan = Plan(message(usage={"input_tokens": 10**6, "output_tokens": 10**6}))
        reply = json_of(await spender.ask())
        assert upstream.calls[-1].question["max_tokens"] == output
        assert reply["credits"] == {"charged": cost(most, output), "remaining": 0}
    assert (await spender.account()).spendable == 0
    await service.store.credits.grant(spender.user, cost(most, 1) - 1)
    refused = await spender.ask()
    assert_error(refused, 402, "insufficient_credits")
    assert refused.headers["X-RateLimit-Remaining"] == "15"
    assert len(upstream.calls) == 4
    await service.store.credits.grant(spender.user, PLENTY)
    assert (await spender.ask(question(max_tokens=10**9))).code == 200
    assert upstream.calls[-1].question["max_tokens"] == 4096, "the most the model writes"


async def test_an_unaffordable_thinking_budget_is_refused(service: Service, upstream: ScriptedUpstream) -> None:
    thinking = {"type": "enabled", "budget_tokens": 50}
    request = question(thinking=thinking)
    spender = await Spender.make(service, amount=cost(bound(request), 50))
    assert_error(await spender.ask(request), 402, "insufficient_credits")
    await service.store.credits.grant(spender.user, cost(bound(request), 51) - cost(bound(request), 50))
    assert (await spender.ask(request)).code == 200
    assert upstream.calls[0].question["max_tokens"] == 51


async def test_the_spend_limit_of_an_app_holds(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    other = await Spender.make(service, app=await service.add_app("other-app"), amount=0)
    session = await session_of(service)
    await shown(service.store, session)
    most = cost(bound(question()), 100)
    await service.store.credits.set_spend_limit(session, spender.app.client_id, most, VISITOR)
    assert (await spender.ask()).code == 200
    charge = cost(25, 31)
    balance = json_of(await spender.get("/credits/balance"))
    assert balance["spendable"] == PLENTY - charge
    assert {name: balance["appLimit"][name] for name in ("limit", "period", "used")} == {
        "limit": most,
        "period": "month",
        "used": charge,
    }
    assert (await spender.ask()).code == 200
    assert upstream.calls[-1].question["max_tokens"] < 100, "cut to what is left of the limit"
    await service.store.credits.set_spend_limit(session, spender.app.client_id, 2 * charge, VISITOR)
    assert_error(await spender.ask(), 402, "app_spend_limit")
    assert len(upstream.calls) == 2
    assert (await other.ask()).code == 200, "the limit is that app's"
    await service.store.credits.set_spend_limit(session, spender.app.client_id, None, VISITOR)
    assert (await spender.ask()).code == 200
    assert await spender.charged() == [charge] * 4


@pytest.mark.trap(24)
async def test_what_is_forwarded_and_what_never_is(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    kept: dict[str, Any] = {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "t", "type": "custom", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "disabled"},
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "stop_sequences": ["\n\n"],
        "metadata": {"user_id": "u"},
        "output_config": {"effort": "low"},
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "service_tier": "auto",
        "a_field_of_next_year": {"deep": [1, None]},
    }
    headers = {
        "X_Api_Key": "sk-of-the-app",
        "Anthropic_Beta": "computer-use-2025-01-24, a-beta-of-next-year",
        "Anthropic_Version": "2027-01-01",
        "Anthropic_Dangerous_Direct_Browser_Access": "true",
        "Forwarded": "for=192.0.2.9",
        "Cookie": "a=b",
        "X_Forwarded_For": "192.0.2.9",
        "User_Agent": "An App/1.0",
        "X_Stainless_Lang": "python",
        "Referer": "https://app.example/",
    }
    for path in (NATIVE, SDK):
        response = await spender.ask(question(**kept), path, **headers)
        assert response.code == 200
        sent = upstream.calls[-1]
        assert sent.question == {**question(**kept), "model": VENDOR_MODEL, "stream": False}
        assert sent.request.path == "/v1/messages"
        assert {name.lower() for name in sent.request.headers} == {
            *("host", "x-api-key", "anthropic-version", "content-type", "content-length", "user-agent", "accept"),
            *("accept-encoding", "x-request-id", "anthropic-beta"),
        }
        assert sent.request.headers["X-Api-Key"] == KEY
        assert sent.request.headers["Anthropic-Version"] == "2027-01-01"
        assert sent.request.headers["Anthropic-Beta"] == "computer-use-2025-01-24,a-beta-of-next-year"
        assert sent.request.headers["User-Agent"] == "Latchkey"


@pytest.mark.trap(24)
async def test_logs_and_answers_contain_no_key_token_or_prompt(
    service: Service, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("aiohttp", "tornado", "latchkey", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    spender = await Spender.make(service)
    said, secret_key = "a sentence for nobody else", "idempotency-key-for-nobody-else"
    upstream.plan = Plan(message("an answer for nobody else"))
    plans: tuple[Plan, ...] = (
        Plan(),
        failing(401, "authentication_error", KEY),
        failing(400, "invalid_request_error"),
        Plan(body=b"x"),
    )
    plans = (*plans, Plan(before="cut"), Plan(before="cut"), Plan(stops_after=4, then="cut"))
    answers = []
    for stream in (False, True):
        upstream.script(*plans)
        for _ in range(6):
            answers.append(await spender.ask(question(said, stream=stream), SDK, X_Api_Key="sk-of-the-app-itself"))
        answers.append(await spender.ask(question(said, stream=stream), key=secret_key + str(stream)))
    assert {answer.code for answer in answers} == {200, 400, 502}
    text = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    assert "AI call" in text
    for word in (KEY, spender.token, said, "an answer for nobody else", secret_key, "sk-of-the-app-itself"):
        assert word not in text
    for answer in answers:
        shown = answer.body.decode() + str(dict(answer.headers.get_all()))
        assert KEY not in shown
        assert VENDOR_MODEL not in shown
        assert upstream.url not in shown


@pytest.mark.spec("8.1.ai")
@pytest.mark.spec("7.rate_limited")
async def test_ai_calls_are_limited_to_twenty_a_minute_across_apps(
    service: Service, upstream: ScriptedUpstream
) -> None:
    first = await Spender.make(service)
    second = await Spender.make(service, app=await service.add_app("other-app"), amount=0)
    for number in range(20):
        response = await (first if number % 3 else second).ask(path=SDK if number % 2 else NATIVE)
        assert response.headers["X-RateLimit-Remaining"] == str(19 - number)
    for spender in (first, second):
        refused = await spender.ask()
        assert_error(refused, 429, "rate_limited")
        assert 0 < int(refused.headers["Retry-After"]) == json_of(refused)["retryAfter"] <= 60
        assert refused.headers["X-RateLimit-Remaining"] == "0"
        answer = await spender.ask(path=SDK)
        assert (answer.code, json_of(answer)["error"]["type"]) == (429, "rate_limit_error")
        assert answer.headers["Retry-After"] == refused.headers["Retry-After"]
    assert len(upstream.calls) == 20
    assert await first.charged() == [cost(25, 31)] * 20
    assert (await first.get("/ai/models")).code == 200, "a window of its own"


@pytest.mark.spec("5.4")
@pytest.mark.spec("7.insufficient_scope")
@pytest.mark.spec("7.invalid_token")
async def test_a_call_needs_a_live_token_with_the_scope(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    paths = (NATIVE, SDK, "/api/v1/ai/v1/messages/count_tokens")
    narrow = await mint(service, service.web, "profile", "credits:read", "apps:read", "data:write")
    for token, status, code, kind in (
        (narrow, 403, "insufficient_scope", "permission_error"),
        ("lk_at_invented", 401, "invalid_token", "authentication_error"),
        ("", 401, "invalid_token", "authentication_error"),
    ):
        one = replace(spender, token=token)
        refused = await one.ask()
        assert_error(refused, status, code)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        for path in paths[1:]:
            answer = await one.ask(path=path)
            assert (answer.code, json_of(answer)["error"]["type"]) == (status, kind)
            assert json_of(answer)["request_id"] == answer.headers["Request-Id"]
    token = await mint(service, service.web)
    one = replace(spender, token=token)
    assert (await one.ask()).code == 200
    await service.store.grants.revoke(await session_of(service), spender.app.client_id, VISITOR)
    for path in paths:
        assert (await one.ask(path=path)).code == 401
    assert len(upstream.calls) == 1


@pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
async def test_traces_are_not_forwarded_by_default(service: Service, upstream: ScriptedUpstream, stream: bool) -> None:
    spender = await Spender.make(service)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = await spender.ask(question(stream=stream), traceparent=trace, tracestate="rojo=1")
    sent = upstream.calls[0].request.headers
    assert sent["X-Request-Id"] == answer.headers["X-Request-Id"]
    assert "traceparent" not in sent
    assert "tracestate" not in sent
