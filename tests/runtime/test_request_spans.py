"""Spans of requests: what a collector sees, whose traces they continue, and what a bad collector costs."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from handlers.core.site import Site
from observability import otel
from observability.spans import begin_request, continued, end_request, in_use, working
from runtime.arguments import load
from runtime.tracing_wiring import pattern_of, tracing
from settings.declared import Settings
from settings.types import SettingsError
from store.engine import background
from store.errors import StoreUnavailable
from tests.support.http.driver import EMAIL, PASSWORD, Service, send
from tests.support.http.upstream import ScriptedUpstream
from tests.support.processes.engines import FakeClock
from tests.support.processes.processes import QUICK, Server
from tests.support.processes.trace_collector import TraceCollector, attributes, collecting
from tests.support.store.ai_spender import Spender, pass_traces_on, question
from tests.support.store.app_events import keeping
from tests.support.store.webhook_app import Hooked, engine_on

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HERE = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
SECRET = "a-secret-of-somebody"


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    with collecting() as found:
        yield found


@asynccontextmanager
async def traced(service: Service, collector: TraceCollector, **given: Any) -> AsyncIterator[None]:
    """The service with traces; its spans have arrived after the block."""
    settings = settings_of(collector, **given)
    async with tracing(lambda: settings, service.store):
        yield


def settings_of(collector: TraceCollector, **given: Any) -> Settings:
    """Settings with which every request is traced."""
    url = f"{collector.url}/v1/traces"
    return dataclasses.replace(Settings(), **{"trace_otlp": url, "trace_ratio": 1.0, **given})


@pytest.mark.gen_test(timeout=30)
async def test_a_new_header_counts_after_a_reload(service: Service, collector: TraceCollector) -> None:
    current = [settings_of(collector, trace_otlp_header=("X-Key", "old"))]
    async with tracing(lambda: current[0], service.store):
        await send(f"{service.base_url}/healthz")
        await asyncio.to_thread(vars(in_use.spans)["_provider"].force_flush)
        current[0] = settings_of(collector, trace_otlp_header=("X-Key", "new"))
        await send(f"{service.base_url}/healthz")
    assert [one["x-key"] for one in collector.headers] == ["old", "new"]


@pytest.mark.gen_test(timeout=30)
async def test_a_request_and_its_scripts_are_spans_without_anything_personal(
    service: Service, collector: TraceCollector
) -> None:
    header = ("X-Key", "collector-key")
    async with traced(service, collector, trace_otlp_header=header):
        token = (await service.tokens())["access_token"]
        path = f"/api/v1/data/{SECRET}-notes/{SECRET}"
        answer = await send(f"{service.base_url}{path}?x={SECRET}", headers={"Authorization": f"Bearer {token}"})
        await send(f"{service.base_url}/{SECRET}", described=False)
        await send(f"{service.base_url}/healthz", "BREW", described=False)
    (span,) = collector.named("GET /api/v1/data/{}/{}")
    found = attributes(span)
    assert found == {
        "http.request.method": "GET",
        "http.route": "/api/v1/data/{}/{}",
        "http.response.status_code": answer.code,
        "latchkey.route": "document",
        "latchkey.request_id": answer.headers["X-Request-Id"],
    }
    scripts = [one for one in collector.spans if one.parent_span_id == span.span_id]
    assert [attributes(one)["latchkey.script"] for one in scripts] == [one.name for one in scripts]
    assert {one.trace_id for one in scripts} == {span.trace_id}
    assert scripts
    assert attributes(collector.named("HTTP /healthz")[0])["http.request.method"] == "_OTHER"
    assert "GET unmatched" in [one.name for one in collector.spans]
    whole = b"".join(collector.bodies)
    for word in (SECRET, EMAIL, PASSWORD, token, "127.0.0.1", "collector-key", "BREW", service.ada):
        assert word.encode() not in whole, word
    assert {one["x-key"] for one in collector.headers} == {"collector-key"}


@pytest.mark.gen_test(timeout=30)
async def test_only_named_peers_continue_their_trace(
    service: Service, collector: TraceCollector, caplog: pytest.LogCaptureFixture
) -> None:
    sent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    async with traced(service, collector, trace_ratio=0.0):
        await send(f"{service.base_url}/healthz", headers=sent)
    assert collector.spans == []
    async with traced(service, collector):
        await send(f"{service.base_url}/healthz", headers=sent)
    (begun,) = collector.named("GET /healthz")
    assert begun.trace_id.hex() != TRACE
    collector.bodies.clear()
    async with traced(service, collector, trace_ratio=0.0, trace_parents=HERE):
        await send(f"{service.base_url}/healthz", headers=sent)
        await send(f"{service.base_url}/healthz", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
        await send(f"{service.base_url}/healthz", headers={"traceparent": f"00-{TRACE}-{PARENT}"})
    (continued,) = collector.spans
    assert (continued.trace_id.hex(), continued.parent_span_id.hex()) == (TRACE, PARENT)


@pytest.mark.gen_test(timeout=30)
async def test_a_failed_script_is_a_failed_span(
    service: Service, collector: TraceCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await service.tokens())["access_token"]

    async def lost(*words: Any) -> Any:
        raise StoreUnavailable("the store at 10.1.2.3 is away")

    monkeypatch.setattr(service.store.scripts._client, "evalsha", lost)
    async with traced(service, collector):
        path = "/api/v1/data/notes/n1"
        assert (await send(f"{service.base_url}{path}", headers={"Authorization": f"Bearer {token}"})).code == 503
    (span,) = collector.named("GET /api/v1/data/{}/{}")
    (script,) = [one for one in collector.spans if one.parent_span_id == span.span_id]
    assert (span.status.code, script.status.code) == (2, 2)
    assert b"10.1.2.3" not in b"".join(collector.bodies)


class TestUpstream:
    """A model's server."""

    @pytest.fixture
    def site(self, ai_site: Site) -> Site:
        return ai_site

    @pytest.mark.gen_test(timeout=30)
    async def test_a_model_server_gets_the_trace_and_is_a_span(
        self, service: Any, site: Site, upstream: ScriptedUpstream, collector: TraceCollector, tmp_path: Path
    ) -> None:
        pass_traces_on(site, upstream, tmp_path)
        spender = await Spender.make(service)
        async with traced(service, collector):
            assert (await spender.ask(question())).code == 200
        (call,) = [one for one in collector.spans if one.name.startswith("call ")]
        (request,) = [one for one in collector.spans if one.span_id == call.parent_span_id]
        assert request.name == "POST /api/v1/ai/messages"
        assert attributes(call) == {"server.address": "127.0.0.1"}
        sent = upstream.calls[0].request.headers["traceparent"]
        # Sampled, and of a random id.
        assert sent == f"00-{request.trace_id.hex()}-{request.span_id.hex()}-03"


