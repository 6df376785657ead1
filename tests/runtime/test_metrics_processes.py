"""The metrics port of real server processes: one scrape has what all workers counted, those that were killed too."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from dev.lab.engines import wait_until
from handlers.core.errors import CATALOGUE
from handlers.ops.credits import OPS_ROUTES
from handlers.routes import ROUTES
from latchkey import __version__
from outbound.ai.echo import ECHO
from store import keys
from store.crypto.keyring import KeyRing
from store.lifetimes import OAUTH
from tests.support.http.driver import EMAIL, VERIFIER, Service, json_of, send
from tests.support.http.raw_http import listens, status_of
from tests.support.http.scraped_metrics import METRICS, Samples, asked, gains, metrics_port, scraped, until
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Pair, Server, at_once, children, driven, shared

pytestmark = pytest.mark.slow

WORKERS = 4
MODELS = """
echo = true
[[upstream]]
name = "nobody"
url = "http://127.0.0.1:{port}"

[[upstream.models]]
id = "away"
display_name = "Away"
max_input = 1000
max_output = 1000

[[upstream.models.prices]]
version = "1"
from = 2026-01-01T00:00:00Z
input = 1000000
output = 1000000
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One server of several workers on Valkey, with a model whose server is away."""
    models = tmp_path_factory.mktemp("models") / "models.toml"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        models.write_text(MODELS.format(port=closed.getsockname()[1]))
        ring = KeyRing.generate(1)
        # What relays ask of the store would mix with what the tests ask.
        flags = ("--no-webhooks", "--redis-timeout", "60", *METRICS, *QUICK)
        setup = ("--workers", str(WORKERS), "--ai-config", str(models), *flags)
        with valkey() as engine, shared(ring, "--redis-url", engine.url, *setup) as server:
            yield Pair(engine, ring, (server.ready(), server))


@pytest.fixture
def service(running: Pair, io_loop: IOLoop) -> Iterator[Service]:
    """A new person and a new app."""
    with driven(io_loop, running) as made:
        io_loop.run_sync(lambda: made.store.credits.grant(made.ada, 1_000_000))
        yield made


def workers(server: Server) -> list[int]:
    """The processes that serve."""
    return children(server.process.pid)


def called(client: str) -> str:
    """The sample of an app's calls."""
    return f"latchkey_app_requests_total{{client_id={client}}}"


def answered(route: str, status: int, method: str = "GET") -> str:
    """The sample of a route's answers."""
    return f"latchkey_requests_total{{method={method},route={route},status={status}}}"


def ran(script: str, answer: str) -> str:
    """The sample of a script's answers."""
    return f"latchkey_store_calls_total{{answer={answer},script={script}}}"


async def minted(service: Service, scopes: str) -> Any:
    """A token response, at no cost to the server's metrics."""
    app = await service.store.apps.active(service.web.client_id)
    assert app is not None
    return await service.store.tokens.mint(service.ada, app, scopes.split())


Case = Callable[[Service], Awaitable[Samples]]
"""Does something, and says by how much which samples have risen."""


async def a_userinfo(service: Service) -> Samples:
    token = await minted(service, "profile")
    assert (await service.web.userinfo(token.access_token)).code == 200
    return {
        answered("userinfo", 200): 1,
        "latchkey_request_seconds_count{route=userinfo}": 1,
        called(service.web.client_id): 1,
        ran("read_userinfo", "ok"): 1,
    }


async def a_wrong_token(service: Service) -> Samples:
    assert (await service.web.userinfo("lk_at_invented")).code == 401
    return {
        answered("userinfo", 401): 1,
        "latchkey_refusals_total{code=invalid_token,route=userinfo}": 1,
        called(service.web.client_id): 0,
    }


async def a_rotation_and_a_replay(service: Service) -> Samples:
    token = await minted(service, "profile")
    assert (await service.web.refresh(token.refresh_token)).code == 200
    assert (await service.web.refresh(token.refresh_token)).code == 400
    return {
        "latchkey_rotations_total": 1,
        "latchkey_replays_total{kind=refresh_token}": 1,
        "latchkey_replays_total{kind=code}": 0,
        answered("token", 200, "POST"): 1,
        answered("token", 400, "POST"): 1,
        "latchkey_refusals_total{code=invalid_grant,route=token}": 1,
        called(service.web.client_id): 2,
        ran("rotate_refresh", "ok"): 1,
        ran("rotate_refresh", "replayed"): 1,
    }


async def an_exchange_and_a_replay(service: Service) -> Samples:
    browser = service.browser()
    assert (await browser.sign_in(email_of(service))).code == 303
    code = await service.code(browser=browser, scope="profile")
    assert (await service.web.exchange(code)).code == 200
    assert (await service.web.exchange(code)).code == 400
    return {
        "latchkey_exchanges_total": 1,
        "latchkey_replays_total{kind=code}": 1,
        "latchkey_replays_total{kind=refresh_token}": 0,
        answered("signin", 303, "POST"): 1,
        answered("authorize", 200): 1,
        answered("decide", 303, "POST"): 1,
    }


