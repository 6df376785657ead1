"""The official SDKs of the Messages API, unmodified, with only a base URL and an access token. Both do the same job
with the same results. SPEC 4.6."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from tornado.ioloop import IOLoop

from handlers.ai.messages import SdkMessagesHandler
from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai.echo import ECHO, echo_model
from outbound.ai.models import Models
from outbound.ai.tokens import count, pieces
from tests.support.http.driver import Service
from tests.support.http.upstream import TEXT, USAGE, Plan, ScriptedUpstream, error, events_of, failing, message
from tests.support.processes.engines import FakeClock
from tests.support.processes.npm import NODE, packages
from tests.support.store.ai_spender import MODEL, Spender, at_rest, cost, mint, text_of

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]

ANSWER = "Hello, wonderful world!\n\nWhat is new?"
TOOLS = [{"name": "look_up", "description": "Looks up.", "input_schema": {"type": "object", "properties": {}}}]
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"word": "universally", "times": [1, 2.5]}}
ABORT_AFTER = 5

ALLOWED_HEADERS = set(SdkMessagesHandler.allowed_headers.lower().split(", "))
# Headers that browsers send themselves, or allow any page to send.
ALLOWED_HEADERS |= {"host", "connection", "accept", "accept-encoding", "accept-language", "user-agent"}
ALLOWED_HEADERS |= {"content-length", "sec-fetch-mode"}

Job = dict[str, Any]


class Lossy:
    """Stands between an SDK and the server, notes the names of headers, and drops the first reply under each
    Idempotency-Key that begins with `lost-`."""

    def __init__(self, base_url: str) -> None:
        self.headers: set[str] = set()
        self.dropped: list[bytes] = []
        self._port = urlsplit(base_url).port

    async def listen(self) -> Lossy:
        """Takes connections at `url`."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def close(self) -> None:
        """Takes no connection any more."""
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", self._port)
        head = await reader.readuntil(b"\r\n\r\n")
        self.headers |= {name.decode().lower() for name in re.findall(rb"\r\n([\w-]+):", head)}
        found = re.search(rb"idempotency-key: (lost-\S+)", head, re.I)
        size = re.search(rb"content-length: (\d+)", head, re.I)
        assert size
        head = re.sub(rb"(?i)\r\nconnection: [^\r]*", b"\r\nConnection: close", head)
        to_there.write(head + await reader.readexactly(int(size[1])))
        if found and found[1] not in self.dropped:
            self.dropped.append(found[1])
            await there.readexactly(1)
        else:
            while data := await there.read(65536):
                writer.write(data)
        writer.close()
        to_there.close()


@pytest.fixture
def lossy(io_loop: IOLoop, base_url: str) -> Iterator[Lossy]:
    """In front of the server."""
    made = io_loop.run_sync(Lossy(base_url).listen)
    yield made
    io_loop.run_sync(made.close)


