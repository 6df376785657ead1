"""One run: a store, servers, working clients and a nemesis; at the end, the state is read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from dev.bench.measure import HOST, Unexpected, progress
from dev.bench.parts.calling import stub
from dev.lab.ports import free_ports
from dev.proof.calling import Clients
from dev.proof.faults import Kind, Scene, possible
from dev.proof.history import History, Recorder
from dev.proof.nemesis import Nemesis
from dev.proof.options import Options
from dev.proof.people import (
    AI_INPUT,
    AI_OUTPUT,
    APPS,
    CALLBACK,
    PASSWORD,
    PLANNER,
    SCOPES,
    TELEVISION,
    Person,
    Stage,
)
from dev.proof.planners import CROWD, Planner
from dev.proof.reading import read_all
from dev.proof.servers import Keeper, Server
from dev.proof.stores import ClusterUnderProof, EmbeddedUnderProof, RedisUnderProof, StoreUnderProof
from dev.proof.stories import Worker
from dev.proof.televisions import Television
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import Sealer

EVERY_APP = (*APPS, PLANNER, TELEVISION)
START_CREDITS = 5_000_000
"""Micro-dollars of each person: enough that no call is capped by the balance."""
STUB_INPUT = 40
"""Input tokens of every call, as the stub model server reports them."""
CALM_SECONDS = 3.0
"""Seconds without a fault at the end of the load."""
_MODELS = """echo = false
[[upstream]]
name = "stub"
url = "http://127.0.0.1:{port}"
total_timeout = {total}
connect_timeout = {total}
first_byte_timeout = {total}
event_timeout = {total}
"""
_MODEL = """[[upstream.models]]
id = "{name}"
prices = [{{ version = "1", input = {input}, output = {output} }}]
"""


async def run(options: Options) -> History:
    """Returns the history, which is also written to `history.jsonl` in the run's directory. Raises Unexpected or
    AssertionError if the store or the servers do not recover."""
    shutil.rmtree(options.directory, ignore_errors=True)
    options.directory.mkdir(parents=True)
    recorder = Recorder(options.directory / "history.jsonl")
    # Socket paths are short, and a store should not be on a synchronised file system.
    with tempfile.TemporaryDirectory(prefix="proof-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        async with stage(options, Path(directory), recorder) as (scene, setting, flags):
            kinds = chosen(options, scene.store)
            recorder.run(
                store=scene.store.kind,
                title=scene.store.title,
                servers=options.servers,
                workers=options.workers,
                seed=options.seed,
                wait_replicas=options.wait_replicas,
                retry={app.client_id: app.retry for app in EVERY_APP},
                faults=[kind.name for kind in kinds],
            )
            progress(f"{scene.store.title}, {options.servers} servers, {options.workers} clients, seed {options.seed}")
            workers, others = await hired(setting, options), await hired_others(setting, options)
            await load(options, scene, setting, [*workers, *others], kinds)
            recorder.run(seconds=round(setting.now(), 1))
            await scene.well()
            progress(f"{setting.now():7.1f} s  the load is over; reading what is there")
            await read_all(setting, workers, others, options, flags)
        return recorder.close()


@contextlib.asynccontextmanager
async def stage(
    options: Options, directory: Path, recorder: Recorder
) -> AsyncIterator[tuple[Scene, Stage, tuple[list[str], dict[str, str]]]]:
    """Everything running, with the flags and the environment for `manage.py`."""
    ring, key = KeyRing.generate(1), secrets.token_urlsafe(32)
    environment = {"LATCHKEY_SECRET_KEYS": ring, "LATCHKEY_OPERATOR_KEYS": key}
    async with contextlib.AsyncExitStack() as stack:
        model = stack.enter_context(stub(directory))
        store = await asyncio.to_thread(open_store, options, directory)
        stack.callback(store.close)
        if store.wire is not None:
            await store.wire.listen()
            stack.push_async_callback(store.wire.close)
        flags = [*store.options, "--redis-timeout", str(options.redis_timeout)]
        if options.wait_replicas:
            flags += ["--wait-replicas", str(options.wait_replicas)]
        (directory / "models.toml").write_text(models(options, model.port))
        (directory / "seed.json").write_text(json.dumps(seed(options)))
        servers, ops = serving(options, directory, flags, environment)
        keeper = Keeper(servers)
        stack.push_async_callback(keeper.end)
        await keeper.begin("--seed", str(directory / "seed.json"))
        clients = Clients([server.url for server in servers], random.Random(options.seed))
        stack.push_async_callback(clients.close)
        scene = Scene(store, servers, keeper, clients, random.Random(options.seed))
        setting = Stage(clients, recorder, Sealer(Keys(KeyRing.parse(ring))), ops, key, options.call_limit)
        manage = [*store.options, "--redis-timeout", str(options.redis_timeout)]
        yield scene, setting, (manage, {"LATCHKEY_SECRET_KEYS": ring})


def open_store(options: Options, directory: Path) -> StoreUnderProof:
    """The requested store."""
    if options.store == "redis":
        return RedisUnderProof(directory, durable=options.durable)
    if options.store == "embedded":
        return EmbeddedUnderProof(directory, small=not options.faults or "disk" in options.faults)
    return ClusterUnderProof(directory, min_replicas=options.min_replicas)


def serving(
    options: Options, directory: Path, flags: Sequence[str], environment: dict[str, str]
) -> tuple[list[Server], list[str]]:
    """The servers, and where they take payments. On the embedded store they are workers of one server."""
    embedded = options.store == "embedded"
    servers, ops = [], []
    for number in range(1 if embedded else options.servers):
        port, ops_port = free_ports(2)
        own = [
            *("--ops-port", str(ops_port), "--ops-host", HOST, "--trusted-proxies", HOST),
            *("--password-memory", "8192", "--password-iterations", "1", "--password-queue", "200"),
            *("--ai-calls-per-minute", "2000", "--ai-calls-per-person", str(2 * CROWD)),
            *("--ai-config", str(directory / "models.toml"), "--log-level", "warning", *flags),
        ]
        if not embedded:
            own += ["--data-dir", str(directory / f"server-{number + 1}")]
        workers = options.servers if embedded else 1
        servers.append(Server(f"server {number + 1}", options.directory, own, environment, port, workers))
        ops.append(f"http://{HOST}:{ops_port}")
    return servers, ops


def models(options: Options, port: int) -> str:
    """The models: one for each number of tokens, plain and slow."""
    prices = {"input": AI_INPUT * 1_000_000 // STUB_INPUT, "output": AI_OUTPUT * 1_000_000}
    names = [f"{number}x{pause}" for number in range(1, options.call_limit + 1) for pause in (0, 15)]
    top = _MODELS.format(port=port, total=options.hold)
    return top + "".join(_MODEL.format(name=name, **prices) for name in names)


def seed(options: Options) -> dict[str, object]:
    """The apps and people at the start."""
    apps = [
        {
            "client_id": app.client_id,
            **({"client_secret": app.secret} if app.secret else {"public": True}),
            "name": app.client_id,
            "redirect_uris": [CALLBACK],
            "scopes": SCOPES,
            "hostedStorage": True,
            "refreshRetrySeconds": app.retry,
        }
        for app in EVERY_APP
    ]
    people = {address(number) for number in range(options.workers)}
    people |= {f"planner-{number}@example.com" for number in range(options.planners)}
    people |= {f"viewer-{number}@example.com" for number in range(options.televisions)}
    return {
        "apps": apps,
        "users": [{"email": email, "name": "Ada", "password": PASSWORD} for email in sorted(people)],
    }


def address(worker: int) -> str:
    """The person of a worker: two workers, with one app each, share a person."""
    return f"person-{worker // 2}@example.com"


async def hired(setting: Stage, options: Options) -> list[Worker]:
    """The workers; the first of each person buys credits. Raises Unexpected if the payment fails."""
    workers: list[Worker] = []
    for number in range(options.workers):
        app = APPS[(number + number // 2) % len(APPS)]
        person = workers[-1].person if number % 2 else Person(address(number))
        name = f"{address(number).partition('@')[0]}/{app.client_id}"
        workers.append(Worker(setting, person, app, name, random.Random(options.seed * 1000 + number)))
        if number % 2 == 0 and not (await workers[-1].top_up(f"{person.email}-start", START_CREDITS)).acked:
            raise Unexpected("nobody can be paid")
    return workers


async def hired_others(setting: Stage, options: Options) -> list[Planner | Television]:
    """The apps that hand tokens on, each of one person with credits, and the devices. Raises Unexpected."""
    others: list[Planner | Television] = []
    for number in range(options.planners):
        person = Person(f"planner-{number}@example.com")
        dice = random.Random(options.seed * 1000 + 500 + number)
        others.append(Planner(setting, person, PLANNER, f"planner-{number}", dice))
        if not (await others[-1].top_up(f"{person.email}-start", START_CREDITS)).acked:
            raise Unexpected("nobody can be paid")
    for number in range(options.televisions):
        person = Person(f"viewer-{number}@example.com")
        dice = random.Random(options.seed * 1000 + 700 + number)
        others.append(Television(setting, person, TELEVISION, f"viewer-{number}", dice))
    return others


def chosen(options: Options, store: StoreUnderProof) -> list[Kind]:
    """The faults of a run. Raises Unexpected for a fault that does not fit this store on this machine."""
    found = possible(store)
    if options.faults == ("none",):
        return []
    if missing := set(options.faults) - set(found):
        raise Unexpected(f"cannot be done here to {store.title}: {', '.join(sorted(missing))}")
    return [kind for name, kind in found.items() if not options.faults or name in options.faults]


async def load(
    options: Options,
    scene: Scene,
    setting: Stage,
    workers: Sequence[Worker | Planner | Television],
    kinds: list[Kind],
) -> None:
    """Runs all clients until the time is up, and the nemesis until shortly before."""
    done = asyncio.Event()
    tasks = [asyncio.ensure_future(worker.work(done)) for worker in workers]
    ends = setting.now() + options.seconds
    try:
        if kinds:
            nemesis = Nemesis(scene, kinds, setting.recorder, setting.now, options.calm, scene.dice)
            await nemesis.work(max(0.0, ends - CALM_SECONDS) if options.seconds else 0.0)
        while setting.now() < ends and not any(task.done() for task in tasks):
            await asyncio.sleep(0.1)
    finally:
        done.set()
        await asyncio.gather(*tasks)
