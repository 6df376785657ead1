"""Request ids and traces: what is accepted from outside, logged, and forwarded by AI calls."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import re
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from tornado.httputil import HTTPConnection, HTTPHeaders, HTTPServerRequest, RequestStartLine

from handlers.core.application import Latchkey
from handlers.core.site import Site
from observability import tracing
from observability.logs import JsonFormatter
from observability.tracing import Trace, read_trace, sent_id
from store.wiring import Store
from tests.support.http.driver import send, send_raw
from tests.support.http.upstream import ScriptedUpstream
from tests.support.lists.offenders import each
from tests.support.store.ai_spender import Spender, pass_traces_on, question

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{PARENT}-01"
HERE = (ip_network("127.0.0.0/8"),)
CHOSEN = "3f2a8c1e-chosen.by_the.proxy"


@each(
    ("sent", "flags"),
    [
        pytest.param(VALID, "01", id="sampled"),
        pytest.param(f"00-{TRACE}-{PARENT}-00", "00", id="not sampled"),
        pytest.param(f"00-{TRACE}-{PARENT}-03", "03", id="sampled, of a random id"),
        pytest.param(f"00-{TRACE}-{PARENT}-ff", "03", id="flags that nobody knows are not passed on"),
        pytest.param(f"01-{TRACE}-{PARENT}-01", "01", id="a future version"),
        pytest.param(
            f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like", "01", id="a future version that is longer"
        ),
        pytest.param(f"fe-{TRACE}-{PARENT}-01-", "01", id="the last version, with an empty addition"),
    ],
)
def test_a_valid_trace_is_accepted(sent: str, flags: str) -> None:
    trace = read_trace([sent])
    assert trace is not None
    assert (trace.trace_id, trace.flags, trace.state) == (TRACE, flags, "")
    assert re.fullmatch("[0-9a-f]{16}", trace.span_id)
    assert trace.span_id not in (PARENT, "0" * 16)
    assert trace.parent == f"00-{TRACE}-{trace.span_id}-{flags}"


@each(
    "sent",
    [
        pytest.param([], id="none"),
        pytest.param([""], id="empty"),
        pytest.param([VALID, VALID], id="twice"),
        pytest.param([f"{VALID},{VALID}"], id="twice in one line"),
        pytest.param([f"ff-{TRACE}-{PARENT}-01"], id="version ff"),
        pytest.param([f"00-{'0' * 32}-{PARENT}-01"], id="a trace id of zeros"),
        pytest.param([f"00-{TRACE}-{'0' * 16}-01"], id="a parent id of zeros"),
        pytest.param([f"00-{TRACE.upper()}-{PARENT}-01"], id="a trace id in upper case"),
        pytest.param([f"00-{TRACE}-{PARENT.upper()}-01"], id="a parent id in upper case"),
        pytest.param([f"00-{TRACE}-{PARENT}-0A"], id="flags in upper case"),
        pytest.param([f"CC-{TRACE}-{PARENT}-01"], id="a version in upper case"),
        pytest.param([f"{VALID}-what"], id="version 00 that is longer"),
        pytest.param([f"{VALID}-"], id="version 00 with a dash behind"),
        pytest.param([f"cc-{TRACE}-{PARENT}-01what"], id="a future version that goes on without a dash"),
        pytest.param([f"cc-{TRACE}-{PARENT}-01.what"], id="a future version that goes on with a dot"),
        pytest.param([f"00-{TRACE[:-1]}-{PARENT}-01"], id="a trace id that is short"),
        pytest.param([f"00-{TRACE}0-{PARENT}-01"], id="a trace id that is long"),
        pytest.param([f"00-{TRACE}-{PARENT[:-1]}-01"], id="a parent id that is short"),
        pytest.param([f"00-{TRACE}-{PARENT}0-01"], id="a parent id that is long"),
        pytest.param([f"00-{TRACE}-{PARENT}-1"], id="flags that are short"),
        pytest.param([f"00-{TRACE}-{PARENT}"], id="no flags"),
        pytest.param([f"0-{TRACE}-{PARENT}-01"], id="a version that is short"),
        pytest.param([f"00-{TRACE[:-1]}g-{PARENT}-01"], id="a trace id that is not hexadecimal"),
        pytest.param([f"00_{TRACE}_{PARENT}_01"], id="no dashes"),
        pytest.param([f"{VALID}\n"], id="a line end behind"),
        pytest.param([VALID.replace("0a", "0\u0967")], id="digits of another script"),
    ],
)
def test_an_invalid_trace_is_ignored(sent: list[str]) -> None:
    assert read_trace(sent, ["vendor=value"]) is None


@each(
    ("sent", "passed"),
    [
        pytest.param([], "", id="none"),
        pytest.param([""], "", id="empty"),
        pytest.param(["rojo=00f067aa0ba902b7"], "rojo=00f067aa0ba902b7", id="one"),
        pytest.param(["rojo=1,congo=t61"], "rojo=1,congo=t61", id="two, in their order"),
        pytest.param(["rojo=1 ,\tcongo=2", "", "third=3"], "rojo=1,congo=2,third=3", id="several lines and blanks"),
        pytest.param(["a,=1"], "", id="a member without a value"),
        pytest.param(["fw529a3039@dt=FfAA,0tenant@x=1"], "fw529a3039@dt=FfAA,0tenant@x=1", id="tenants"),
        pytest.param(["a_-*/9=x y!~"], "a_-*/9=x y!~", id="every kind of character"),
        pytest.param(["Rojo=1"], "", id="a key in upper case"),
        pytest.param(["rojo=a=b"], "", id="an equals sign in a value"),
        pytest.param(["rojo=\x7f"], "", id="a control character"),
        pytest.param(["rojo=caf\xe9"], "", id="a character that is not ASCII"),
        pytest.param(["rojo="], "", id="an empty value"),
        pytest.param(["rojo=1,congo=2,rojo=3"], "", id="a key twice"),
        pytest.param(["k" * 257 + "=1"], "", id="a key that is too long"),
        pytest.param(["k=" + "v" * 257], "", id="a value that is too long"),
        pytest.param([",".join(f"k{n}=1" for n in range(32))], ",".join(f"k{n}=1" for n in range(32)), id="32"),
        pytest.param([",".join(f"k{n}=1" for n in range(33))], "", id="33 members"),
        pytest.param([f"a={'x' * 250},b={'y' * 253},c=z"], f"a={'x' * 250},b={'y' * 253},c=z", id="512 characters"),
        pytest.param([f"a={'x' * 250},b={'y' * 254},c=z"], "c=z", id="beyond that long ones go first"),
        pytest.param([",".join(f"k{n}={'x' * 97}" for n in range(6))],
                     ",".join(f"k{n}={'x' * 97}" for n in range(5)), id="and then the last"),
    ],
)  # fmt: skip
def test_tracestate_of_other_vendors(sent: Sequence[str], passed: str) -> None:
    trace = read_trace([VALID], sent)
    assert trace is not None
    assert trace.state == passed


@each(
    ("sent", "taken"),
    [
        pytest.param(["a"], "a", id="one character"),
        pytest.param([CHOSEN], CHOSEN, id="letters, digits and marks"),
        pytest.param(["f" * 64], "f" * 64, id="64"),
        pytest.param(["f" * 65], "", id="65"),
        pytest.param([], "", id="none"),
        pytest.param([""], "", id="empty"),
        pytest.param(["one", "two"], "", id="two"),
        pytest.param(["a b"], "", id="a blank"),
        pytest.param(["a\n"], "", id="a line end"),
        pytest.param(["a[1m"], "", id="a bracket, as in the colours of a terminal"),
        pytest.param(["\u0663"], "", id="a digit of another script"),
    ],
)
def test_the_form_of_a_request_id(sent: list[str], taken: str) -> None:
    assert sent_id(sent) == taken


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "path", ["/", "/api/oauth/userinfo", "/nowhere", "/static/latchkey.css", "/healthz", "/readyz"]
)
@pytest.mark.parametrize(
    ("trusted", "sent", "taken"),
    [
        pytest.param((), CHOSEN, False, id="nobody is trusted"),
        pytest.param((ip_network("10.0.0.0/8"),), CHOSEN, False, id="another is trusted"),
        pytest.param(HERE, CHOSEN, True, id="the proxy is trusted"),
        pytest.param(HERE, "<script>", False, id="the proxy passed nonsense on"),
    ],
)
async def test_request_ids_are_accepted_only_from_trusted_proxies(
    site: Site,
    app: Latchkey,
    http_server: Any,
    trusted: Any,
    sent: str,
    taken: bool,
    path: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app.site = dataclasses.replace(site, trusted_proxies=trusted)
    caplog.set_level("INFO")
    found = (await send(site.base_url + path, headers={"X-Request-Id": sent})).headers["X-Request-Id"]
    assert (found == sent) is taken
    assert taken or re.fullmatch("[0-9a-f]{16}", found)
    assert f"[{found}]" in caplog.text
    assert taken or sent not in caplog.text


@pytest.mark.gen_test
async def test_a_refused_request_keeps_the_proxys_id(site: Site, app: Latchkey, http_server: Any) -> None:
    app.site = dataclasses.replace(site, trusted_proxies=HERE)
    app.admit(1)
    app.in_flight = 1
    head = f"POST /api/oauth/userinfo HTTP/1.1\r\nX-Request-Id: {CHOSEN}\r\n"
    status, answer = await send_raw(site.base_url, head.encode())
    app.in_flight = 0
    assert status == 503
    assert f"X-Request-Id: {CHOSEN}".encode() in answer


def test_peer_lookups_are_cached_and_the_cache_is_bounded(memory_store: Store) -> None:
    trusting = Site(memory_store, "http://localhost:8080", trusted_proxies=HERE)
    assert [
        trusting.trusts(peer) for peer in ("127.0.0.9", "127.0.0.9", "10.0.0.1", "::ffff:127.0.0.1", "x", None)
    ] == [*(True, True, False, True, False, False)]
    for number in range(3000):
        assert not trusting.trusts(f"10.1.{number // 250}.{number % 250}")
    assert len(trusting.peers) <= 1000


class Lines(logging.Handler):
    """What would be written in JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.mark.gen_test
