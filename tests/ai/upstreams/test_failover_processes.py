"""Two real servers whose model has one server that is away and one that answers, with a key from a command."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from dev.lab.engines import wait_until
from tests.ai.upstreams.several import file_of
from tests.support.http.driver import Service
from tests.support.http.upstream import ScriptedUpstream
from tests.support.processes.processes import Pair, Server, at_once, driven, pair
from tests.support.store.ai_spender import Spender, cost, question

pytestmark = pytest.mark.slow


@pytest.fixture
def listening() -> Iterator[list[socket.socket]]:
    """The sockets of the server that answers."""
    sockets = bind_sockets(0, "127.0.0.1")
    yield sockets
    for one in sockets:
        one.close()


@pytest.fixture
def two(listening: list[socket.socket], tmp_path: Path) -> Iterator[Pair]:
    """Two servers with one file of models. The command notes each run."""
    runs = tmp_path / "runs"
    program = f"open({str(runs)!r}, 'a').write('x'); print('sk-of-the-command')"
    words = json.dumps([sys.executable, "-c", program])
    urls = {"away": "http://127.0.0.1:1", "works": f"http://127.0.0.1:{listening[0].getsockname()[1]}"}
    (tmp_path / "models.toml").write_text(file_of(urls, key=f"key_command = {words}"))
    with pair("--ai-config", str(tmp_path / "models.toml")) as made:
        yield made


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A person and an app on both."""
    with driven(io_loop, two) as made:
        yield made


@pytest.fixture
def upstream(io_loop: IOLoop, listening: list[socket.socket]) -> Iterator[ScriptedUpstream]:
    """The server that answers, in this test's loop."""

    async def listen() -> ScriptedUpstream:
        return ScriptedUpstream([one.dup() for one in listening])

    made = io_loop.run_sync(listen)
    yield made
    io_loop.run_sync(made.close)


def has_reloaded(server: Server, times: int) -> bool:
    """Whether a server has read its configuration again this often."""
    return server.log.count("configuration reloaded") >= times


@pytest.mark.gen_test(timeout=60)
async def test_calls_at_once_fail_over_and_share_a_reading_of_the_key(
    service: Service, two: Pair, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    spender = await Spender.make(service)
    spenders = [replace(spender, base_url=server.here) for server in two.servers]
    for round_ in (1, 2):
        answers = await at_once(
            spenders[number % 2].ask(question(f"{number}", stream=number % 3 == 0)) for number in range(20)
        )
        assert [answer.code for answer in answers] == [200] * 20
        assert await spender.charged() == [cost(25, 31)] * 20 * round_
        # Two servers of the model have a key each, in two processes; a reload reads the keys again.
        assert len((tmp_path / "runs").read_text()) <= 4 * round_
        await spender.fresh_window()
        for server in two.servers:
            server.process.send_signal(signal.SIGHUP)
            wait_until(partial(has_reloaded, server, round_), 30)
    assert {call.request.headers["X-Api-Key"] for call in upstream.calls} == {"sk-of-the-command"}
    assert len(upstream.calls) == 40
    assert all("sk-of-the-command" not in server.log for server in two.servers)