async def python_sdk(job: Job) -> Job:
    """The job by the Python SDK; the Node half is `tests/support/node/job.mjs`."""
    import anthropic  # a second and more, which runs without this test need not take

    def at(base_url: str, token: str) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=base_url, auth_token=token, timeout=20)

    async def streamed(opened: Any) -> list[Any]:
        async with opened as stream:
            found = [text async for text in stream.text_stream]
            return [found, (await stream.get_final_message()).to_dict()]

    async def failure(call: Awaitable[Any]) -> list[Any] | None:
        try:
            await call
        except anthropic.APIStatusError as failed:
            said: Any = failed.body
            code = said["error"]["code"]
            return [type(failed).__name__, failed.status_code, failed.type, code, failed.request_id is not None]
        return None

    met: Job = {}
    said: Any = [{"role": "user", "content": job["text"]}]
    echo: Any = {"model": ECHO, "max_tokens": 50, "messages": said}
    scripted: Any = {"model": MODEL, "max_tokens": 100, "messages": said}
    async with at(job["base"], job["token"]) as client, at(job["lossy"], job["token"]) as lossy:
        met["created"] = (await client.messages.create(**echo)).to_dict()
        met["streamed"] = await streamed(client.messages.stream(**echo))
        met["tool"] = (await client.messages.create(**scripted, tools=job["tools"])).to_dict()
        met["tool_streamed"] = (await streamed(client.messages.stream(**scripted, tools=job["tools"])))[1]
        met["counted"] = (await client.messages.count_tokens(model=ECHO, messages=said)).input_tokens
        met["models"] = [model.id async for model in client.models.list()]
        met["model"] = (await client.models.retrieve(ECHO)).display_name
        met["failures"] = {}
        for name, changes in job["failures"].items():
            async with at(job["base"], changes.get("token", job["token"])) as other:
                options = {**scripted, **changes.get("asked", {}), "extra_headers": changes.get("headers")}
                met["failures"][name] = await failure(other.with_options(max_retries=0).messages.create(**options))
        broken = client.with_options(max_retries=0).messages.stream(**scripted)
        met["broken"] = await failure(streamed(broken))
        again: dict[str, Any] = {"extra_headers": {"Idempotency-Key": "lost-whole"}}
        met["retried"] = (await lossy.messages.create(**scripted, **again)).to_dict()["credits"]
        again = {"extra_headers": {"Idempotency-Key": "lost-stream"}}
        met["retried_stream"] = (await streamed(lossy.messages.stream(**scripted, **again)))[1]
        met["aborted"] = []
        async with client.messages.stream(**scripted) as stream:
            async for text in stream.text_stream:
                met["aborted"].append(text)
                if len(met["aborted"]) == job["abort_after"]:
                    break
    return met


@pytest.fixture(scope="session")
def node() -> str:
    """Node, with the SDK installed."""
    packages()
    return str(shutil.which("node"))


async def node_sdk(node: str, job: Job) -> Job:
    """The job by the Node SDK."""
    ran = await asyncio.create_subprocess_exec(node, "job.mjs", json.dumps(job), cwd=NODE, stdout=PIPE, stderr=PIPE)
    out, err = await ran.communicate()
    assert (ran.returncode, err) == (0, b""), err.decode()
    met: Job = json.loads(out)
    return met


FAILURES = {
    "no request": ["BadRequestError", 400, "invalid_request_error", "invalid_request", True],
    "a dead token": ["AuthenticationError", 401, "authentication_error", "invalid_token", True],
    "a narrow token": ["PermissionDeniedError", 403, "permission_error", "insufficient_scope", True],
    "no credits": ["PaymentRequiredError", 402, "billing_error", "insufficient_credits", True],
    "no such model": ["NotFoundError", 404, "not_found_error", "not_found", True],
    "a key that is none": ["BadRequestError", 400, "invalid_request_error", "invalid_request", True],
    "a full window": ["RateLimitError", 429, "rate_limit_error", "rate_limited", True],
    "another use of a key": ["UnprocessableEntityError", 422, "invalid_request_error", "idempotency_mismatch", True],
    "the upstream is overloaded": ["OverloadedError", 529, "overloaded_error", "overloaded", True],
    "the upstream fails": ["InternalServerError", 502, "api_error", "upstream_error", True],
    "the upstream refuses": ["BadRequestError", 400, "invalid_request_error", "invalid_request", True],
}