# Work in the background


@pytest.mark.gen_test(timeout=60)
async def test_work_in_the_background_is_a_span_with_its_scripts_and_nothing_personal(
    clock: FakeClock, service: Service, collector: TraceCollector
) -> None:
    store, person = service.store, await service.add_person(f"{SECRET}@example.com")
    hooked, disconnecting = await Hooked.make(store, "hooked"), await keeping(store)
    await store.planned_deletions.plan(person, 7)
    clock.advance(8 * 86400)
    async with traced(service, collector):
        async with store.security.flushing():
            await store.people.finish_deletions()
        await store.directory_relay.repeat([person])
        await hooked.tell()
        engine = engine_on(store)
        engine.start()
        await hooked.receiver.count(1)
        await engine.close(1)
        await disconnecting.revoke_app()
        await store.outbox.relay_shards({disconnecting.user[:3]}, store.webhooks.wants)
        await store.app_sweep.sweep()
        with pytest.raises(ValueError, match="wrong"), working("send mail", "reset"):
            raise ValueError("wrong")
    await hooked.receiver.close()
    works = {attributes(one)["latchkey.work"]: one for one in collector.spans if "latchkey.work" in attributes(one)}
    assert {*works} <= documented()
    assert {*works} == documented() - {"act on many people", "export security log", "report on credits"}
    assert attributes(works["deliver webhook"]) == {
        "latchkey.work": "deliver webhook",
        "latchkey.about": "grant.revoked",
    }
    assert {name for name, one in works.items() if one.status.code == 2} == {"send mail"}
    assert not any(one.parent_span_id for one in works.values())
    below = {one.name for one in collector.spans if one.parent_span_id == works["delete account"].span_id}
    assert "delete_user" in below
    whole = b"".join(collector.bodies)
    for word in (SECRET, person, EMAIL, "127.0.0.1"):
        assert word.encode() not in whole, word


