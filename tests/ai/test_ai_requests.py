"""Who may make an AI call, what a request may look like, what of it reaches the upstream. SPEC 2.4, 4.6, 5.4, 8.1."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from handlers.core.site import Site
from tests.support.http.driver import Service, json_of, send
from tests.support.http.upstream import KEY, VENDOR_MODEL, Plan, ScriptedUpstream, failing, message
from tests.support.store.ai_spender import (
    NATIVE,
    PLENTY,
    SDK,
    OpenStream,
    Spender,
    assert_error,
    cost,
    mint,
    question,
    session_of,
)
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test(timeout=20)

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


def bound(asked: dict[str, Any]) -> int:
    """The most input tokens a request may cost: its bytes, and what a server adds of its own."""
    kept = {name: value for name, value in asked.items() if name not in ("model", "max_tokens", "stream")}
    return len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()) + 1024


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
    told = json_of(await spender.get("/credits/balance"))
    assert (told["paid"], told["held"], told["spendable"]) == (PLENTY, most, PLENTY - most)
    for _ in range(100):
        gate.release()
    await (await stream.begin()).rest()
    stream.cut()
    assert await spender.charged() == [cost(25, 31)]


async def test_max_tokens_is_cut_to_what_is_affordable_and_sent_so(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service, amount=0)
    most = bound(question())
    for output in (1, 7, 99, 100):
        # One micro-dollar less would not pay for that many.
        await service.store.credits.grant(spender.user, cost(most, output) - (await spender.account()).paid)
        upstream.plan = Plan(message(usage={"input_tokens": 10**6, "output_tokens": 10**6}))
        told = json_of(await spender.ask())
        assert upstream.calls[-1].asked["max_tokens"] == output
        assert told["credits"] == {"charged": cost(most, output), "remaining": 0}
    assert (await spender.account()).spendable == 0
    await service.store.credits.grant(spender.user, cost(most, 1) - 1)
    refused = await spender.ask()
    assert_error(refused, 402, "insufficient_credits")
    assert refused.headers["X-RateLimit-Remaining"] == "15"
    assert len(upstream.calls) == 4
    await service.store.credits.grant(spender.user, PLENTY)
    assert (await spender.ask(question(max_tokens=10**9))).code == 200
    assert upstream.calls[-1].asked["max_tokens"] == 4096, "the most the model writes"


async def test_thinking_that_is_not_affordable_is_refused(service: Service, upstream: ScriptedUpstream) -> None:
    thinking = {"type": "enabled", "budget_tokens": 50}
    asked = question(thinking=thinking)
    spender = await Spender.make(service, amount=cost(bound(asked), 50))
    assert_error(await spender.ask(asked), 402, "insufficient_credits")
    await service.store.credits.grant(spender.user, cost(bound(asked), 51) - cost(bound(asked), 50))
    assert (await spender.ask(asked)).code == 200
    assert upstream.calls[0].asked["max_tokens"] == 51


async def test_the_spend_limit_of_an_app_holds(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    other = await Spender.make(service, app=await service.add_app("other-app"), amount=0)
    session = await session_of(service)
    await shown(service.store, session)
    most = cost(bound(question()), 100)
    await service.store.credits.set_spend_limit(session, spender.app.client_id, most, VISITOR)
    assert (await spender.ask()).code == 200
    charge = cost(25, 31)
    told = json_of(await spender.get("/credits/balance"))
    assert told["spendable"] == PLENTY - charge
    assert {name: told["appLimit"][name] for name in ("limit", "period", "used")} == {
        "limit": most,
        "period": "month",
        "used": charge,
    }
    assert (await spender.ask()).code == 200
    assert upstream.calls[-1].asked["max_tokens"] < 100, "cut to what is left of the limit"
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
    kept = {
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
    }
    dropped: dict[str, Any] = {
        "service_tier": "priority",
        "container": "container_1",
        "mcp_servers": [{"type": "url", "url": "http://169.254.169.254/"}],
        "betas": ["files-api"],
        "context_management": {},
        "speed": "fast",
        "inference_geo": "eu",
        "credits": 5,
        "client_id": "other-app",
        "n": 8,
    }
    headers = {
        "X_Api_Key": "sk-of-the-app",
        "Anthropic_Beta": "computer-use",
        "Anthropic_Version": "1999-01-01",
        "Cookie": "a=b",
        "X_Forwarded_For": "192.0.2.9",
        "User_Agent": "An App/1.0",
        "X_Stainless_Lang": "python",
        "Referer": "https://app.example/",
    }
    for path in (NATIVE, SDK):
        response = await spender.ask(question(**kept, **dropped), path, **headers)  # type: ignore[arg-type]
        assert response.code == 200
        sent = upstream.calls[-1]
        assert sent.asked == {**question(**kept), "model": VENDOR_MODEL, "stream": False}  # type: ignore[arg-type]
        assert sent.request.path == "/v1/messages"
        assert {name.lower() for name in sent.request.headers} == {
            *("host", "x-api-key", "anthropic-version", "content-type", "content-length", "user-agent", "accept"),
            *("accept-encoding", "x-request-id"),
        }
        assert sent.request.headers["X-Api-Key"] == KEY
        assert sent.request.headers["Anthropic-Version"] == "2023-06-01"
        assert sent.request.headers["User-Agent"] == "Latchkey"


@pytest.mark.trap(24)
async def test_no_key_token_or_word_stands_in_a_log_or_an_answer(
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


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def says(*blocks: Any) -> dict[str, Any]:
    """A request whose one message has these blocks."""
    return content(list(blocks))


def content(value: Any) -> dict[str, Any]:
    """A request whose one message has this content."""
    return question(messages=[{"role": "user", "content": value}])


def source(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "source": fields}


REFUSED = {
    "no model": question(model=None),
    "a number for a model": question(model=5),
    "an empty model": question(model=""),
    "a NUL in the model": question(model="a\0b"),
    "no max_tokens": question(max_tokens=None),
    **{f"max_tokens {n!r}": question(max_tokens=n) for n in (0, -1, 1.5, "9", True, 10**10, [], {})},  # type: ignore[var-annotated]
    **{f"stream {value!r}": question(stream=value) for value in ("true", 1, 0, [], "")},  # type: ignore[var-annotated]
    "no messages": question(messages=None),
    **{f"messages {value!r}": question(messages=value) for value in ([], {}, "hi", 7, [[]], ["hi"], [None])},  # type: ignore[var-annotated]
    "another role": question(messages=[{"role": "system", "content": "x"}]),
    "a list for a role": question(messages=[{"role": ["user"], "content": "x"}]),
    "no content": question(messages=[{"role": "user"}]),
    **{f"content {value!r}": content(value) for value in ([], {}, 7, None, True)},  # type: ignore[var-annotated]
    **{f"a block {block!r}": content([block]) for block in ("x", 7, None, [], {}, {"type": 7}, {"type": ["text"]})},  # type: ignore[var-annotated]
    "a block of a server's tool": says({"type": "server_tool_use", "id": "s", "name": "x", "input": {}}),
    "text without text": says({"type": "text"}),
    "text that is none": says({"type": "text", "text": ["x"]}),
    "a system without text": question(system=[{"type": "text"}]),
    "a number for a system": question(system=7),
    "an image by URL": says(source("image", type="url", url="http://169.254.169.254/")),
    "an image by file id": says(source("image", type="file", file_id="f")),
    "an image from nowhere": says({"type": "image"}),
    "an image from text": says({"type": "image", "source": "http://x"}),
    "a document by URL": says(source("document", type="url", url="http://x")),
    "a document by file id": says(source("document", type="file", file_id="f")),
    "a PDF": says(source("document", type="base64", media_type="application/pdf", data="AA")),
    "an image by URL in the result of a tool": says(
        {"type": "tool_result", "tool_use_id": "t", "content": [source("image", type="url", url="http://x")]}
    ),
    "an image by URL in a document": says(
        source("document", type="content", content=[source("image", type="url", url="http://x")])
    ),
    "a tool of the server's": question(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "a tool without a type": question(tools=[{"type": None, "name": "x"}]),
    "a tool with a list for a type": question(tools=[{"type": ["custom"], "name": "x"}]),
    **{f"tools {value!r}": question(tools=value) for value in ({}, "x", 7, ["x"], [[]])},  # type: ignore[var-annotated]
}


@pytest.mark.trap(21)
async def test_requests_that_are_refused(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    for name, asked in REFUSED.items():
        await spender.fresh_window()
        refused = await spender.ask(asked)
        assert (refused.code, json_of(refused)["error"]) == (400, "invalid_request"), name
        told = await spender.ask(asked, SDK)
        assert (told.code, json_of(told)["error"]["type"]) == (400, "invalid_request_error"), name
    assert await spender.charged() == []
    assert upstream.calls == []


GOOD = json.dumps(question())[1:-1].encode()
RAW = {
    "nothing": b"",
    "a list": b"[%b]" % GOOD,
    "not closed": b"{%b" % GOOD,
    "a name twice": b'{%b, "model": "scripted"}' % GOOD,
    "NaN": b'{%b, "temperature": NaN}' % GOOD,
    "a number beyond all": b'{%b, "temperature": 1e999}' % GOOD,
    "5,000 digits": b'{%b, "top_k": %b}' % (GOOD, b"9" * 5000),
    "half of a surrogate pair": b'{%b, "stop_sequences": ["\\ud800"]}' % GOOD,
    "half of a surrogate pair in a system": b'{%b, "system": "\\ud800"}' % GOOD,
    "NUL": b'{%b, "system": "\\u0000"}' % GOOD,
    "no UTF-8": b'{%b, "metadata": {"user_id": "\xff"}}' % GOOD,
    "nested 100,000 deep": b'{%b, "metadata": %b}' % (GOOD, b"[" * 100_000 + b"]" * 100_000),
    "nested 210 deep": b'{%b, "metadata": %b1%b}' % (GOOD, b'{"a":' * 209, b"}" * 209),
    "nested 980 deep": b'{%b, "metadata": %b1%b}' % (GOOD, b'{"a":' * 980, b"}" * 980),
    "messages without end": b'{%b, "messages": %b}' % (GOOD.replace(b"messages", b"x"), b"[" * 50_000),
}


@pytest.mark.trap(21)
async def test_bodies_that_are_refused(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    for name, body in RAW.items():
        await spender.fresh_window()
        for path in (NATIVE, SDK, "/api/v1/ai/v1/messages/count_tokens"):
            assert (await spender.ask(body, path)).code == 400, name
    assert await spender.charged() == []
    assert upstream.calls == []


@pytest.mark.trap(21)
async def test_odd_but_sound_requests_are_no_500(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    for nesting in (150, 900, 950, 960, 970, 975, 980, 985, 990):
        body = b'{%b, "metadata": %b1%b}' % (GOOD, b"[" * nesting, b"]" * nesting)
        assert (await spender.ask(body)).code in (200, 400), nesting
        await spender.fresh_window()
    for asked in (
        question(temperature=-1e300, top_k=10**30, stop_sequences=["a\0b"], metadata=[None], tool_choice="x"),
        question(thinking={"budget_tokens": "x"}),
        question(thinking={"budget_tokens": -5}),
        question(thinking=[7]),
        question(system="", tools=[]),
        says(IMAGE, {"type": "search_result", "content": "x", "source": 5}),
        says(source("document", type="text", data="x"), {"type": "tool_result", "content": "x"}),
    ):
        assert (await spender.ask(asked)).code == 200
    assert_error(await spender.ask(question(model="no-such-model")), 404, "not_found")
    assert_error(await spender.ask(question(model=VENDOR_MODEL)), 404, "not_found")


async def test_an_image_is_held_for_apart(service: Service, upstream: ScriptedUpstream) -> None:
    asked = says(IMAGE, IMAGE)
    spender = await Spender.make(service, amount=cost(bound(asked) + 2 * 5000, 1) - 1)
    assert_error(await spender.ask(asked), 402, "insufficient_credits")
    await service.store.credits.grant(spender.user, 1)
    assert (await spender.ask(asked)).code == 200


@pytest.mark.spec("1")
async def test_a_form_carries_structure_as_json_text(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    asked = question(system="Be brief: {", tools=[{"name": "t"}], temperature=0.5, stop_sequences=["."])
    for stream in (False, True):
        fields = {name: value if name in ("model", "system") else json.dumps(value) for name, value in asked.items()}
        body = urlencode({**fields, "stream": json.dumps(stream), "unknown": "{"}).encode()
        response = await spender.ask(body, Content_Type=FORM)
        assert response.code == 200
        assert (response.body[:6] == b"event:") == stream
        assert upstream.calls[-1].asked == {**asked, "model": VENDOR_MODEL, "stream": stream}
    for name, value in (
        ("messages", "hello"),
        ("messages", ""),
        ("max_tokens", "x"),
        ("stream", "yes"),
        ("tools", "["),
    ):
        body = urlencode({**fields, name: value}).encode()
        assert_error(await spender.ask(body, Content_Type=FORM), 400, "invalid_request")
    assert_error(await spender.ask(b"x", Content_Type="text/plain"), 415, "invalid_request")


async def test_a_body_that_is_too_large(service: Service, site: Site, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=10**9)
    frame = len(json.dumps(question("")))
    assert (await spender.ask(question("x" * (site.max_ai_request - frame)))).code == 200
    too_long = question("x" * (site.max_ai_request - frame + 1))
    assert_error(await spender.ask(too_long), 413, "invalid_request")
    assert json_of(await spender.ask(too_long, SDK))["error"]["type"] == "request_too_large"
    assert len(upstream.calls) == 1


@pytest.mark.spec("8.1.ai")
@pytest.mark.spec("7.rate_limited")
async def test_twenty_a_minute_for_a_person_across_all_apps(service: Service, upstream: ScriptedUpstream) -> None:
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
        told = await spender.ask(path=SDK)
        assert (told.code, json_of(told)["error"]["type"]) == (429, "rate_limit_error")
        assert told.headers["Retry-After"] == refused.headers["Retry-After"]
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
            told = await one.ask(path=path)
            assert (told.code, json_of(told)["error"]["type"]) == (status, kind)
            assert json_of(told)["request_id"] == told.headers["Request-Id"]
    # An API key is no token; a request with a token ignores it.
    bare = await send(service.base_url + SDK, "POST", body="{}", headers={"X-Api-Key": spender.token})
    assert bare.code == 401
    token = await mint(service, service.web)
    one = replace(spender, token=token)
    assert (await one.ask(X_Api_Key="sk-wrong")).code == 200
    await service.store.grants.revoke(await session_of(service), spender.app.client_id, VISITOR)
    for path in paths:
        assert (await one.ask(path=path)).code == 401
    assert len(upstream.calls) == 1


@pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
async def test_a_trace_stays_here_unless_the_operator_says_otherwise(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = await spender.ask(question(stream=stream), traceparent=trace, tracestate="rojo=1")
    sent = upstream.calls[0].request.headers
    assert sent["X-Request-Id"] == answer.headers["X-Request-Id"]
    assert "traceparent" not in sent
    assert "tracestate" not in sent