async def describe(service: Service, spender: Spender, lossy: str) -> Job:
    """The instructions for an SDK."""
    narrow = await mint(service, await service.add_app("narrow-app"), "profile")
    ada, service.ada = service.ada, await service.add_person("poor@example.com")
    poor = await Spender.make(service, amount=0)
    service.ada = await service.add_person("eager@example.com")
    eager = await Spender.make(service)
    for _ in range(20):
        assert (await eager.ask(key="k1")).code == 200
    service.ada = ada
    assert (await spender.ask(key="k1")).code == 200
    changes: Job = {
        "no request": {"asked": {"max_tokens": 0}},
        "a dead token": {"token": "lk_at_invented"},
        "a narrow token": {"token": narrow},
        "no credits": {"token": poor.token},
        "no such model": {"asked": {"model": "gone"}},
        "a key that is none": {"headers": {"Idempotency-Key": "a b"}},
        "a full window": {"token": eager.token},
        "another use of a key": {"headers": {"Idempotency-Key": "k1"}},
    }
    return {
        "base": service.base_url + "/api/v1/ai",
        "lossy": lossy + "/api/v1/ai",
        "token": spender.token,
        "text": ANSWER,
        "tools": TOOLS,
        "abort_after": ABORT_AFTER,
        "failures": {name: changes.get(name, {}) for name in FAILURES},
    }


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model on the scripted upstream, and the built-in one."""
    return replace(ai_site, models=Models((*ai_site.models.all(), echo_model())))


@pytest.mark.spec("4.6.ai")
@pytest.mark.trap(29)
@pytest.mark.trap(30)
@pytest.mark.parametrize("sdk", ["python", "node"])
async def test_an_official_sdk_works_completely(
    clock: FakeClock,
    service: Service,
    app: Latchkey,
    upstream: ScriptedUpstream,
    lossy: Lossy,
    sdk: str,
    request: pytest.FixtureRequest,
) -> None:
    clock.stop()  # a window that is full stays so
    spender = await Spender.make(service)
    description = await describe(service, spender, lossy.url)
    upstream.calls.clear()
    tool = message("I look it up.", TOOL_USE, stop_reason="tool_use")
    begun = events_of(message())[:8]
    broken = Plan(events=[*begun, error("overloaded_error")])
    upstream.script(Plan(tool), Plan(tool))
    upstream.script(*[failing(529, "overloaded_error")] * 2, *[failing(500, "api_error")] * 2)
    upstream.script(failing(400, "invalid_request_error"), broken, Plan(), Plan())
    upstream.script(Plan(gate=asyncio.Semaphore(2 + ABORT_AFTER)))
    met = await (python_sdk(description) if sdk == "python" else node_sdk(request.getfixturevalue("node"), description))
    await at_rest(app)
    await upstream.calls[-1].over.wait()

    output, echoed = count(ANSWER), met["created"]["credits"]["charged"]
    assert [block["text"] for block in met["created"]["content"]] == [ANSWER]
    assert met["created"]["usage"]["output_tokens"] == output
    assert echoed == met["created"]["usage"]["input_tokens"] + 5 * output
    assert met["streamed"][0] == pieces(ANSWER)
    assert met["streamed"][1]["content"][0]["text"] == ANSWER
    assert met["streamed"][1]["usage"] == met["created"]["usage"]
    assert met["streamed"][1]["stop_reason"] == "end_turn"
    for called in (met["tool"], met["tool_streamed"]):
        assert {name: called["content"][1][name] for name in TOOL_USE} == TOOL_USE
        assert (called["stop_reason"], called["model"]) == ("tool_use", MODEL)
        assert called["usage"]["output_tokens"] == USAGE["output_tokens"]
    assert met["counted"] == met["created"]["usage"]["input_tokens"]
    assert met["models"] == [MODEL, ECHO]
    assert met["model"] == "Latchkey Echo"
    assert met["failures"] == FAILURES
    assert met["broken"][2] == "overloaded_error"
    # The one SDK also runs in browsers, which ask first.
    assert sdk == "python" or lossy.headers <= ALLOWED_HEADERS
    assert sorted(lossy.dropped) == [b"lost-stream", b"lost-whole"]
    assert met["retried"]["charged"] == cost(25, 31)
    assert met["retried_stream"]["content"][0]["text"] == TEXT
    assert met["aborted"] == [event["delta"]["text"] for event in events_of(message())[2 : 2 + ABORT_AFTER]]
    once = cost(25, 31)
    received = cost(25, count("".join(met["aborted"])))
    before_it_broke = cost(25, count(text_of(begun)))
    charges = [once, echoed, echoed, once, once, before_it_broke, once, once, received]
    assert sorted(await spender.charged()) == sorted(charges)
    assert upstream.calls[-1].hung_up
    assert len(upstream.calls) == 11
