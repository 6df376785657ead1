"""A model at several servers: a conversation stays with one, another answers if that fails before its first byte, and
nobody pays twice. SPEC 4.6."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from outbound.ai.ranking import ranked
from tests.ai.upstreams.several import NAMES, Several
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import TEXT, Ending, Plan, error, events_of, failing, message
from tests.support.store.ai_spender import (
    SDK,
    OpenStream,
    Spender,
    assert_error,
    both_ways,
    cost,
    events_in,
    question,
    reached,
    text_of,
)

pytestmark = pytest.mark.gen_test(timeout=20)

ONCE = cost(25, 31)
FAILURES = [
    pytest.param(failing(429, "rate_limit_error"), id="429"),
    pytest.param(failing(500, "api_error"), id="500"),
    pytest.param(Plan(status=502, body=b"<h1>Bad gateway</h1>"), id="502"),
    pytest.param(Plan(status=503, body=b""), id="503"),
    pytest.param(failing(529, "overloaded_error"), id="529"),
    pytest.param(failing(401, "authentication_error"), id="401, a key that ended"),
    pytest.param(Plan(before="reset"), id="reset before the first byte"),
]


def said(body: bytes, stream: bool) -> str:
    """The text of a reply."""
    text: str = text_of(events_in(body)) if stream else json.loads(body)["content"][0]["text"]
    return text


async def test_a_conversation_stays_with_its_server(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    for turn in range(6):
        assert (await spender.ask(question(f"turn {turn}", stream=turn % 2 == 0))).code == 200
    assert several.calls(spender) == [6, 0, 0]
    assert await spender.charged() == [ONCE] * 6


@both_ways
@pytest.mark.parametrize("plan", FAILURES)
async def test_another_server_answers_and_the_call_is_charged_once(
    service: Service, several: Several, plan: Plan, stream: bool
) -> None:
    spender = await Spender.make(service)
    first, second, third = several.order(spender)
    first.plan = second.plan = plan
    third.plan = Plan(message("From the third.", usage={"input_tokens": 7, "output_tokens": 3}))
    response = await spender.ask(question(stream=stream))
    assert (response.code, said(response.body, stream)) == (200, "From the third.")
    assert several.calls(spender) == [1, 1, 1]
    assert first.calls[0].question == third.calls[0].question
    assert await spender.charged() == [cost(7, 3)], "by the report of the server that answered"
    measures = bytes_of_metrics(several)
    for upstream in several.upstreams(spender)[:2]:
        assert f"failovers/{upstream.name}" in measures
    assert f"failovers/{several.upstreams(spender)[2].name}" not in measures


def bytes_of_metrics(several: Several) -> list[str]:
    """The names of what was counted, with the server."""
    return [f"{family.name}/{labels[0]}" for family, labels, _ in several.site.measures._place.rows() if labels]


@both_ways
async def test_another_server_answers_if_the_connection_is_refused(
    service: Service, several: Several, stream: bool
) -> None:
    spender = await Spender.make(service)
    await several.order(spender)[0].close()
    response = await spender.ask(question(stream=stream))
    assert (response.code, said(response.body, stream)) == (200, TEXT)
    assert several.calls(spender) == [0, 1, 0]
    assert await spender.charged() == [ONCE]


async def test_tokens_are_counted_by_another_server(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    several.order(spender)[0].plan = failing(503, "api_error")
    body = {name: value for name, value in question().items() if name != "max_tokens"}
    assert json_of(await spender.ask(body, f"{SDK}/count_tokens")) == {"input_tokens": 7}
    assert several.calls(spender) == [1, 1, 0]


@both_ways
@pytest.mark.parametrize(
    "plan",
    [failing(400, "invalid_request_error"), failing(404, "not_found_error"), Plan(status=504, body=b"")],
    ids=["400", "404", "504, silence behind a proxy"],
)
async def test_no_other_server_is_asked_after_other_errors(
    service: Service, several: Several, plan: Plan, stream: bool
) -> None:
    spender = await Spender.make(service)
    several.order(spender)[0].plan = plan
    assert (await spender.ask(question(stream=stream))).code != 200
    assert several.calls(spender) == [1, 0, 0]
    assert await spender.charged() == []


@both_ways
@pytest.mark.parametrize("retry", [False, True])
async def test_silence_leads_elsewhere_only_by_setting(
    service: Service, several: Several, stream: bool, retry: bool
) -> None:
    spender = await Spender.make(service)
    several.limit(first_byte=0.3)
    for upstream in several.upstreams(spender):
        upstream._retry_timeouts = retry
    several.order(spender)[0].plan = Plan(before="hang")
    response = await spender.ask(question(stream=stream))
    assert response.code == (200 if retry else 504)
    assert several.calls(spender) == [1, int(retry), 0]
    assert await spender.charged() == [ONCE] * retry


@pytest.mark.trap(69)
@pytest.mark.parametrize("then", ["cut", "reset", "hang"])
async def test_no_other_server_is_asked_after_the_first_byte(service: Service, several: Several, then: Ending) -> None:
    spender = await Spender.make(service)
    several.limit(between_events=0.3, first_byte=0.3)
    for upstream in several.upstreams(spender):
        upstream._retry_timeouts = True
    for stops in (1, 4):
        several.order(spender)[0].plan = Plan(stops_after=stops, then=then)
        events = events_in((await spender.ask(question(stream=True))).body)
        assert [event["type"] for event in events].count("message_start") == 1
        assert events[-1]["type"] == "error"
    several.order(spender)[0].plan = Plan(stops_after=1, then=then)
    several.limit(total=0.6)
    assert (await spender.ask()).code in (502, 504)
    assert several.calls(spender) == [3, 0, 0]
    assert len(await spender.charged()) == 3, "accepted calls are never free"


@pytest.mark.trap(69)
async def test_an_error_after_the_first_event_leads_nowhere(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    several.order(spender)[0].plan = Plan(events=[*events_of(message())[:3], error("overloaded_error")])
    events = events_in((await spender.ask(question(stream=True))).body)
    assert [event["type"] for event in events][-1] == "error"
    assert several.calls(spender) == [1, 0, 0]


async def test_a_stream_that_fails_before_its_first_event_goes_on_elsewhere(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    first, second, _ = several.order(spender)
    first.plan, second.plan = Plan(events=[error("overloaded_error")]), Plan(stops_after=0)
    assert text_of(events_in((await spender.ask(question(stream=True))).body)) == TEXT
    assert several.calls(spender) == [1, 1, 1]
    assert await spender.charged() == [ONCE]


async def test_all_servers_fail_and_the_call_is_free(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    for server in several.servers.values():
        server.plan = failing(529, "overloaded_error")
    assert_error(await spender.ask(), 529, "overloaded")
    assert several.calls(spender) == [1, 1, 1]
    assert await spender.charged() == []


async def test_a_server_is_left_alone_as_long_as_it_asked_for(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    first, second, third = several.order(spender)
    pause = Plan(status=429, body=b"{}", headers={"Retry-After": "30"})
    first.plan = pause
    for _ in range(3):
        assert (await spender.ask()).code == 200
    assert several.calls(spender) == [1, 3, 0]
    second.plan, third.plan = pause, Plan(status=503, body=b"", headers={"Retry-After": "12"})
    for _ in range(2):
        refused = await spender.ask()
        assert refused.code in (502, 529)
        assert 11 <= int(refused.headers["Retry-After"]) <= 12
        assert several.calls(spender) == [1, 4, 1]
    several.upstreams(spender)[2].health._rests_until = 0.0
    third.plan = Plan()
    assert (await spender.ask()).code == 200
    assert several.calls(spender) == [1, 4, 2]


async def test_a_failing_server_is_asked_last_until_its_time_is_over(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    first, second, third = several.order(spender)
    first.plan = failing(503, "api_error")
    for _ in range(7):
        assert (await spender.ask()).code == 200
    assert several.calls(spender) == [5, 7, 0]
    assert f"ejections/{several.upstreams(spender)[0].name}" in bytes_of_metrics(several)
    second.plan = third.plan = failing(503, "api_error")
    first.plan = Plan()
    assert (await spender.ask()).code == 200, "nobody else is left"
    assert several.calls(spender) == [6, 8, 1]
    several.upstreams(spender)[0].health._ejected_until = 0.0
    assert (await spender.ask()).code == 200
    assert several.calls(spender) == [7, 8, 1]


async def test_streams_that_break_off_eject_too(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    several.order(spender)[0].plan = Plan(stops_after=3, then="cut")
    for _ in range(5):
        assert events_in((await spender.ask(question(stream=True))).body)[-1]["type"] == "error"
    assert text_of(events_in((await spender.ask(question(stream=True))).body)) == TEXT
    assert several.calls(spender) == [5, 1, 0]


async def test_an_app_that_hangs_up_ends_the_search(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    opens = asyncio.Event()
    first = several.order(spender)[0]
    first.plan = Plan(status=503, body=b"", opens=opens)
    stream = await OpenStream.open(spender, question(stream=True))
    await reached(first)
    stream.cut()
    while not all(cast(Any, stop).__self__._gone for stop in several.site.endings):
        await asyncio.sleep(0.001)
    opens.set()
    while several.site.endings:
        await asyncio.sleep(0.001)
    assert several.calls(spender) == [1, 0, 0]
    assert await spender.charged() == []


async def test_apps_are_spread_over_the_servers(service: Service, several: Several) -> None:
    spender = await Spender.make(service)
    chosen = {several.upstreams(spender)[0].name}
    for number in range(300):
        client = f"another-app-{number}"
        chosen.add(ranked(several.model.candidates, spender.user, client)[0].upstream.name)
    assert chosen == {*NAMES}


@both_ways
async def test_a_short_pause_is_waited_for_at_the_only_server(
    service: Service, several: Several, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    spender = await Spender.make(service)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    alone = several.model.others[0]
    several.site.models._models[alone.model_id] = alone
    server = several.servers[alone.upstream.name]
    monkeypatch.setattr("outbound.ai.failover.asyncio.sleep", sleep)
    server.script(Plan(status=429, body=b"{}", headers={"Retry-After": "1"}))
    assert (await spender.ask(question(stream=stream))).code == 200
    alone.upstream.health._rests_until = 0.0
    server.script(Plan(status=429, body=b"{}", headers={"Retry-After": "60"}))
    refused = await spender.ask(question(stream=stream))
    assert (refused.code, refused.headers["Retry-After"]) == (529, "60")
    assert len(server.calls) == 3
    assert 1.0 in waited
    assert 60 not in waited
    again = await spender.ask(question(stream=stream))
    assert (again.code, len(server.calls)) == (529, 3), "the server is left alone"
    assert int(again.headers["Retry-After"]) in (59, 60)
