"""Failures are counted by cause: overload, store outages, failing models, unsent mail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from handlers.core.application import Latchkey
from handlers.core.concurrency import ConcurrencyLimit
from handlers.core.site import Site
from handlers.routes import make_application
from observability.metrics.exposition import Exposition
from observability.metrics.measures import Measures
from observability.metrics.memory import MetricsMemory
from outbound.mail import room
from outbound.mail.mailer import Undelivered
from tests.conftest import OpenStore
from tests.support.browser.mailbox import MAIL, Kept, mailer
from tests.support.http.driver import Service, send
from tests.support.http.scraped_metrics import Samples, parsed
from tests.support.http.upstream import Plan, ScriptedUpstream, error, events_of, message
from tests.support.processes.engines import Engine, valkey
from tests.support.store.ai_spender import MODEL, OpenStream, Spender, at_rest, hurry, question, reached

pytestmark = pytest.mark.gen_test(timeout=30)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The module's own Valkey, which may be frozen."""
    with valkey() as made:
        yield made


@pytest.fixture
def ai_store(open_store: OpenStore, engine: Engine) -> object:
    engine.empty()
    return open_store(engine.url, timeout=0.5)


@pytest.fixture
def memory() -> MetricsMemory:
    """Where it is counted."""
    return MetricsMemory()


@pytest.fixture
def site(ai_site: Site, memory: MetricsMemory) -> Site:
    """One that is measured, with a model on the scripted upstream."""
    return replace(ai_site, measures=Measures(memory.place(0)))


@pytest.fixture
def app(site: Site) -> Latchkey:
    """One that counts."""
    made = make_application(site)
    made.measures = site.measures
    site.store.observed_by(site.measures.took)
    site.measures.scripts = site.store.answers
    return made


class Seen:
    """The samples since the last call."""

    def __init__(self, memory: MetricsMemory, measures: Measures) -> None:
        self._exposition, self._measures = Exposition(memory, {}), measures
        self._before: Samples = {}

    def risen(self, *names: str) -> Samples:
        """The increase of some metrics' samples."""
        self._measures.fold()
        now = parsed(self._exposition.rendered("")[0].decode())
        before, self._before = self._before, now
        return {
            name: value - before.get(name, 0)
            for name, value in now.items()
            if name.partition("{")[0] in names and value != before.get(name, 0)
        }


@pytest.fixture
def seen(memory: MetricsMemory, site: Site) -> Seen:
    """The figures."""
    return Seen(memory, site.measures)


UNAVAILABLE, ANSWERED, REFUSED = "latchkey_unavailable_total", "latchkey_requests_total", "latchkey_refusals_total"


async def test_refused_requests_are_counted_by_route_and_not_as_answers(
    service: Service, app: Latchkey, seen: Seen
) -> None:
    seen.risen()
    app.bound = 0
    for path, method in (("/api/oauth/userinfo", "GET"), ("/nothing", "GET"), ("/api/v1/data/a/b", "PUT")):
        body = "{}" if method == "PUT" else None
        answer = await send(service.base_url + path, method, body=body, headers={"Content-Type": "application/json"})
        assert answer.code == 503
    assert (await send(f"{service.base_url}/healthz")).code == 200
    assert seen.risen(UNAVAILABLE, ANSWERED) == {
        "latchkey_unavailable_total{cause=requests,route=userinfo}": 1,
        "latchkey_unavailable_total{cause=requests,route=unmatched}": 1,
        "latchkey_unavailable_total{cause=requests,route=document}": 1,
        "latchkey_requests_total{method=GET,route=healthz,status=200}": 1,
    }


async def test_a_store_outage_counts_as_a_cause_and_an_answer(service: Service, engine: Engine, seen: Seen) -> None:
    await service.web.revoke("invented")
    seen.risen()
    engine.pause()
    try:
        assert (await service.web.revoke("invented")).code == 503
    finally:
        engine.resume()
    assert seen.risen(UNAVAILABLE, REFUSED, "latchkey_store_calls_total") == {
        "latchkey_unavailable_total{cause=store,route=revoke}": 1,
        "latchkey_refusals_total{code=temporarily_unavailable,route=revoke}": 1,
        "latchkey_store_calls_total{answer=unavailable,script=take_window}": 1,
    }


async def test_a_full_hasher_counts_as_a_cause(service: Service, seen: Seen) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    seen.risen()
    service.store.hasher.close()
    assert (await browser.submit(page, "/signin", email="ada@example.com", password="x" * 12)).code == 503
    assert seen.risen(UNAVAILABLE) == {"latchkey_unavailable_total{cause=passwords,route=signin}": 1}


async def test_full_places_count_as_a_cause(service: Service, app: Latchkey, seen: Seen) -> None:
    spender = await Spender.make(service)
    app.site = replace(app.site, ai_calls=ConcurrencyLimit(0))
    seen.risen()
    assert (await spender.ask(question())).code == 503
    assert seen.risen(UNAVAILABLE) == {"latchkey_unavailable_total{cause=places,route=ai-messages}": 1}


OVERLOADED = b'{"type": "error", "error": {"type": "overloaded_error", "message": "x"}}'
OUTCOMES = [
    pytest.param(Plan(), "ok", "settled", id="answers"),
    pytest.param(Plan(status=500, body=b"{}"), "upstream_error", "released", id="fails"),
    pytest.param(Plan(before="cut"), "upstream_error", "released", id="hangs up"),
    pytest.param(Plan(before="hang"), "upstream_timeout", "released", id="is silent"),
    pytest.param(Plan(status=529, body=OVERLOADED), "overloaded", "released", id="is overloaded"),
]


@pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
@pytest.mark.parametrize(("plan", "outcome", "end"), OUTCOMES)
async def test_an_upstream_call_is_counted_once_by_outcome(
    service: Service,
    site: Site,
    upstream: ScriptedUpstream,
    seen: Seen,
    plan: Plan,
    outcome: str,
    end: str,
    stream: bool,
) -> None:
    spender = await Spender.make(service)
    hurry(site)
    seen.risen()
    upstream.plan = plan
    await spender.ask(question(stream=stream or None))
    labels = f"{{model={MODEL},outcome={outcome},server=scripted}}"
    names = ("latchkey_upstream_calls_total", "latchkey_holds_total", "latchkey_upstream_seconds_count")
    assert seen.risen(*names, "latchkey_request_seconds_count") == {
        f"latchkey_upstream_calls_total{labels}": 1,
        f"latchkey_upstream_seconds_count{{model={MODEL},server=scripted}}": 1,
        "latchkey_holds_total{event=placed}": 1,
        f"latchkey_holds_total{{event={end}}}": 1,
    }


async def test_a_stream_failing_midway_counts_as_a_failure_despite_status_200(
    service: Service, upstream: ScriptedUpstream, seen: Seen
) -> None:
    spender = await Spender.make(service)
    seen.risen()
    upstream.plan = Plan(events=[*events_of(message())[:3], error("api_error")])
    assert (await spender.ask(question(stream=True))).code == 200
    assert seen.risen("latchkey_upstream_calls_total", ANSWERED) == {
        f"latchkey_upstream_calls_total{{model={MODEL},outcome=upstream_error,server=scripted}}": 1,
        "latchkey_requests_total{method=POST,route=ai-messages,status=200}": 1,
    }


async def test_an_abandoned_call_counts_as_cut_and_charged(
    service: Service, app: Latchkey, upstream: ScriptedUpstream, seen: Seen
) -> None:
    spender = await Spender.make(service)
    seen.risen()
    upstream.plan = Plan(gate=asyncio.Semaphore(4))
    stream = await OpenStream.open(spender)
    await (await stream.begin()).read(4)
    await reached(upstream)
    stream.cut()
    await at_rest(app)
    (charged,) = await spender.charged()
    risen = seen.risen("latchkey_upstream_calls_total", "latchkey_charged_microdollars_total", "latchkey_holds_total")
    assert risen == {
        f"latchkey_upstream_calls_total{{model={MODEL},outcome=cut,server=scripted}}": 1,
        f"latchkey_charged_microdollars_total{{model={MODEL},server=scripted}}": charged,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 1,
    }


@pytest.mark.parametrize(
    ("failures", "waiting", "outcome"),
    [
        pytest.param([], 1000, "sent", id="sent"),
        pytest.param([Undelivered("busy", temporary=True)], 1000, "sent", id="sent at the second try"),
        pytest.param([Undelivered("no", temporary=False)], 1000, "failed", id="refused"),
        pytest.param([Undelivered("busy", temporary=True)] * 3, 1000, "failed", id="busy for too long"),
        pytest.param([], 0, "dropped", id="too many wait"),
    ],
)
async def test_a_mail_is_counted_once_by_outcome(
    failures: list[Undelivered], waiting: int, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, outcomes = Kept(), list[tuple[str, str]]()
    transport.failures = list(failures)
    sender = mailer(transport)
    sender.watch = lambda what, became: outcomes.append((what, became))
    monkeypatch.setattr(room, "MOST_OTHERS", waiting)
    sender.post(MAIL)
    assert sender.queue == (1 if waiting else 0)
    while sender.queue:
        await asyncio.sleep(0.001)
    assert outcomes == [("reset", outcome)]


async def test_a_mail_cut_by_shutdown_counts_as_dropped() -> None:
    class Hanging:
        async def send(self, message: object) -> None:
            await asyncio.Event().wait()

    outcomes = list[tuple[str, str]]()
    sender = mailer(Hanging())
    sender.watch = lambda what, became: outcomes.append((what, became))
    sender.post(MAIL)
    await asyncio.sleep(0)
    await sender.close(0.01)
    assert outcomes == [("reset", "dropped")]


async def test_without_a_metrics_port_nothing_is_counted(
    service: Service, app: Latchkey, site: Site, seen: Seen
) -> None:
    app.measures = None
    site.store.observed_by(None)
    seen.risen()
    await service.tokens()
    assert site.measures._answers == []
    assert seen.risen(ANSWERED, "latchkey_store_call_seconds_count") == {}


async def test_only_the_app_itself_adds_to_its_request_count(service: Service, seen: Seen) -> None:
    web, called = service.web, "latchkey_app_requests_total"
    seen.risen()
    assert (await web.revoke("none", client_id=web.client_id)).code == 200
    assert seen.risen(called) == {}
    assert (await web.revoke("none", client_id=web.client_id, client_secret=str(web.secret))).code == 200
    assert seen.risen(called) == {f"{called}{{client_id={web.client_id}}}": 1}
    native = service.native
    assert (await native.revoke("none", client_id=native.client_id)).code == 200
    assert seen.risen(called) == {f"{called}{{client_id={native.client_id}}}": 1}
