"""Calls on an OpenAI server: the hold, the charge, the refusals, and the charge if the app leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai.dialects import same
from outbound.ai.messages import OVERHEAD_TOKENS
from outbound.ai.models import Timeouts
from outbound.ai.openai import IMAGE_TOKENS, OpenAIUpstream
from outbound.ai.tokens import count, count_request
from tests.ai.openai.kit import CHAT, GPT, RESPONSES, asks, chat, wrong
from tests.ai.openai.kit import site as site
from tests.support.http.driver import Service
from tests.support.http.openai_upstream import ChatPlan, ResponsesPlan
from tests.support.http.upstream import ScriptedUpstream
from tests.support.store.ai_spender import NATIVE, OpenStream, Spender, at_rest, cost

pytestmark = pytest.mark.gen_test(timeout=30)


@pytest.mark.parametrize(
    ("path", "body", "headers", "param"),
    [
        (CHAT, chat(field_of_next_year=1), {}, "field_of_next_year"),
        (CHAT, chat(), {"OpenAI_Beta": "a-beta=v1"}, "openai-beta"),
        (RESPONSES, asks(field_of_next_year=1), {}, "field_of_next_year"),
    ],
)
async def test_an_operator_may_refuse_what_is_unknown(
    service: Service,
    upstream: ScriptedUpstream,
    site: Site,
    path: str,
    body: dict[str, Any],
    headers: dict[str, str],
    param: str,
) -> None:
    spender = await Spender.make(service)
    model = site.models.find(GPT)
    assert model is not None
    model.upstream.refuses_unknown = True
    assert wrong(await spender.ask(body, path, **headers), 400)["param"] == param
    upstream.plan = ChatPlan()
    assert (await spender.ask(chat(seed=1, user="u"), CHAT)).code == 200


def test_every_field_of_the_apis_has_a_row_in_the_tables() -> None:
    """A new version of the SDK may bring new fields. Somebody must review whether each changes the bill."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    assert {*CompletionCreateParamsBase.__annotations__, "stream"} == same.CHAT.keys()
    assert {*ResponseCreateParamsBase.__annotations__, "stream"} == same.RESPONSES.keys()


@pytest.mark.parametrize("url", ["https://a.example", "https://a.example/", "https://a.example/v1/"])
def test_the_version_is_added_to_an_address_without_one(url: str) -> None:
    assert OpenAIUpstream("a", url, "", Timeouts(), 1).url == "https://a.example/v1"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://a.example/api/v1", "https://a.example/api/v1"),
        ("https://a.example/v1beta/openai", "https://a.example/v1beta/openai"),
        ("https://v1.example/api", "https://v1.example/api/v1"),
    ],
)
def test_a_version_in_the_path_is_kept(url: str, found: str) -> None:
    assert OpenAIUpstream("a", url, "", Timeouts(), 1).url == found


async def test_what_a_pictures_size_does_not_bound_is_held(service: Service, site: Site) -> None:
    model = site.models.find(GPT)
    assert model is not None

    def held(part: dict[str, Any]) -> int:
        body = {"messages": [{"role": "user", "content": [part]}]}
        return model.most_input(body, 1_000)

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert held({"type": "text", "text": "x"}) == 1_000 + OVERHEAD_TOKENS
    assert held(image) == 1_000 + OVERHEAD_TOKENS + IMAGE_TOKENS
    assert held({**image, "image_url": {"url": "https://x.example/a.png"}}) == model.max_input
    screen = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"}
    for hidden in (
        {"type": "computer_call_output", "output": screen},
        {"type": "image_generation_call", "result": "A"},
    ):
        assert held({"type": "text", "text": "x", "other": hidden}) == 1_000 + OVERHEAD_TOKENS + IMAGE_TOKENS


@pytest.mark.trap(29)
@pytest.mark.parametrize("path", [CHAT, RESPONSES, NATIVE])
async def test_a_stream_that_its_app_leaves_is_charged_input_and_received_output(
    service: Service, app: Latchkey, site: Site, upstream: ScriptedUpstream, path: str
) -> None:
    model = site.models.find(GPT)
    assert model is not None
    model.upstream.limits = Timeouts(first_byte=10, between_events=0.5)  # the server waits for an end with the usage
    spender = await Spender.make(service)
    gate = asyncio.Semaphore(6)
    upstream.plan = ResponsesPlan(gate=gate) if path == RESPONSES else ChatPlan(gate=gate)
    body = asks(stream=True) if path == RESPONSES else chat(stream=True, max_tokens=100)
    stream = await OpenStream.open(spender, body, path=path)
    await stream.begin()
    while upstream.calls[0].sent < 6:
        await asyncio.sleep(0.001)
    stream.cut()
    await at_rest(app)
    await upstream.calls[0].over.wait()
    assert upstream.calls[0].hung_up
    said = "It is" if path == RESPONSES else "It is a truth universally"
    [charged] = await spender.charged()
    request = upstream.calls[0].question
    assert cost(count_request(request), 0) < charged <= cost(count_request(request), count(said))