@pytest.mark.parametrize("path", ["/api/oauth/userinfo", "/healthz"])
async def test_a_trace_is_logged_and_never_invented(
    site: Site, http_server: Any, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    logging.getLogger().addHandler(lines := Lines())
    try:
        await send(site.base_url + path, headers={"traceparent": VALID})
        await send(site.base_url + path, headers={"traceparent": VALID + "-"})
        await send(site.base_url + path)
    finally:
        logging.getLogger().removeHandler(lines)
    first, *others = [line for line in lines.lines if path in line]
    assert f'"trace_id":"{TRACE}","span_id":"' in first
    assert PARENT not in first
    assert len(others) == 2
    assert not any("trace_id" in line or "span_id" in line for line in others)


class Nobody(HTTPConnection):
    """A connection to nowhere."""

    context = None


def a_request(**headers: str) -> HTTPServerRequest:
    """A request that nobody sent."""
    line = RequestStartLine("GET", "/", "HTTP/1.1")
    return HTTPServerRequest(
        start_line=line, headers=HTTPHeaders({"Host": "localhost", **headers}), connection=Nobody()
    )


def test_trace_headers_of_a_call() -> None:
    async def within(request: HTTPServerRequest) -> dict[str, str]:
        tracing.CURRENT.set(request)
        return await asyncio.create_task(later())

    async def later() -> dict[str, str]:
        return tracing.passed_on()

    async def check() -> None:
        plain, traced = a_request(), a_request(Traceparent=VALID, Tracestate="rojo=1")
        plain_headers, headers = await asyncio.gather(
            asyncio.create_task(within(plain)), asyncio.create_task(within(traced))
        )
        assert plain_headers == {"X-Request-Id": tracing.request_id(plain)}
        trace = tracing.trace_of(traced)
        assert isinstance(trace, Trace)
        assert headers["traceparent"] == trace.parent
        assert headers["tracestate"] == "rojo=1"
        assert await later() == {}

    asyncio.run(check())


class TestUpstream:
    """The model server's view of the request."""

    @pytest.fixture
    def site(self, ai_site: Site) -> Site:
        """The model runs on the scripted upstream."""
        return ai_site

    @pytest.mark.gen_test(timeout=20)
    @pytest.mark.parametrize("stream", [False, True])
    async def test_an_ai_call_forwards_id_and_trace_if_configured(
        self, service: Any, site: Site, upstream: ScriptedUpstream, tmp_path: Path, stream: bool
    ) -> None:
        pass_traces_on(site, upstream, tmp_path)
        spender = await Spender.make(service)
        answer = await spender.ask(question(stream=stream), traceparent=VALID, tracestate="rojo=1")
        assert answer.code == 200
        plain = await spender.ask(question(stream=stream), tracestate="rojo=1")
        first, second = (call.request.headers for call in upstream.calls)
        assert first["X-Request-Id"] == answer.headers["X-Request-Id"]
        assert re.fullmatch(f"00-{TRACE}-(?!{PARENT})[0-9a-f]{{16}}-01", first["traceparent"])
        assert first["tracestate"] == "rojo=1"
        assert second["X-Request-Id"] == plain.headers["X-Request-Id"]
        assert "traceparent" not in second
        assert "tracestate" not in second
