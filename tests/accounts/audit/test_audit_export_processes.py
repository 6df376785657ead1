"""Two server processes export one security log: one is killed at work, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dev.lab.engines import wait_until
from store import keys
from store.crypto.keyring import KeyRing, Keys
from store.wiring import Store
from tests.support.http.scraped_metrics import METRICS, scraped
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Server, opened, shared

pytestmark = pytest.mark.slow


class Collector(ThreadingHTTPServer):
    """An HTTP server that keeps the ids of what it receives, and fails when `fails` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.details: list[str] = []
        self.secrets: set[str] = set()
        self.fails = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.secrets.add(self.headers["Authorization"])
        status = 503 if self.server.fails.is_set() or self.path != "/v1/logs" else 200
        if status == 200:
            self.server.details += details_of(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words: Any) -> None:
        pass


def details_of(body: Any) -> list[str]:
    found = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    fields = [{one["key"]: one["value"] for one in record["attributes"]} for record in found]
    return [one["latchkey.detail"]["stringValue"] for one in fields if "latchkey.detail" in one]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.gen_test(timeout=120)
async def test_a_killed_exporter_loses_no_event(collector: Collector) -> None:
    ring, wanted = KeyRing.generate(1), [str(number) for number in range(2500)]
    environment = {"LATCHKEY_SECRET_KEYS": ring, "LATCHKEY_AUDIT_OTLP_HEADER": "Authorization: Bearer collector-secret"}
    with valkey() as engine, engine.client() as client:
        options = ("--redis-url", engine.url, "--audit-otlp", collector.url, *METRICS, *QUICK)
        with Server(*options, environment=environment) as first:
            first.ready()
            wait_until(lambda: client.exists(*keys.AUDIT_EXPORT.values()) == 2)
            with Server(*options, environment=environment) as second:
                second.ready()
                async with opened(engine.url, Keys(KeyRing.parse(ring))) as store:
                    await noted(store, wanted[:2000])
                    await waited(lambda: len(collector.details) >= 400)
                    first.kill()
                    before = len(collector.details)
                    assert before < 2000
                    await noted(store, wanted[2000:])
                    await waited(lambda: set(collector.details) >= set(wanted))
                    # In their order: again from the last noted position, and on from there.
                    rest = collector.details[before:]
                    assert list(dict.fromkeys(rest)) == wanted[-len(set(rest)) :]
                    await waited(lambda: scraped(second)["latchkey_audit_export_behind_seconds{worker=0}"] < 10)
                samples = scraped(second)
                assert samples["latchkey_audit_export_events_total{outcome=sent}"] >= len(set(rest))
                assert collector.secrets == {"Bearer collector-secret"}
                assert "collector-secret" not in second.log + first.log


@pytest.mark.gen_test(timeout=60)
async def test_the_log_and_the_metrics_say_that_the_export_is_behind(collector: Collector) -> None:
    collector.fails.set()
    ring = KeyRing.generate(1)
    with valkey() as engine, engine.client() as client:
        with shared(ring, "--redis-url", engine.url, "--audit-otlp", collector.url, *METRICS, *QUICK) as server:
            server.ready()
            wait_until(lambda: client.exists(*keys.AUDIT_EXPORT.values()) == 2)
            async with opened(engine.url, Keys(KeyRing.parse(ring))) as store:
                await noted(store, ["waits"])
                await waited(lambda: scraped(server)["latchkey_audit_export_behind_seconds{worker=0}"] > 3)
                assert "the security log waits for the collector 127.0.0.1: the answer was 503" in server.log
                collector.fails.clear()
                await waited(lambda: collector.details == ["waits"])
                await waited(lambda: scraped(server)["latchkey_audit_export_behind_seconds{worker=0}"] < 3)
            assert server.stop() == 0
        assert not client.exists(keys.AUDIT_EXPORT["exporter"])


async def noted(store: Store, details: list[str]) -> None:
    for start in range(0, len(details), 400):
        for detail in details[start : start + 400]:
            store.security.note("command_failed", detail=detail)
        await store.security.flush()


async def waited(until: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not await asyncio.to_thread(until):
            await asyncio.sleep(0.05)
