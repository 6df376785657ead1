"""Long requests go on to the model's server in every dialect, without being an object in the server process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.core.long.bodies import LONG_REQUEST
from handlers.core.long.helper import Helper
from handlers.core.site import Site
from outbound.ai.echo import ECHO
from outbound.ai.tokens import count_request
from tests.ai.long.kit import LONG_TEXT, helper, long_question, padded, site
from tests.ai.openai.kit import CHAT, CLAUDE, GPT, RESPONSES, asks, chat, chunks_in, said_in
from tests.support.http.driver import Service, json_of
from tests.support.http.http_servers import until
from tests.support.http.openai_upstream import ChatPlan, ResponsesPlan, completion, item_of, response
from tests.support.http.upstream import VENDOR_MODEL, Plan, ScriptedUpstream, message
from tests.support.store.ai_spender import NATIVE, SDK, Spender, both_ways, events_in, question

pytestmark = pytest.mark.gen_test(timeout=60)
__all__ = ["helper", "site"]


@both_ways
async def test_a_long_request_goes_on_as_it_came(
    service: Service, site: Site, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    sent = long_question(stream=stream, system="Ünïcode \U0001f600", metadata={"a": [1, 2.5, None, "\u0001"]})
    answer = await spender.ask(sent, SDK, anthropic_version="2023-06-01")
    assert answer.code == 200, answer.body
    call = upstream.calls[-1]
    assert call.question == {**sent, "model": VENDOR_MODEL}
    assert call.request.headers["Content-Length"] == str(len(call.request.body)), "not in chunks"
    assert len(await spender.charged()) == 1
    assert site.long_bodies.helper.pid is not None
    if stream:
        assert events_in(answer.body)[-1]["type"] == "message_stop"


async def test_a_request_of_1_mib_needs_no_helper(service: Service, site: Site) -> None:
    spender = await Spender.make(service)
    site.long_bodies.helper = Helper("no.such.program")
    assert (await spender.ask(padded(question(model=CLAUDE), LONG_REQUEST))).code == 200
    assert (await spender.ask(padded(question(model=CLAUDE), LONG_REQUEST + 1))).code == 503


async def test_a_long_form_is_read(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    messages = json.dumps([{"role": "user", "content": "a" * LONG_REQUEST}])
    form = f"model={CLAUDE}&max_tokens=5&messages={messages}".replace(" ", "+").encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await spender.ask(form, **kind)).code == 200
    assert upstream.calls[-1].question["messages"] == json.loads(messages)


PAIRS: dict[str, tuple[str, dict[str, Any], Plan]] = {
    "chat to chat": (CHAT, chat(LONG_TEXT, n=2), ChatPlan(completion("Done."))),
    "chat to messages": (CHAT, chat(LONG_TEXT, CLAUDE), Plan(message("Done."))),
    "responses to responses": (RESPONSES, asks(LONG_TEXT), ResponsesPlan(response(item_of("Done.")))),
    "responses to messages": (RESPONSES, asks(LONG_TEXT, CLAUDE, instructions="Play."), Plan(message("Done."))),
    "messages to chat": (SDK, question(LONG_TEXT, model=GPT), ChatPlan(completion("Done."))),
}


@both_ways
@pytest.mark.parametrize(("path", "sent", "plan"), PAIRS.values(), ids=PAIRS)
async def test_long_requests_are_translated_like_short_ones(
    service: Service,
    upstream: ScriptedUpstream,
    path: str,
    sent: dict[str, Any],
    plan: Plan,
    stream: bool,
) -> None:
    spender = await Spender.make(service)
    upstream.plan = plan
    short = json.loads(json.dumps(sent).replace(LONG_TEXT, "Short."))
    answers = [await spender.ask({**one, "stream": stream}, path) for one in (short, sent)]
    assert [answer.code for answer in answers] == [200, 200], answers[-1].body
    first, second = (json.dumps(call.question) for call in upstream.calls)
    assert json.loads(second) == json.loads(first.replace("Short.", LONG_TEXT))
    assert b"Done." in answers[1].body
    assert len(await spender.charged()) == 2


@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_tokens_of_a_long_request_are_counted(service: Service, model: str, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    sent = question(LONG_TEXT, model=model, metadata={"user_id": "1"})
    answer = await spender.ask(sent, f"{SDK}/count_tokens")
    assert answer.code == 200, answer.body
    if model == CLAUDE:
        assert upstream.calls[-1].question == {"messages": sent["messages"], "model": VENDOR_MODEL}
    else:
        assert json_of(answer)["input_tokens"] > 200_000


async def test_unreported_input_of_a_long_request_is_counted(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=10_000_000)
    upstream.plan = Plan(message("Done.", usage={"output_tokens": 1}))
    sent = long_question()
    assert (await spender.ask(sent)).code == 200
    assert (await spender.account()).entries[0].input_tokens == count_request(sent)


async def test_a_long_request_costs_something_without_a_helper_to_count_it(
    service: Service, site: Site, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service, amount=10_000_000)
    gate = asyncio.Event()
    upstream.plan = Plan(message("Done.", usage={"output_tokens": 1}), opens=gate)
    asking = asyncio.ensure_future(spender.ask(long_question()))
    await until(lambda: bool(upstream.calls))
    site.long_bodies.helper = Helper("no.such.program")
    gate.set()
    assert (await asking).code == 200
    assert (await spender.account()).entries[0].input_tokens >= len(LONG_TEXT) // 8


async def test_a_retry_of_a_long_request_gets_its_reply(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    first, again = [await spender.ask(long_question(), key="k") for _ in range(2)]
    other = await spender.ask(long_question(top_k=2), key="k")
    assert (first.code, again.code, again.body, other.code) == (200, 200, first.body, 422)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (len(upstream.calls), len(await spender.charged())) == (1, 1)


async def test_failover_sends_a_long_request_again(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    upstream.script(Plan(status=503, body=b""))
    assert (await spender.ask(long_question())).code == 200
    assert upstream.calls[0].request.body == upstream.calls[1].request.body


async def test_the_built_in_model_takes_white_space_but_no_long_request(service: Service) -> None:
    spender = await Spender.make(service)
    answer = await spender.ask(padded(question("Say it.", model=ECHO), LONG_REQUEST + 1))
    assert json_of(answer)["content"][0]["text"] == "Say it."
    metadata = {"metadata": {"user_id": "a" * LONG_REQUEST}}
    assert (await spender.ask(question("Say it.", model=ECHO, **metadata))).code == 400


async def test_what_the_answer_repeats_is_short(service: Service) -> None:
    spender = await Spender.make(service)
    refused = await spender.ask(asks("Hi", CLAUDE, instructions=LONG_TEXT), RESPONSES)
    assert refused.code == 400
    assert "256 KiB" in json_of(refused)["error"]["message"]


async def test_streams_of_a_long_translated_request_have_all_chunks(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(message("It was the best of times."))
    answer = await spender.ask(chat(LONG_TEXT, CLAUDE, stream=True), CHAT)
    assert said_in(chunks_in(answer.body)) == "It was the best of times."
    assert (await spender.ask(long_question(), NATIVE)).code == 200