async def too_many(service: Service) -> Samples:
    token = await minted(service, "profile")
    let_in = await at_once(service.web.userinfo(token.access_token) for _ in range(100))
    # Places come free while this runs. A window that counted ten times its limit has none for minutes.
    now, _ = await service.store.client.time()
    window = keys.limit(service.ada, OAUTH.name)
    await service.store.client.set(window, f"{now}000 {10 * OAUTH.limit} {now}000")
    refused = await at_once(service.web.userinfo(token.access_token) for _ in range(20))
    assert ({one.code for one in let_in}, {one.code for one in refused}) == ({200}, {429})
    return {
        answered("userinfo", 200): 100,
        answered("userinfo", 429): 20,
        ran("read_userinfo", "ok"): 100,
        ran("read_userinfo", "rate_limited"): 20,
        "latchkey_refusals_total{code=rate_limited,route=userinfo}": 20,
        called(service.web.client_id): 120,
    }


async def ask(service: Service, model: str, **changes: Any) -> Any:
    token = await minted(service, "credits:spend")
    asked_for = {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}], **changes}
    headers = {"Authorization": f"Bearer {token.access_token}", "Content-Type": "application/json"}
    return await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=json.dumps(asked_for), headers=headers)


async def an_ai_call(service: Service) -> Samples:
    reply = json_of(await ask(service, ECHO))
    return {
        answered("ai-messages", 200, "POST"): 1,
        "latchkey_long_request_seconds_count{route=ai-messages}": 1,
        "latchkey_request_seconds_count{route=ai-messages}": 0,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 1,
        "latchkey_holds_total{event=released}": 0,
        f"latchkey_upstream_calls_total{{model={ECHO},outcome=ok,server=echo}}": 1,
        f"latchkey_upstream_seconds_count{{model={ECHO},server=echo}}": 1,
        f"latchkey_upstream_tokens_total{{direction=input,model={ECHO},server=echo}}": reply["usage"]["input_tokens"],
        f"latchkey_upstream_tokens_total{{direction=output,model={ECHO},server=echo}}": reply["usage"]["output_tokens"],
        f"latchkey_charged_microdollars_total{{model={ECHO},server=echo}}": reply["credits"]["charged"],
    }


async def a_stream(service: Service) -> Samples:
    assert (await ask(service, ECHO, stream=True)).code == 200
    return {
        "latchkey_long_request_seconds_count{route=ai-messages}": 1,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 1,
        f"latchkey_upstream_calls_total{{model={ECHO},outcome=ok,server=echo}}": 1,
    }


async def a_model_that_is_away(service: Service) -> Samples:
    assert (await ask(service, "away")).code == 502
    return {
        answered("ai-messages", 502, "POST"): 1,
        "latchkey_refusals_total{code=upstream_error,route=ai-messages}": 1,
        "latchkey_upstream_calls_total{model=away,outcome=upstream_error,server=nobody}": 1,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 0,
        "latchkey_holds_total{event=released}": 1,
        "latchkey_upstream_tokens_total{direction=input,model=away,server=nobody}": 0,
    }


async def a_document(service: Service) -> Samples:
    token = await minted(service, "data:read data:write")
    headers = {"Authorization": f"Bearer {token.access_token}", "Content-Type": "application/json"}
    url = f"{service.base_url}/api/v1/data/private-notes/my-secret-document"
    assert (await send(url, "PUT", body="{}", headers=headers)).code == 201
    assert (await send(url, headers=headers)).code == 200
    return {
        answered("document", 201, "PUT"): 1,
        answered("document", 200): 1,
        "latchkey_request_seconds_count{route=document}": 2,
        called(service.web.client_id): 2,
    }


async def addresses_that_there_are_not(service: Service) -> Samples:
    for path in ("/nothing-here", "/api/v1/nothing-here", "/static/nothing-here"):
        assert (await send(service.base_url + path)).code == 404
    assert (await send(f"{service.base_url}/static/latchkey.css")).code == 200
    assert (await send(f"{service.base_url}/api/oauth/userinfo", "PROPFIND", described=False)).code == 405
    return {
        answered("unmatched", 404): 2,
        answered("static", 404): 1,
        answered("static", 200): 1,
        answered("userinfo", 405, "other"): 1,
        "latchkey_refusals_total{code=not_found,route=unmatched}": 2,
        "latchkey_refusals_total{code=method_not_allowed,route=userinfo}": 1,
    }


