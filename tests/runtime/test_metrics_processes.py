"""The metrics port of real server processes: one scrape has what all workers counted, those that were killed too."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dev.lab.engines import wait_until
from latchkey import __version__
from tests.support.http.driver import Service
from tests.support.http.raw_http import listens, status_of
from tests.support.http.scraped_metrics import METRICS, Samples, metrics_port, scrape, scraped, until
from tests.support.processes.live_page import LivePage
from tests.support.processes.measured_server import WORKERS, answered, running, service
from tests.support.processes.processes import QUICK, Pair, Server, children

__all__ = ["running", "service"]  # fixtures

pytestmark = pytest.mark.slow


def workers(server: Server) -> list[int]:
    """The processes that serve."""
    return children(server.process.pid)


def replaced(server: Server, victim: int) -> bool:
    """Whether another worker serves in place of one that was killed."""
    return victim not in workers(server) and len(workers(server)) == WORKERS


def get(port: int, count: int) -> None:
    """Requests over a connection each, which spreads them over the workers."""
    for _ in range(count):
        assert status_of(port) == 200


def counts(samples: Samples) -> Samples:
    """What must never fall."""
    rising = ("_total", "_bucket", "_count", "_sum")
    return {name: value for name, value in samples.items() if name.partition("{")[0].endswith(rising)}


def test_counts_never_fall_when_workers_are_killed(running: Pair) -> None:
    server, health = running.servers[0], answered("healthz", 200)
    before = scraped(server)
    sent = before.get(health, 0.0)
    for victim in workers(server):
        get(server.port, 40)
        sent += 40
        last = until(lambda: scraped(server), {health: sent})
        os.kill(victim, signal.SIGKILL)
        wait_until(partial(replaced, server, victim))
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


def test_a_killed_workers_connections_are_not_counted(running: Pair) -> None:
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
    """Unanswered requests, each a script call on its own connection."""
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


def test_gauges_show_current_values(running: Pair) -> None:
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


def test_a_hanging_worker_is_visible(running: Pair) -> None:
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
def test_the_requested_format_is_used(running: Pair, accept: str | None, media_type: str, end: str) -> None:
    status, given, text = scrape(metrics_port(running.servers[0]), accept=accept)
    assert status == 200
    assert given.startswith(media_type)
    last = text.rstrip("\n").splitlines()[-1]
    assert last == end if end.startswith("#") else "latchkey_build_info{" in last


def test_metrics_are_on_their_own_port_only(running: Pair) -> None:
    server = running.servers[0]
    port = metrics_port(server)
    assert [scrape(port, path)[0] for path in ("/", "/healthz", "/api/oauth/userinfo", "/metrics/")] == [404] * 4
    assert status_of(server.port, "/metrics") == 404
    before = scraped(server)
    assert not [name for name in before if "route=metrics" in name]


def test_without_the_setting_there_are_no_metrics_and_no_port(tmp_path: Path) -> None:
    with Server("--redis-url", "memory", *QUICK) as server:
        assert status_of(server.ready().port) == 200
        assert "metrics on" not in server.log
        maps = Path(f"/proc/{server.process.pid}/maps")
        if maps.exists():
            assert "prometheus" not in maps.read_text()
        assert server.stop() == 0


def test_a_single_process_has_metrics_too(tmp_path: Path) -> None:
    with Server("--redis-url", "memory", *METRICS, *QUICK) as server:
        port = metrics_port(server.ready())
        get(server.port, 3)
        samples = until(lambda: scraped(server), {answered("healthz", 200): 3, "latchkey_worker_deaths_total": 0})
        assert any(f"version={__version__}" in name for name in samples if name.startswith("latchkey_build_info"))
        assert server.out == f"Latchkey listening on {server.url}\n"
        # A page of another site, whose name was made to resolve to this address, keeps its name in Host.
        hosts = ("evil.test", f"evil.test:{port}", "localhost.evil.test", "127.0.0.1.nip.io", "10.0.0.1")
        assert {scrape(port, host=host)[0] for host in hosts} == {403}
        names = ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}")
        assert {scrape(port, host=host)[0] for host in names} == {200}
        assert server.stop() == 0
        assert not listens(port)
        assert "Traceback" not in server.log


@pytest.mark.gen_test(timeout=60)
async def test_open_pages_of_connected_apps_are_counted(service: Service, running: Pair) -> None:
    server = running.servers[0]
    await_all(server)
    browser = await service.signed_in(running.email)
    async with LivePage.opening(server.here) as visit:
        for _ in range(2):
            page = await visit(browser)
            assert await page.event() == "apps"
        wait_until(lambda: level(server, "latchkey_live_pages") == 2)
    wait_until(lambda: level(server, "latchkey_live_pages") == 0)
