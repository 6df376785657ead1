"""The form of AI requests: which are refused, and which are odd but valid. SPEC 4.6, 5.4, 8.1."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from handlers.core.site import Site
from tests.support.http.driver import Service, json_of
from tests.support.http.upstream import VENDOR_MODEL, ScriptedUpstream
from tests.support.store.ai_spender import (
    NATIVE,
    SDK,
    Spender,
    assert_error,
    bound,
    cost,
    question,
)

pytestmark = pytest.mark.gen_test(timeout=20)

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def says(*blocks: Any) -> dict[str, Any]:
    """A request whose one message has these blocks."""
    return content(list(blocks))


def content(value: Any) -> dict[str, Any]:
    """A request whose one message has this content."""
    return question(messages=[{"role": "user", "content": value}])


def wrong(*values: Any) -> tuple[Any, ...]:
    """Values of any type for a field, each of them wrong."""
    return values


def source(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "source": fields}


REFUSED = {
    "no model": question(model=None),
    "a number for a model": question(model=5),
    "an empty model": question(model=""),
    "a NUL in the model": question(model="a\0b"),
    "no max_tokens": question(max_tokens=None),
    **{f"max_tokens {n!r}": question(max_tokens=n) for n in wrong(0, -1, 1.5, "9", True, 10**10, [], {})},
    **{f"stream {value!r}": question(stream=value) for value in wrong("true", 1, 0, [], "")},
    "no messages": question(messages=None),
    **{f"messages {value!r}": question(messages=value) for value in wrong([], {}, "hi", 7, [[]], ["hi"], [None])},
    "another role": question(messages=[{"role": "developer", "content": "x"}]),
    "a list for a role": question(messages=[{"role": ["user"], "content": "x"}]),
    "no content": question(messages=[{"role": "user"}]),
    **{f"content {value!r}": content(value) for value in wrong([], {}, 7, None, True)},
    **{
        f"a block {block!r}": content([block]) for block in wrong("x", 7, None, [], {}, {"type": 7}, {"type": ["text"]})
    },
    "text without text": says({"type": "text"}),
    "text that is none": says({"type": "text", "text": ["x"]}),
    "a system without text": question(system=[{"type": "text"}]),
    "a number for a system": question(system=7),
    "an image by file id": says(source("image", type="file", file_id="f")),
    "a document by file id": says(source("document", type="file", file_id="f")),
    "a file in the result of a tool": says(
        {"type": "tool_result", "tool_use_id": "t", "content": [source("image", type="file", file_id="f")]}
    ),
    "a file in a document": says(
        source("document", type="content", content=[source("image", type="file", file_id="f")])
    ),
    "a file for a container": says({"type": "container_upload", "file_id": "f"}),
    "another lane": question(service_tier="priority"),
    "a faster lane": question(speed="fast"),
    "a dearer place": question(inference_geo="us"),
    "a container": question(container="container_1"),
    "servers of tools": question(mcp_servers=[{"type": "url", "url": "http://169.254.169.254/"}]),
    "an edit that asks the model": question(context_management={"edits": [{"type": "compact_20260112"}]}),
    "edits that are none": question(context_management={"edits": "all"}),
    "a tool of the server's": question(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "a tool without a type": question(tools=[{"type": None, "name": "x"}]),
    "a tool with a list for a type": question(tools=[{"type": ["custom"], "name": "x"}]),
    **{f"tools {value!r}": question(tools=value) for value in wrong({}, "x", 7, ["x"], [[]])},
}


@pytest.mark.trap(21)
async def test_requests_that_are_refused(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    for name, request in REFUSED.items():
        await spender.fresh_window()
        refused = await spender.ask(request)
        assert (refused.code, json_of(refused)["error"]) == (400, "invalid_request"), name
        answer = await spender.ask(request, SDK)
        assert (answer.code, json_of(answer)["error"]["type"]) == (400, "invalid_request_error"), name
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
    "NUL in a list": b'{%b, "stop_sequences": ["a\\u0000b"]}' % GOOD,
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
async def test_odd_but_valid_requests_are_no_500(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    for nesting in (150, 900, 950, 960, 970, 975, 980, 985, 990):
        body = b'{%b, "metadata": %b1%b}' % (GOOD, b"[" * nesting, b"]" * nesting)
        assert (await spender.ask(body)).code in (200, 400), nesting
        await spender.fresh_window()
    for request in (
        question(temperature=-1e300, top_k=10**30, stop_sequences=["a\1b"], metadata=[None], tool_choice="x"),
        question(thinking={"budget_tokens": "x"}),
        question(thinking={"budget_tokens": -5}),
        question(thinking=[7]),
        question(system="", tools=[]),
        says(IMAGE, {"type": "search_result", "content": "x", "source": 5}),
        says(source("document", type="text", data="x"), {"type": "tool_result", "content": "x"}),
    ):
        assert (await spender.ask(request)).code == 200
    assert_error(await spender.ask(question(model="no-such-model")), 404, "not_found")
    assert_error(await spender.ask(question(model=VENDOR_MODEL)), 404, "not_found")


async def test_images_are_held_for_separately(service: Service, upstream: ScriptedUpstream) -> None:
    request = says(IMAGE, IMAGE)
    spender = await Spender.make(service, amount=cost(bound(request) + 2 * 5000, 1) - 1)
    assert_error(await spender.ask(request), 402, "insufficient_credits")
    await service.store.credits.grant(spender.user, 1)
    assert (await spender.ask(request)).code == 200


@pytest.mark.spec("1")
async def test_a_form_carries_nested_values_as_json(service: Service, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    wanted = question(system="Be brief: {", tools=[{"name": "t"}], temperature=0.5, stop_sequences=["."])
    for stream in (False, True):
        fields = {name: value if name in ("model", "system") else json.dumps(value) for name, value in wanted.items()}
        body = urlencode({**fields, "stream": json.dumps(stream), "unknown": "{"}).encode()
        response = await spender.ask(body, Content_Type=FORM)
        assert response.code == 200
        assert (response.body[:6] == b"event:") == stream
        assert upstream.calls[-1].question == {**wanted, "model": VENDOR_MODEL, "stream": stream}
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


async def test_a_body_that_is_too_large_is_413(service: Service, site: Site, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service, amount=10**9)
    frame = len(json.dumps(question("")))
    assert (await spender.ask(question("x" * (site.max_ai_request - frame)))).code == 200
    too_long = question("x" * (site.max_ai_request - frame + 1))
    assert_error(await spender.ask(too_long), 413, "invalid_request")
    assert json_of(await spender.ask(too_long, SDK))["error"]["type"] == "request_too_large"
    assert len(upstream.calls) == 1
