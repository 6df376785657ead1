"""The official SDKs, unmodified: the OpenAI SDK on servers of both dialects, and the Anthropic SDK on an OpenAI server.
SPEC 4.6."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store import keys
from tests.ai.openai.kit import CLAUDE, ECHO, GPT
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service
from tests.support.http.openai_upstream import (
    SAID,
    ChatPlan,
    ResponsesPlan,
    call_of,
    chunks_of,
    completion,
    response,
    response_events,
)
from tests.support.http.upstream import TEXT, Plan, ScriptedUpstream, failing, message
from tests.support.store.ai_spender import Spender, mint

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]

ASKED: Any = [{"role": "user", "content": "Hello there"}]
USAGE: Any = {"include_usage": True}
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def client(service: Service, token: str) -> Any:
    """The SDK with only its base URL and an access token."""
    import openai  # a second and more, which runs without this test need not take

    return openai.AsyncOpenAI(base_url=f"{service.base_url}/api/v1/ai/v1", api_key=token, max_retries=0, timeout=20)


async def test_chat_completions_whole_and_streamed(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    async with client(service, spender.token) as sdk:
        for model, plan, said in ((GPT, ChatPlan(), SAID), (CLAUDE, Plan(), TEXT), (ECHO, Plan(), "Hello there")):
            upstream.plan = plan
            made = await sdk.chat.completions.create(model=model, messages=ASKED)
            assert made.choices[0].message.content == said
            assert made.usage.credits_charged == (await spender.charged())[-1]
            stream = await sdk.chat.completions.create(model=model, messages=ASKED, stream=True, stream_options=USAGE)
            chunks = [chunk async for chunk in stream]
            assert "".join(choice.delta.content or "" for one in chunks for choice in one.choices) == said
            assert chunks[-1].usage.credits_charged == (await spender.charged())[-1]
            assert [one.usage for one in chunks[:-1]] == [None] * (len(chunks) - 1)


async def test_responses_whole_and_streamed(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    async with client(service, spender.token) as sdk:
        for model, plan, said in ((GPT, ResponsesPlan(), SAID), (CLAUDE, Plan(), TEXT), (ECHO, Plan(), "Hello there")):
            upstream.plan = plan
            made = await sdk.responses.create(model=model, input="Hello there")
            assert made.output_text == said
            assert made.usage.credits_charged == (await spender.charged())[-1]
            async with sdk.responses.stream(model=model, input="Hello there") as stream:
                kinds = [event.type async for event in stream]
                final = await stream.get_final_response()
            assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
            assert final.output_text == said
            assert final.usage.credits_charged == (await spender.charged())[-1]


async def test_tools_and_parsed_answers(service: Service, upstream: ScriptedUpstream) -> None:
    import pydantic

    class City(pydantic.BaseModel):
        name: str
        people: int

    spender = await Spender.make(service)
    tool_use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "\U0001f511"}}
    async with client(service, spender.token) as sdk:
        for model, plan in (
            (GPT, ChatPlan(completion(None, call_of("look", {"at": "\U0001f511"})))),
            (CLAUDE, Plan(message(tool_use, stop_reason="tool_use"))),
        ):
            upstream.plan = plan
            async with sdk.chat.completions.stream(model=model, messages=ASKED, tools=[TOOL]) as stream:
                final = await stream.get_final_completion()
            [call] = final.choices[0].message.tool_calls
            assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"at": "\U0001f511"})
        made = await sdk.chat.completions.parse(model=ECHO, messages=ASKED, response_format=City)
        assert isinstance(made.choices[0].message.parsed, City)
        answered = await sdk.responses.parse(model=ECHO, input="Hello", text_format=City)
        assert isinstance(answered.output_parsed, City)


async def test_errors_are_the_sdks_own_exceptions(service: Service, upstream: ScriptedUpstream) -> None:
    import openai

    spender = await Spender.make(service)
    narrow = await mint(service, service.web, "profile")

    async def failure(sdk: Any, **changes: Any) -> tuple[str, Any, Any]:
        with pytest.raises(openai.APIStatusError) as caught:
            await sdk.chat.completions.create(**{"model": GPT, "messages": ASKED, **changes})
        assert caught.value.request_id
        return type(caught.value).__name__, caught.value.code, caught.value.param

    async with client(service, spender.token) as sdk, client(service, "lk_at_x") as bad, client(service, narrow) as low:
        assert await failure(bad) == ("AuthenticationError", "invalid_api_key", None)
        assert await failure(low) == ("PermissionDeniedError", "insufficient_scope", None)
        assert await failure(sdk, model="none") == ("NotFoundError", "model_not_found", None)
        assert await failure(sdk, n=99) == ("BadRequestError", "invalid_request", "n")
        upstream.plan = failing(500, "api_error")
        assert await failure(sdk) == ("InternalServerError", "upstream_error", None)
        upstream.plan = failing(429, "rate_limit_error")
        assert await failure(sdk) == ("InternalServerError", "overloaded", None)
        with pytest.raises(openai.NotFoundError):
            await sdk.responses.retrieve("resp_1")
        with pytest.raises(openai.NotFoundError):
            await sdk.responses.delete("resp_1")
        with pytest.raises(openai.NotFoundError):
            await sdk.models.retrieve("none")
        await service.store.credits.grant(service.ada, -(await spender.account()).paid)
        assert await failure(sdk) == ("APIStatusError", "insufficient_quota", None)
        for _ in range(30):
            found = await failure(sdk)
        assert found == ("RateLimitError", "rate_limit_exceeded", None)
        await service.store.client.delete(keys.limit(spender.user, "ai"))


async def test_errors_within_streams_are_raised(service: Service, upstream: ScriptedUpstream) -> None:
    import openai

    spender = await Spender.make(service)
    async with client(service, spender.token) as sdk:
        upstream.plan = ChatPlan(events=chunks_of(completion())[:3], done=False)
        with pytest.raises(openai.APIError) as caught:
            async for _ in await sdk.chat.completions.create(model=GPT, messages=ASKED, stream=True):
                pass
        assert caught.value.code == "upstream_error"
        for model, plan in (
            (GPT, ResponsesPlan(events=response_events(response())[:3])),
            (CLAUDE, Plan(stops_after=3, then="cut")),
        ):
            upstream.plan = plan
            with pytest.raises(openai.APIError) as caught:
                async for _ in await sdk.responses.create(model=model, input="Hello", stream=True):
                    pass
            assert caught.value.code == "upstream_error"


async def test_both_sdks_read_the_same_list_of_models(service: Service) -> None:
    import anthropic

    spender = await Spender.make(service)
    async with client(service, spender.token) as sdk:
        ours = [one async for one in sdk.models.list()]
        one = await sdk.models.retrieve(GPT)
    async with anthropic.AsyncAnthropic(base_url=f"{service.base_url}/api/v1/ai", auth_token=spender.token) as other:
        theirs = [model async for model in other.models.list()]
        with pytest.raises(anthropic.NotFoundError):
            await other.models.retrieve("none")
    assert [model.id for model in ours] == [model.id for model in theirs] == [ECHO, CLAUDE, GPT]
    assert (one.object, one.owned_by, one.created) == ("model", "latchkey", 1_767_225_600)
    assert (one.display_name, one.type, one.cacheRead) == ("Scripted", "model", 300_000)


async def test_the_anthropic_sdk_on_an_openai_server(service: Service, upstream: ScriptedUpstream) -> None:
    import anthropic

    spender = await Spender.make(service)
    upstream.plan = ChatPlan(completion("Look:", call_of("look", {"at": 1})))
    asked: Any = {"model": GPT, "max_tokens": 100, "messages": ASKED}
    async with anthropic.AsyncAnthropic(base_url=f"{service.base_url}/api/v1/ai", auth_token=spender.token) as sdk:
        whole = await sdk.messages.create(**asked)
        async with sdk.messages.stream(**asked) as stream:
            final = await stream.get_final_message()
    replies: list[Any] = [whole, final]
    for made in replies:
        assert [block.type for block in made.content] == ["text", "tool_use"]
        assert made.content[1].input == {"at": 1}
        assert made.stop_reason == "tool_use"
        assert (made.usage.input_tokens, made.usage.cache_read_input_tokens, made.usage.output_tokens) == (15, 10, 31)
