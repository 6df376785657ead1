"""A short part of `make proof`: the embedded store, two server processes, and kill -9 of both while clients work."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeoutError

from dev.lab.engines import valkey
from dev.proof.checker import FSCK, check
from dev.proof.faults import KINDS
from dev.proof.history import History
from dev.proof.nemesis import Nemesis
from dev.proof.options import STORES, Options, parse
from dev.proof.run import run
from dev.proof.wire import Wire
from runtime.site_wiring import HOLD_MARGIN_SECONDS
from settings.declared import Settings

FAULTS = ("connections", "server", "store", "hang-up", "memory")
"""Each is done once, however long that takes."""


@pytest.mark.slow
def test_promises_hold_while_servers_store_and_connections_fail(tmp_path: Path) -> None:
    options = Options(
        "embedded",
        seconds=0,
        seed=7,
        directory=tmp_path / "run",
        faults=FAULTS,
        workers=8,
        servers=2,
        redis_timeout=1,
        hold=1,
        calm=(0.6, 0.8),
        planners=2,
        televisions=3,
    )
    history = asyncio.run(run(options))
    verdicts = check(history)
    assert [(one.invariant.name, one.broken) for one in verdicts if one.broken] == []
    # Looked at, and more than once: a load that did nothing proves nothing.
    assert {one.invariant.name: one.checked > 1 for one in verdicts} == {
        one.invariant.name: one.invariant is not FSCK for one in verdicts
    }
    assert {fault.name for fault in history.faults} == set(FAULTS)
    assert {op.outcome for op in history.ops} == {"acknowledged", "refused", "unknown"}
    assert History.load(tmp_path / "run" / "history.jsonl").ops == history.ops


def test_without_options_every_store_is_tested() -> None:
    runs = parse([])
    assert [options.store for options in runs] == list(STORES)
    assert [options.wait_replicas for options in runs] == [0, 0, 0, 1]
    assert len({options.seed for options in runs}) == 1
    assert len({options.directory for options in runs}) == len(STORES)


@pytest.mark.parametrize("replicas", [0, 1])
def test_the_proof_waits_for_holds_as_long_as_servers_let_them_last(replicas: int, tmp_path: Path) -> None:
    options = Options("cluster", seconds=1, seed=1, directory=tmp_path, wait_replicas=replicas)
    settings = Settings(redis_url="redis+cluster://x", redis_timeout=options.redis_timeout, wait_replicas=replicas)
    assert options.hold_ends == options.hold + 2 * settings.call_seconds + HOLD_MARGIN_SECONDS


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["--store", "memory"], id="a store that keeps nothing"),
        pytest.param(["--faults", "earthquake"], id="a fault nobody can do"),
        pytest.param(["--seconds", "0"], id="no time"),
    ],
)
def test_an_impossible_run_is_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(argv)
    assert f"argument {argv[0]}" in capsys.readouterr().err


def test_the_wire_loses_the_answer_to_the_request_that_is_named() -> None:
    async def lose() -> None:
        with valkey() as engine:
            wire = Wire(engine.socket_path)
            await wire.listen()
            client = redis.asyncio.Redis.from_url(wire.url, socket_timeout=0.2, retry=Retry(NoBackoff(), 0))
            lost = asyncio.ensure_future(wire.lose_answer_to(b"named"))
            await asyncio.sleep(0)
            assert await client.set("another", "done")
            assert not lost.done()
            with pytest.raises(RedisTimeoutError):
                await client.set("named", "done")
            await lost
            wire.cut()
            assert await client.get("named") == b"done", "it reached the store"
            await client.aclose()
            await wire.close()

    asyncio.run(lose())


@pytest.mark.parametrize("seed", range(5))
def test_each_round_of_faults_begins_with_lost_answers(seed: int) -> None:
    nothing: Any = None
    kinds = list(KINDS.values())
    orders = Nemesis(nothing, kinds, nothing, nothing, (0, 0), random.Random(seed))._order()
    for _ in range(2):
        order = [next(orders).name for _ in kinds]
        assert order[0] == "answers"
        assert sorted(order) == sorted(KINDS)