async def a_mail(service: Service) -> Samples:
    browser = service.browser()
    page = await browser.get("/forgot")
    assert (await browser.submit(page, "/forgot", email=email_of(service))).code in (200, 303)
    return {"latchkey_mails_total{outcome=sent,what=reset}": 1}


CASES: list[Case] = [
    a_userinfo,
    a_wrong_token,
    a_rotation_and_a_replay,
    an_exchange_and_a_replay,
    too_many,
    an_ai_call,
    a_stream,
    a_model_that_is_away,
    a_document,
    addresses_that_there_are_not,
    a_mail,
]
LED_UP = {
    "latchkey_requests_total",
    "latchkey_request_seconds_count",
    "latchkey_store_calls_total",
}
EMAILS: dict[str, str] = {}


def email_of(service: Service) -> str:
    """The address of the person that was made last."""
    return EMAILS[service.ada]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__.replace("_", " "))
def test_what_happens_is_counted_once_whichever_worker_did_it(
    case: Case, running: Pair, service: Service, io_loop: IOLoop
) -> None:
    server = running.servers[0]
    EMAILS[service.ada] = running.email
    before = scraped(server)
    expected = io_loop.run_sync(lambda: case(service), timeout=30)
    samples = until(lambda: scraped(server), {name: before.get(name, 0.0) + n for name, n in expected.items()})
    # And nothing else was, of the same metrics; what leads up to it is answered, too, and asks the store.
    names = {name.partition("{")[0] for name in expected} - LED_UP
    assert set(gains(before, samples, *names)) <= {name for name, gain in expected.items() if gain}


def get(port: int, count: int) -> None:
    """Requests over a connection each, which spreads them over the workers."""
    for _ in range(count):
        assert status_of(port) == 200


def counts(samples: Samples) -> Samples:
    """What must never fall."""
    rising = ("_total", "_bucket", "_count", "_sum")
    return {name: value for name, value in samples.items() if name.partition("{")[0].endswith(rising)}


def test_counts_add_up_and_never_fall_while_workers_are_killed(running: Pair) -> None:
    server, health = running.servers[0], answered("healthz", 200)
    before = scraped(server)
    sent = before.get(health, 0.0)
    for victim in workers(server):
        get(server.port, 40)
        sent += 40
        last = until(lambda: scraped(server), {health: sent})
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda gone=victim: gone not in workers(server) and len(workers(server)) == WORKERS)  # type: ignore[misc]
        seen = scraped(server)
        assert seen[health] == sent
        assert {name: value for name, value in counts(last).items() if seen[name] < value} == {}
    after = until(
        lambda: scraped(server), {"latchkey_worker_deaths_total": before["latchkey_worker_deaths_total"] + WORKERS}
    )
    assert after[health] == sent
    # A new worker reports its memory a moment after it starts.
    expected = [f"latchkey_worker_resident_bytes{{worker={number}}}" for number in range(WORKERS)]
    wait_until(lambda: [name for name in scraped(server) if name.startswith("latchkey_worker_resident")] == expected)


def test_the_connections_of_a_worker_that_was_killed_are_no_more(running: Pair) -> None:
    server = running.servers[0]
    wait_until(lambda: level(server, "latchkey_connections") == 0)
    kept = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=10) for _ in range(24)]
    for one in kept:
        one.request("GET", "/healthz")
        one.getresponse().read()
    wait_until(lambda: level(server, "latchkey_connections") == 24)
    for victim in workers(server):
        os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(workers(server)) == WORKERS and level(server, "latchkey_connections") == 0)
    for one in kept:
        one.close()


def level(server: Server, name: str) -> float:
    """What there is of something, in all workers."""
    return sum(value for sample, value in scraped(server).items() if sample.startswith(f"{name}{{"))


@contextlib.contextmanager
def revoking(port: int, count: int) -> Iterator[list[http.client.HTTPConnection]]:
    """Requests of which each is a script call, over a connection each, not answered yet."""
    connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(count)]
    try:
        for number, one in enumerate(connections):
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            one.request("POST", "/api/oauth/revoke", f"token=invented-{number}", headers)
        yield connections
    finally:
        for one in connections:
            one.close()


def ticks(server: Server) -> list[float]:
    """When the event loop of each worker last turned."""
    samples = scraped(server)
    return sorted(value for name, value in samples.items() if name.startswith("latchkey_worker_ticked"))


def await_all(server: Server) -> None:
    """Waits until every worker serves: one that has just been forked cannot begin while the store is frozen."""
    began = time.time()
    wait_until(lambda: len(found := ticks(server)) == WORKERS and found[0] > began)