def documented() -> set[str]:
    """The names of work in the background in the documentation."""
    text = (Path(__file__).parents[2] / "docs/operating/tracing.md").read_text("utf-8")
    return set(re.findall(r"^\| `([a-z ]+)` \|", text.split("## Work in the background")[1], re.MULTILINE))


@pytest.mark.gen_test(timeout=30)
async def test_work_that_a_request_leaves_behind_is_linked_to_it(service: Service, collector: TraceCollector) -> None:
    line = RequestStartLine("POST", "/admin/people/bulk", "HTTP/1.1")
    request = HTTPServerRequest(start_line=line, headers=HTTPHeaders({"Host": "a"}))

    async def work() -> None:
        await service.store.people.find(EMAIL)

    async with traced(service, collector):
        begin_request(request, "console-bulk")
        end_request(request, 303)
        await continued(request, "act on many people", work())
    (caused,) = collector.named("act on many people")
    (link,) = caused.links
    (of,) = collector.named("POST /admin/people/bulk")
    assert (link.trace_id, link.span_id) == (of.trace_id, of.span_id)
    assert caused.trace_id != of.trace_id


def test_without_traces_work_in_the_background_makes_no_call() -> None:
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        with working("send mail"), background.working("relay webhooks"):
            pass
    finally:
        sys.setprofile(None)
    assert calls == ["working", "__enter__", "working", "__enter__", "__exit__", "__exit__"]


# A bad collector


@pytest.mark.gen_test(timeout=40)
@pytest.mark.parametrize("kind", ["hangs", "endless", "redirect", "words"])
async def test_a_bad_collector_holds_nothing_up(
    service: Service, collector: TraceCollector, kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr(otel, "LAST_SECONDS", 0.5)
    monkeypatch.setattr(otel, "WHOLE_SECONDS", 2.0)
    caplog.set_level(logging.DEBUG)
    collector.hangs, collector.endless = kind == "hangs", kind == "endless"
    if kind == "endless":
        collector.answer = b"HTTP/1.1 200 OK\r\n\r\n"
    elif kind == "redirect":
        collector.answer = f"HTTP/1.1 307 Go\r\nLocation: {collector.url}/elsewhere\r\n\r\n".encode()
    elif kind == "words":
        collector.answer = b"HTTP/1.1 400 log-this-secret\r\nContent-Length: 9\r\n\r\nand this!"
    async with traced(service, collector):
        began = time.monotonic()
        for _ in range(20):
            assert (await send(f"{service.base_url}/healthz")).code == 200
        assert time.monotonic() - began < 15
        ended = time.monotonic()
    assert time.monotonic() - ended < 8
    assert len(collector.bodies) == 1
    logged = "".join(record.getMessage() for record in caplog.records if record.name.startswith("opentelemetry"))
    assert "secret" not in logged
    assert "and this" not in logged


# Settings


def test_without_the_extra_the_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(SettingsError, match=r"pip install 'latchkey\[tracing\]'"):
        load(["--trace-otlp", "https://collector.example"], {})
    assert load([], {}).trace_otlp == ""


def test_patterns_of_routes_are_readable() -> None:
    assert pattern_of(r"/logo/([A-Za-z0-9_-]{1,64})/([A-Za-z0-9_-]{22})\.webp") == "/logo/{}/{}.webp"


@pytest.mark.slow
@pytest.mark.gen_test(timeout=60)
async def test_workers_send_their_spans_and_a_server_without_traces_imports_nothing(collector: TraceCollector) -> None:
    options = ("--workers", "2", "--trace-otlp", collector.url, "--trace-ratio", "1", *QUICK)
    with Server("--demo", *options, fresh=True) as server:
        server.ready()
        for _ in range(20):
            assert (await send(f"{server.here}/healthz")).code == 200
        assert server.stop() == 0
    assert len(collector.named("GET /healthz")) == 20
    with Server("--demo", *QUICK, fresh=True, environment={"PYTHONVERBOSE": "1"}) as server:
        server.ready()
        assert server.stop() == 0
        assert "opentelemetry/exporter" not in server.log
        assert "observability.otel" not in server.log
