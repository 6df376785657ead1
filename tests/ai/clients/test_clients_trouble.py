"""Client libraries of AI APIs in trouble: each error becomes an exception of theirs, and none hangs. SPEC 4.6."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.application import Latchkey
from tests.ai.clients.driving import CLIENTS, Client, Failed, Program
from tests.ai.clients.test_clients import Driven, drive, looks, says
from tests.ai.openai.kit import CLAUDE, GPT
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service
from tests.support.http.upstream import TEXT, Plan, ScriptedUpstream, failing
from tests.support.processes.engines import FakeClock
from tests.support.store.ai_spender import at_rest, hurry

pytestmark = [pytest.mark.gen_test(timeout=120), pytest.mark.slow]
each_client = pytest.mark.parametrize("client", CLIENTS, ids=str)

STATUSES = (400, 401, 402, 429, 502, 529)
ANTHROPIC = (
    *("BadRequestError", "AuthenticationError", "PaymentRequiredError", "RateLimitError"),
    *("InternalServerError", "OverloadedError"),
)
OPENAI = ("BadRequestError", "AuthenticationError", "APIStatusError", "RateLimitError", *["InternalServerError"] * 2)
NAMES: dict[str, tuple[str, ...]] = {
    "node, anthropic": (*ANTHROPIC, "APIError", "APIConnectionTimeoutError"),
    "node, openai": (*OPENAI[:2], "APIError", *OPENAI[3:], "APIError", "APIConnectionTimeoutError"),
    "node, ai-sdk": (*["AI_APICallError"] * 6, "Object", "TimeoutError"),
    "python, anthropic": (*ANTHROPIC, "APIStatusError", "APITimeoutError"),
    "python, openai": (*OPENAI, "APIError", "APITimeoutError"),
    "python, litellm anthropic": (
        *(*ANTHROPIC[:4], "BadGatewayError", "InternalServerError"),
        *("MidStreamFallbackError", "Timeout"),
    ),
    "python, litellm chat": (
        *("BadRequestError", "AuthenticationError", "APIError", "RateLimitError", "BadGatewayError", "APIError"),
        *("MidStreamFallbackError", "Timeout"),
    ),
    "python, langchain anthropic": (
        *("AnthropicInvalidRequestError", "AnthropicAuthenticationError", "PaymentRequiredError"),
        *("AnthropicRateLimitError", "AnthropicAPIError", "AnthropicOverloadedError"),
        *("APIStatusError", "AnthropicTimeoutError"),
    ),
    "python, langchain": (
        *("OpenAIInvalidRequestError", "OpenAIAuthenticationError", "APIStatusError", "OpenAIRateLimitError"),
        *("OpenAIAPIError", "OpenAIAPIError", "APIError", "OpenAITimeoutError"),
    ),
}
"""The names of the exceptions of a library: for each of STATUSES, for a stream that breaks, and for silence."""


def names_of(client: Client) -> tuple[dict[int, str], str, str]:
    """The exceptions of a client."""
    *by_status, broken, silent = next(names for known, names in NAMES.items() if str(client).startswith(known))
    return dict(zip(STATUSES, by_status, strict=True)), broken, silent


async def failure(driven: Driven, model: str, **changes: Any) -> Failed:
    """How a question fails."""
    with pytest.raises(Failed) as caught:
        await driven.call("ask", model, **changes)
    return caught.value


@each_client
async def test_errors_are_exceptions_of_the_library(
    service: Service, clock: FakeClock, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    clock.stop()  # a window that is full stays so
    driven = await drive(client, program, service)
    by_status, *_ = names_of(client)
    for model in (GPT, CLAUDE):
        met = {401: await failure(driven, model, token="lk_at_dead")}
        for status, plan in (
            (400, failing(400, "invalid_request_error")),
            (502, failing(500, "api_error")),
            (529, failing(529, "overloaded_error")),
        ):
            upstream.plan = plan
            met[status] = await failure(driven, model)
        await driven.fill_window()
        met[429] = await failure(driven, model, fresh=False)
        account = await driven.spender.account()
        await service.store.credits.grant(service.ada, -account.paid)
        met[402] = await failure(driven, model)
        await service.store.credits.grant(service.ada, account.paid)
        shown = {status: failed.status for status, failed in met.items()}
        # litellm shows 500 for every status of a server that it does not know in this dialect.
        assert shown == {
            **dict(zip(STATUSES, STATUSES, strict=True)),
            **({529: 500} if client.name == "litellm anthropic" else {}),
        }
        assert {status: failed.kind for status, failed in met.items()} == by_status
    assert len(await driven.spender.charged()) == 1  # the one that filled the window


@each_client
async def test_a_broken_or_silent_stream_raises_and_is_charged(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    driven = await drive(client, program, service)
    _, broken, silent = names_of(client)
    for model in (GPT, CLAUDE):
        begun = replace(says(client, model, TEXT), stops_after=8)
        upstream.plan = replace(begun, then="cut")
        failed = await failure(driven, model, stream=True)
        assert (failed.kind, "failed in the middle of the call" in failed.said) == (broken, True)
        opens = asyncio.Event()
        upstream.plan = replace(says(client, model, TEXT), opens=opens)
        assert (await failure(driven, model, timeout=700)).kind == silent
        opens.set()
    hurry(app.site)
    for model in (GPT, CLAUDE):
        upstream.plan = replace(says(client, model, TEXT), stops_after=8, then="hang")
        failed = await failure(driven, model, stream=True)
        assert (failed.kind, "took too long" in failed.said) == (broken, True)
        upstream.plan = Plan(before="hang")
        assert (await failure(driven, model)).status == 504
    await at_rest(app)
    assert len(await driven.spender.charged()) == 6  # all but those that nobody answered


# litellm retries calls of the Messages API by a clock of its own, if at all.
@pytest.mark.parametrize("client", [one for one in CLIENTS if one.name != "litellm anthropic"], ids=str)
async def test_retries_wait_as_long_as_the_server_says(
    service: Service, clock: FakeClock, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    driven = await drive(client, program, service)
    upstream.plan = says(client, GPT, TEXT)
    await driven.fill_window()
    refused = await driven.spender.ask()
    clock.advance(int(refused.headers["Retry-After"]) - 2)
    began = asyncio.get_running_loop().time()
    made = await driven.call("ask", GPT, retries=1, fresh=False)
    assert made["text"] == TEXT
    assert asyncio.get_running_loop().time() - began >= 1


@pytest.mark.parametrize("client", [one for one in CLIENTS if one.name == "ai-sdk responses"], ids=str)
async def test_an_app_that_leaves_its_answers_here_reads_what_to_do(
    service: Service, upstream: ScriptedUpstream, program: Program, client: Client
) -> None:
    driven = await drive(client, program, service)
    for model in (GPT, CLAUDE):
        upstream.script(looks(client, model))
        with pytest.raises(Failed) as caught:
            await driven.call("tools", model, kept=True)
        assert caught.value.status == 400
        assert "store: false" in caught.value.said