def test_levels_are_those_of_the_present(running: Pair) -> None:
    server = running.servers[0]
    await_all(server)
    wait_until(lambda: level(server, "latchkey_requests_in_progress") == 0)
    running.engine.pause()
    try:
        with revoking(server.port, 8) as connections:
            wait_until(lambda: level(server, "latchkey_requests_in_progress") == 8)
            wait_until(lambda: level(server, "latchkey_store_queue") == 8)
            running.engine.resume()
            assert {one.getresponse().status for one in connections} == {200}
    finally:
        running.engine.resume()
    wait_until(lambda: level(server, "latchkey_requests_in_progress") == level(server, "latchkey_store_queue") == 0)


def test_a_worker_that_hangs_is_seen(running: Pair) -> None:
    server = running.servers[0]
    await_all(server)
    victim, began = workers(server)[0], time.time()
    os.kill(victim, signal.SIGSTOP)
    try:
        wait_until(lambda: ticks(server)[0] < time.time() - 3 and ticks(server)[1] > began)
    finally:
        os.kill(victim, signal.SIGCONT)
    await_all(server)


@pytest.mark.parametrize(
    ("accept", "media_type", "end"),
    [
        pytest.param(None, "text/plain; version=0.0.4; charset=utf-8", "}", id="no wish"),
        pytest.param("text/html,*/*;q=0.8", "text/plain; version=0.0.4; charset=utf-8", "}", id="a browser"),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "# EOF",
            id="Prometheus",
        ),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(running: Pair, accept: str | None, media_type: str, end: str) -> None:
    status, given, text = asked(metrics_port(running.servers[0]), accept=accept)
    assert status == 200
    assert given.startswith(media_type)
    last = text.rstrip("\n").splitlines()[-1]
    assert last == end if end.startswith("#") else "latchkey_build_info{" in last


def test_no_label_and_no_line_tells_of_a_person_or_a_secret(running: Pair, service: Service, io_loop: IOLoop) -> None:
    """After everything above, too: it is the same server."""
    EMAILS[service.ada] = running.email
    secrets = [service.ada, running.email, EMAIL, VERIFIER, service.web.secret or "", "private-notes", "my-secret-doc"]

    async def act() -> None:
        for case in (a_document, an_exchange_and_a_replay, an_ai_call):
            await case(service)

    io_loop.run_sync(act, timeout=30)
    text = asked(metrics_port(running.servers[0]))[2]
    assert service.web.client_id in text
    for secret in secrets:
        assert len(secret) > 5
        assert secret not in text
    assert "lk_" not in text
    assert "@" not in text
    routes = {route.name for route in (*ROUTES, *OPS_ROUTES)} | {"static", "unmatched"}
    for sample in scraped(running.servers[0]):
        labels = dict(part.split("=", 1) for part in sample.partition("{")[2].rstrip("}").split(",") if part)
        assert labels.get("route", "token") in routes
        assert labels.get("code", "not_found") in CATALOGUE
        assert labels.get("status", "200") in {"303"} | {str(number) for number in range(200, 600)}
        assert "/" not in "".join(labels.values())


def test_the_port_has_nothing_else_and_the_others_have_none_of_it(running: Pair) -> None:
    server = running.servers[0]
    port = metrics_port(server)
    assert [asked(port, path)[0] for path in ("/", "/healthz", "/api/oauth/userinfo", "/metrics/")] == [404] * 4
    assert status_of(server.port, "/metrics") == 404
    before = scraped(server)
    assert not [name for name in before if "route=metrics" in name]


def test_without_the_setting_nothing_is_counted_and_no_port_is_opened(tmp_path: Path) -> None:
    with Server("--redis-url", "memory", *QUICK) as server:
        assert status_of(server.ready().port) == 200
        assert "metrics on" not in server.log
        maps = Path(f"/proc/{server.process.pid}/maps")
        if maps.exists():
            assert "prometheus" not in maps.read_text()
        assert server.stop() == 0


def test_one_process_alone_has_metrics_too_and_closes_their_port(tmp_path: Path) -> None:
    with Server("--redis-url", "memory", *METRICS, *QUICK) as server:
        port = metrics_port(server.ready())
        get(server.port, 3)
        samples = until(lambda: scraped(server), {answered("healthz", 200): 3, "latchkey_worker_deaths_total": 0})
        assert any(f"version={__version__}" in name for name in samples if name.startswith("latchkey_build_info"))
        assert server.out == f"Latchkey listening on {server.url}\n"
        # A page of another site, whose name was made to resolve to this address, keeps its name in Host.
        hosts = ("evil.test", f"evil.test:{port}", "localhost.evil.test", "127.0.0.1.nip.io", "10.0.0.1")
        assert {asked(port, host=host)[0] for host in hosts} == {403}
        names = ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}")
        assert {asked(port, host=host)[0] for host in names} == {200}
        assert server.stop() == 0
        assert not listens(port)
        assert "Traceback" not in server.log
