"""AI calls whose upstream fails, hangs, lies or breaks off. The app gets the right error; a refused call is free, and
an accepted one is not. SPEC 4.6."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handlers.core.site import Site
from outbound.ai import failover
from outbound.ai.tokens import count, count_request
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import TEXT, Plan, ScriptedUpstream, error, events_of, failing, message
from tests.support.store.ai_spender import (
    NATIVE,
    PATIENT,
    SDK,
    Spender,
    assert_error,
    cost,
    events_in,
    hurry,
    question,
    text_of,
)

pytestmark = pytest.mark.gen_test(timeout=20)


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


INPUT = count_request(question())
COUNTED = cost(INPUT, 0)
"""What an accepted call costs whose upstream reported nothing."""

FAILURES = [
    # id, plan, status, code, requests of a whole reply and of a stream; with a status of 200 it is accepted
    ("cut before the first byte", Plan(before="cut"), 502, "upstream_error", 2, 2),
    ("reset before the first byte", Plan(before="reset"), 502, "upstream_error", 2, 2),
    ("hanging before the first byte", Plan(before="hang"), 504, "upstream_timeout", 1, 1),
    ("refusing the key", failing(401, "authentication_error"), 502, "upstream_error", 1, 1),
    ("forbidding", failing(403, "permission_error"), 502, "upstream_error", 1, 1),
    ("without the model", failing(404, "not_found_error"), 502, "upstream_error", 1, 1),
    ("redirecting", Plan(status=302, body=b"", headers={"Location": "/v1/elsewhere"}), 502, "upstream_error", 1, 1),
    ("limiting our rate", failing(429, "rate_limit_error"), 529, "overloaded", 2, 2),
    ("failing", failing(500, "api_error"), 502, "upstream_error", 2, 2),
    ("unavailable", Plan(status=503, body=b"<h1>Sorry</h1>"), 502, "upstream_error", 2, 2),
    ("overloaded", failing(529, "overloaded_error"), 529, "overloaded", 2, 2),
    ("no JSON", Plan(body=b"<h1>Hello</h1>"), 502, "upstream_error", 1, 2),
    ("no object", Plan(body=b"[1]"), 502, "upstream_error", 1, 2),
    ("nothing", Plan(body=b""), 502, "upstream_error", 1, 2),
    ("nested without end", Plan(body=b"[" * 200_000), 502, "upstream_error", 1, 2),
    ("a number that is none", Plan(body=b'{"content": [], "x": NaN}'), 502, "upstream_error", 1, 2),
    ("a number beyond all", Plan(body=b'{"content": [], "x": 1e999}'), 502, "upstream_error", 1, 2),
    ("nested 300 deep", Plan(body=b'{"content": %b}' % (b"[" * 300 + b"]" * 300)), 502, "upstream_error", 1, 2),
    ("endless", Plan(body=b" " * (33 * 2**20)), 502, "upstream_error", 1, 2),
    ("400 that is no error", Plan(status=400, body=b"{"), 502, "upstream_error", 1, 1),
    ("400 nested without end", Plan(status=400, body=b"[" * 200_000), 502, "upstream_error", 1, 1),
    ("400 of another kind", failing(400, "billing_error"), 502, "upstream_error", 1, 1),
]


@pytest.mark.trap(29)
@pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
@pytest.mark.parametrize(
    ("plan", "status", "code", "whole", "streamed"), [pytest.param(*case[1:], id=case[0]) for case in FAILURES]
)
async def test_an_upstream_failure_before_any_output_is_an_error(
    service: Service,
    site: Site,
    upstream: ScriptedUpstream,
    plan: Plan,
    status: int,
    code: str,
    whole: int,
    streamed: int,
    stream: bool,
) -> None:
    spender = await Spender.make(service)
    if code == "upstream_timeout":
        hurry(site)
    upstream.plan = plan
    response = await spender.ask(question(stream=stream))
    assert "said by the server" not in assert_error(response, status, code)
    assert response.headers["X-RateLimit-Limit"] == "20"
    assert response.headers["X-RateLimit-Remaining"] == "19"
    assert "Retry-After" not in response.headers, "the window of the person is open"
    assert len(upstream.calls) == (streamed if stream else whole)
    accepted = plan.status == 200 and not plan.before
    assert response.headers.get("X-Should-Retry") == ("false" if accepted else None)
    assert ("What it had used until then was charged" in json_of(response)["error_description"]) == accepted
    output = 0 if stream or plan.body is None else min(100, count(plan.body[:1000].decode()))
    expected = [cost(INPUT, output)] * accepted
    assert await spender.charged() == expected
    upstream.plan = Plan()
    assert (await spender.ask(question(stream=stream))).code == 200
    assert await spender.charged() == [*expected, cost(25, 31)]


def unreadable(argument: bytes) -> bytes:
    """A whole reply that calls a tool, and reports 25 and 31 tokens."""
    reply = message({"type": "tool_use", "id": "t", "name": "f", "input": {"a": "ARGUMENT"}})
    return json.dumps(reply).encode().replace(b'"ARGUMENT"', argument)


FORGED = b'{"usage": {"input_tokens": 0, "output_tokens": 0}}'
UNREADABLE = {
    "nested 300 deep": unreadable(b'{"a":' * 300 + b"1" + b"}" * 300),
    "a number of 5,000 digits": unreadable(b"1" * 5000),
    "a number beyond all": unreadable(b"1e999"),
    "a number that is none": unreadable(b"NaN"),
    "bytes that are no UTF-8": unreadable(b'"\xff"'),
    "a forged report among the arguments": unreadable(b"[NaN, %b]" % FORGED),
    "a forged report in a string": unreadable(b"[NaN, %b]" % json.dumps(FORGED.decode()).encode()),
    "a forged report behind the true one": unreadable(b"1")[:-1] + b', "more": [NaN, %b]}' % FORGED,
}


@pytest.mark.trap(29)
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in UNREADABLE.items()])
async def test_an_unreadable_reply_is_charged_as_reported(
    service: Service, upstream: ScriptedUpstream, body: bytes
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(body=body)
    assert_error(await spender.ask(), 502, "upstream_error")
    assert await spender.charged() == [cost(25, 31)]


async def test_a_failure_before_the_first_byte_is_retried_and_charged_once(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    overloaded, broken = failing(529, "overloaded_error"), Plan(events=[error("overloaded_error")])
    for stream, first in ((False, overloaded), (True, overloaded), (True, broken), (True, Plan(stops_after=0))):
        upstream.script(first)
        response = await spender.ask(question(stream=stream))
        assert (response.code, TEXT in response.body.decode() or text_of(events_in(response.body))) == (
            200,
            True if not stream else TEXT,
        )
        assert upstream.calls[-2].question == upstream.calls[-1].question
    assert len(upstream.calls) == 8
    assert await spender.charged() == [cost(25, 31)] * 4


@pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
async def test_a_retry_shares_the_first_byte_timeout(
    service: Service, site: Site, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(failover, "PAUSE", 0.25)
    hurry(site, replace(PATIENT, first_byte=0.2))
    spender = await Spender.make(service)
    upstream.script(Plan(before="cut"))
    assert_error(await spender.ask(question(stream=stream)), 504, "upstream_timeout")
    assert await spender.charged() == []


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("overloaded_error", 529, "overloaded"),
        ("rate_limit_error", 529, "overloaded"),
        ("api_error", 502, "upstream_error"),
    ],
)
async def test_an_error_as_first_event_becomes_a_status(
    service: Service, upstream: ScriptedUpstream, kind: str, status: int, code: str
) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(events=[error(kind)])
    assert_error(await spender.ask(question(stream=True)), status, code)
    assert len(upstream.calls) == 2
    assert await spender.charged() == []


async def test_output_before_an_error_is_charged_without_a_message_start(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    events = [event for event in events_of(message()) if event["type"].startswith("content_block")]
    upstream.plan = Plan(events=[*events, error("overloaded_error")])
    response = await spender.ask(question(stream=True))
    assert events_in(response.body)[-1]["type"] == "error"
    assert await spender.charged() == [cost(INPUT, count(TEXT))]


async def test_an_error_after_only_pings_is_free(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(events=[{"type": "ping"}, error("overloaded_error")])
    await spender.ask(question(stream=True))
    assert await spender.charged() == []


async def test_a_refused_retry_does_not_make_the_first_attempt_free(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    upstream.script(Plan(stops_after=0), Plan(events=[error("overloaded_error")]))
    assert_error(await spender.ask(question(stream=True)), 529, "overloaded")
    assert len(upstream.calls) == 2
    assert await spender.charged() == [COUNTED]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_excessive_report_costs_only_the_hold(
    service: Service, upstream: ScriptedUpstream, stream: bool
) -> None:
    spender = await Spender.make(service)
    for reported in (10**6, int("9" * 3000)):
        upstream.plan = Plan(message(usage={"input_tokens": 25, "output_tokens": reported}))
        response = await spender.ask(question(stream=stream))
        said = text_of(events_in(response.body)) if stream else json_of(response)["content"][0]["text"]
        assert (response.code, said) == (200, TEXT)
    held, again = await spender.charged()
    assert held == again > cost(25, 100)


async def test_an_error_body_with_a_success_status_is_an_error(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    upstream.plan = Plan(error("overloaded_error"))
    assert_error(await spender.ask(), 529, "overloaded")
    assert len(upstream.calls) == 1
    assert await spender.charged() == []


LONG = "prompt is too long: 213462 tokens > 200000 maximum"
THINK = "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
REFUSED = "The model's server refused the request"
SECRETS = "sk-ant-123 at https://10.0.0.7/v1 of Acme (admin@acme.example)"


@pytest.mark.trap(70)
@pytest.mark.parametrize(("status", "kind"), [(400, "invalid_request_error"), (413, "request_too_large")])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (LONG, LONG),
        (f"{LONG}. Ask {SECRETS}", LONG),
        (f"messages.3.content.0.type: {THINK}. When `thinking` is enabled, …", f"messages.3.content.0.type: {THINK}"),
        ("tools.0.custom.input_schema: Field required", "tools.0.custom.input_schema: Field required"),
        (f"tools.0.name: no such thing, says {SECRETS}", f"{REFUSED}: tools.0.name."),
        (f"messages.0.{SECRETS}: Field required", f"{REFUSED}."),
        (f"{SECRETS}: Field required", f"{REFUSED}."),
        ("x" * 100_000, f"{REFUSED}."),
        ("messages" + ".0" * 50_000, f"{REFUSED}."),
    ],
)
async def test_the_upstreams_complaints_about_a_request_are_relayed_as_far_as_they_are_known(
    service: Service, upstream: ScriptedUpstream, status: int, kind: str, said: str, shown: str
) -> None:
    spender = await Spender.make(service)
    upstream.plan = failing(status, kind, said)
    for stream in (False, True):
        assert assert_error(await spender.ask(question(stream=stream)), 400, "invalid_request") == shown
    assert len(upstream.calls) == 2
    assert await spender.charged() == []


@pytest.mark.trap(70)
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 413, 422, 429, 500, 503, 529])
@pytest.mark.parametrize("path", [NATIVE, SDK, f"{SDK}/count_tokens"])
async def test_no_secret_of_an_upstreams_error_reaches_an_app_or_the_log(
    service: Service, upstream: ScriptedUpstream, status: int, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    spender = await Spender.make(service)
    headers = {"X-Request-Id": SECRETS, "anthropic-organization-id": "Acme", "Location": "https://10.0.0.7/"}
    for kind in ("invalid_request_error", "api_error", "overloaded_error", SECRETS):
        upstream.plan = replace(failing(status, kind, SECRETS), headers=headers)
        for stream in (False, True):
            response = await spender.ask(question(stream=stream), path)
            text = f"{response.body.decode()} {response.headers} {caplog.text}"
            assert not any(word in text for word in ("sk-ant", "10.0.0.7", "cme", "admin"))
        await spender.fresh_window()
