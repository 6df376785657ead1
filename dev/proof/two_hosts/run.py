"""One run: old servers under load, each replaced in turn, then a failover of the store; at the end, every promise."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.bench.measure import HOST, Unexpected, progress
from dev.bench.parts.calling import stub
from dev.lab.engines import wait_until
from dev.proof.history import Fault, History, Recorder
from dev.proof.options import Options
from dev.proof.people import Hand, Stage
from dev.proof.planners import Node, Planner
from dev.proof.reading import read_all
from dev.proof.run import EVERY_APP, hired, hired_others, models, seed
from dev.proof.stories import Worker
from dev.proof.televisions import Television
from dev.proof.two_hosts.asked import Asked, LoggedClients
from dev.proof.two_hosts.network import HERE, Host
from dev.proof.two_hosts.proxy import Proxy, behind
from dev.proof.two_hosts.sentinels import SentinelSet
from dev.proof.two_hosts.servers import HostServer, found_by_search, managed, release
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import Sealer

EVERY_SLOT = [(0, 16383)]
RELAY_PORT = 9000


@dataclass
class Outcome:
    """A history with its log of requests, the requests that the proxy sent to the other host, what was not found, and
    the lines of logs that report defects."""

    history: History
    asked: list[Asked]
    sent_again: int
    not_found: list[str]
    defects: list[str]


@dataclass
class Site:
    """Everything that runs."""

    store: SentinelSet
    proxy: Proxy
    servers: list[HostServer]
    clients: LoggedClients
    stage: Stage
    environment: dict[str, str]


class SteadyWorker(Worker):
    """A worker that waits for its answers: whoever hangs up learns nothing about the server."""

    def _all(self):  # type: ignore[no-untyped-def]  # as in Worker
        found = super()._all()
        for action in (self.impatience, self.stream_and_hang_up):
            del found[action]
        return {**found, self.newcomer: 1.5}


class SteadyPlanner(Planner):
    """The same of an app that hands tokens on."""

    async def hang_up(self, node: Node) -> None:
        await self.stream(node)


async def run(options: Options, before: str, calm: float) -> Outcome:
    """The whole run, with `calm` seconds of load around each event. Raises Unexpected."""
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    recorder = Recorder(options.directory / "history.jsonl")
    with tempfile.TemporaryDirectory(prefix="hosts-", dir="/tmp", ignore_cleanup_errors=True) as name:
        async with built(options, Path(name), recorder, before) as site:
            recorder.run(
                store="sentinel",
                title="two hosts, a primary and two replicas under three sentinels",
                servers=2,
                workers=options.workers,
                seed=options.seed,
                before=before,
                wait_replicas=options.wait_replicas,
                retry={app.client_id: app.retry for app in EVERY_APP},
                faults=["upgrade", "failover"],
            )
            workers = [SteadyWorker(*given(one)) for one in await hired(site.stage, options)]
            others = [steady(one) for one in await hired_others(site.stage, options)]
            found = await under_load(site, [*workers, *others], calm)
            recorder.run(seconds=round(site.stage.now(), 1))
            progress(f"{site.stage.now():7.1f} s  the load is over; reading what is there")
            site.clients.phase = "reading"
            manage = ["--redis-url", site.store.url]
            if not others:
                # Early releases of layout 3 keep no count of a person's documents. The new one counts again in a day.
                await asyncio.to_thread(managed, site.store.url, site.environment, "fsck", "--repair")
            await read_all(site.stage, workers, others, options, (manage, site.environment))
            defects = [line for server in site.servers for line in server.defects()]
            again = site.proxy.sent_again()
            for server in site.servers:
                shutil.copy(server.log, options.directory)
    return Outcome(recorder.close(), site.clients.asked, again, found, defects)


def given(hand: Hand) -> tuple[object, ...]:
    """What a client was made with."""
    return hand.stage, hand.person, hand.app, hand.name, hand.dice


def steady(other: Planner | Television) -> Planner | Television:
    """One that waits for its answers."""
    return SteadyPlanner(*given(other)) if isinstance(other, Planner) else other


async def under_load(site: Site, workers: Sequence[Worker | Planner | Television], calm: float) -> list[str]:
    """Both events, with all clients at work; returns what a search does not find."""
    done = asyncio.Event()
    tasks = [asyncio.ensure_future(worker.work(done)) for worker in workers]
    try:
        await phase(site, "old release", calm)
        for number, server in enumerate(site.servers):
            await replace(site, server, f"replacing host {number + 1}")
            await phase(site, "mixed releases" if number == 0 else "new release", calm)
        await asyncio.to_thread(managed, site.store.url, site.environment, "user", "reindex")
        await fail_over(site)
        await phase(site, "after the failover", calm)
        if any(task.done() for task in tasks):
            raise Unexpected("a client ended early")
    finally:
        done.set()
        await asyncio.gather(*tasks)
    signed_up = [op.person for op in site.stage.recorder.recorded.ops if op.kind == "sign_up" and op.acked]
    said = await asyncio.to_thread(found_by_search, site.store.url, site.environment, "new")
    return [person for person in signed_up if person not in said]


async def phase(site: Site, name: str, seconds: float) -> None:
    """Some seconds of load without an event."""
    site.clients.phase = name
    progress(f"{site.stage.now():7.1f} s  {name}")
    await asyncio.sleep(seconds)


async def replace(site: Site, server: HostServer, name: str) -> None:
    """Stops the server of a host and starts that of this release."""
    site.clients.phase = name
    progress(f"{site.stage.now():7.1f} s  {name}")
    took = await asyncio.to_thread(server.stop)
    progress(f"{site.stage.now():7.1f} s  it ended after {took:.1f} s")
    await asyncio.to_thread(server.start, Path.cwd())
    await asyncio.to_thread(behind, site.proxy, server.host.name)
    progress(f"{site.stage.now():7.1f} s  the new one serves")


async def fail_over(site: Site) -> None:
    """kill -9 of the host of the primary."""
    site.clients.phase = "failover"
    primary = await asyncio.to_thread(site.store.primary)
    began = site.stage.now()
    progress(f"{began:7.1f} s  failover: {primary.host.name} is killed")
    await asyncio.to_thread(primary.kill)
    await asyncio.to_thread(wait_until, lambda: site.store.settled(primary), 60)
    for server in site.servers:
        await asyncio.to_thread(wait_until, server.ready, 60)
        await asyncio.to_thread(behind, site.proxy, server.host.name)
    ended = site.stage.now()
    site.stage.recorder.fault(Fault("failover", primary.host.name, began, ended, list(EVERY_SLOT)))
    progress(f"{ended:7.1f} s  another primary serves, after {ended - began:.1f} s")


@contextlib.asynccontextmanager
async def built(options: Options, directory: Path, recorder: Recorder, before: str) -> AsyncIterator[Site]:
    """The network, the store, the proxy, and servers of the earlier release."""
    ring, key = KeyRing.generate(1), secrets.token_urlsafe(32)
    environment = {"LATCHKEY_SECRET_KEYS": ring, "LATCHKEY_OPERATOR_KEYS": key}
    with contextlib.ExitStack() as stack:
        hosts = {}
        for number, name in enumerate(("proxy", "host1", "host2", "store1", "store2", "store3"), 10):
            hosts[name] = Host(name, number)
            stack.callback(hosts[name].close)
        model = stack.enter_context(stub(directory))
        relay = await asyncio.start_server(relay_to(model.port), HERE, RELAY_PORT)
        stack.callback(relay.close)
        old = await asyncio.to_thread(release, before, directory)
        store = await asyncio.to_thread(
            SentinelSet, [hosts[name] for name in ("store1", "store2", "store3")], directory
        )
        stack.callback(store.close)
        (directory / "models.toml").write_text(
            models(options, RELAY_PORT).replace(f"http://{HOST}:", f"http://{HERE}:")
        )
        (directory / "seed.json").write_text(json.dumps(seed(options)))
        url = f"http://{hosts['proxy'].address}"
        flags = [
            *("--base-url", url, "--redis-url", store.url, "--redis-timeout", str(options.redis_timeout)),
            *("--wait-replicas", str(options.wait_replicas), "--ops-port", "8081", "--log-format", "json"),
            *("--trusted-proxies", f"{hosts['proxy'].address},{HERE}", "--ai-config", str(directory / "models.toml")),
            *("--password-memory", "8192", "--password-iterations", "1", "--password-queue", "200"),
            *("--ai-calls-per-minute", "2000", "--log-level", "warning"),
        ]
        servers = [HostServer(hosts[name], flags, environment, directory) for name in ("host1", "host2")]
        for server in servers:
            stack.callback(server.kill)
        await asyncio.to_thread(servers[0].start, old, "--seed", str(directory / "seed.json"))
        await asyncio.to_thread(servers[1].start, old)
        proxy = await asyncio.to_thread(Proxy, hosts["proxy"], [hosts["host1"], hosts["host2"]], directory)
        stack.callback(proxy.close)
        for server in servers:
            await asyncio.to_thread(behind, proxy, server.host.name)
        clients = LoggedClients([proxy.url], random.Random(options.seed), options.directory / "requests.jsonl")
        sealer = Sealer(Keys(KeyRing.parse(ring)))
        stage = Stage(clients, recorder, sealer, [proxy.ops], key, options.call_limit)
        try:
            yield Site(store, proxy, servers, clients, stage, environment)
        finally:
            await clients.close()


def relay_to(port: int):  # type: ignore[no-untyped-def]  # what asyncio.start_server takes
    """Passes the hosts' connections on to a port of loopback, where the model server is."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(HOST, port)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    return carry
