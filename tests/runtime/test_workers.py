"""Several worker processes: all serve, dead ones are replaced soon, and none outlives its supervisor."""

from __future__ import annotations

import contextlib
import http.client
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from runtime.listening import bind, for_each_worker
from runtime.workers import INFANCY_SECONDS, INFANT_DEATHS
from store.engine.datadir import Files, recorded_socket
from tests.support.http.raw_http import SignIn, account, listens, seed_file, status_of, store_pid
from tests.support.processes.operator_commands import clean_environment
from tests.support.processes.processes import QUICK, ROOT, Server, children, processes, refused, refused_port

pytestmark = pytest.mark.slow


@pytest.fixture
def seed(tmp_path: Path) -> str:
    """A seed file with a person and an app."""
    return seed_file(tmp_path)


def workers(server: Server) -> list[int]:
    """The serving processes."""
    return [pid for pid in children(server.process.pid) if pid != store_pid(server.data_dir)]


@contextlib.contextmanager
def open_requests(port: int, count: int = 32) -> Iterator[list[http.client.HTTPConnection]]:
    """Connections with one unanswered request each."""
    connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=15) for _ in range(count)]
    try:
        for connection in connections:
            connection.request("GET", "/healthz")
        yield connections
    finally:
        for connection in connections:
            connection.close()


def readable(connection: http.client.HTTPConnection) -> bool:
    """Whether an answer, or the end, has come."""
    return bool(select.select([connection.sock], [], [], 0)[0])


def freeze(pid: int) -> None:
    """Stops the process until it may go on."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: shown(pid, "stat").startswith("T"))


def waits(pid: int, number: signal.Signals) -> bool:
    """Whether the signal waits until the process goes on."""
    return bool(int(shown(pid, "pending"), 16) >> number - 1 & 1)


def shown(pid: int, column: str) -> str:
    """What `ps` says of a process."""
    return subprocess.check_output(["ps", "-o", f"{column}=", "-p", str(pid)], text=True).strip()


def test_starting_workers_are_ended_too() -> None:
    with Server("--workers", "16", *QUICK) as server:
        wait_until(lambda: len(children(server.process.pid)) > 1)  # the store and a worker
        family = {*children(server.process.pid), server.process.pid}
        assert server.stop() == 0
        assert not family & set(processes())
        assert "Traceback" not in server.log


def test_all_workers_serve_and_a_dead_workers_queue_goes_to_the_next() -> None:
    with Server("--workers", "2", *QUICK) as server:
        port = server.ready().port
        store, (one, other) = store_pid(server.data_dir), workers(server)
        for frozen in (one, other):
            freeze(frozen)
            with open_requests(port) as waiting:
                wait_until(lambda: any(map(readable, waiting)))  # called here
                if sys.platform == "linux":  # each has a queue of its own
                    assert not all(map(readable, waiting))
                os.kill(frozen, signal.SIGCONT if frozen == one else signal.SIGKILL)
                assert {connection.getresponse().status for connection in waiting} == {200}
        assert f"worker {other} ended with status -9" in server.log
        [new] = set(workers(server)) - {one}
        assert server.stop() == 0
        assert not {one, other, new, store} & set(processes())


def test_unaccepted_connections_end_with_the_server() -> None:
    with Server("--workers", "2", *QUICK) as server:
        port, family = server.ready().port, workers(server)
        for pid in family:
            freeze(pid)
        with open_requests(port) as waiting:
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: all(waits(pid, signal.SIGTERM) for pid in family))
            for pid in family:
                os.kill(pid, signal.SIGCONT)
            assert server.wait() == 0
            wait_until(lambda: all(map(readable, waiting)))  # answered, closed or reset


def test_a_hanging_worker_is_killed() -> None:
    with Server("--workers", "2", "--drain-timeout", "0.1", "--redis-timeout", "0.1", *QUICK) as server:
        one, other = workers(server.ready())
        freeze(one)
        assert server.stop() == 1
        assert f"worker {one} does not end and is killed" in server.log
        assert not {one, other} & set(processes())


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("host", ["localhost", "0.0.0.0"])
def test_each_worker_listens_on_every_address(host: str, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if platform == "linux" != sys.platform:
        pytest.skip("not on Linux")
    monkeypatch.setattr(sys, "platform", platform)
    first = bind(host, 0)
    sets = for_each_worker(first, 3)
    assert len(sets) == 3
    addresses = [[one.getsockname() for one in sockets] for sockets in sets]
    assert addresses[1:] == addresses[:-1]
    everyone = {one for sockets in sets for one in sockets}
    assert len(everyone) == len(first) * (3 if platform == "linux" else 1)
    for one in everyone:
        one.close()


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_port_in_use_by_workers_is_refused(count: str) -> None:
    with Server("--workers", "2", *QUICK) as server:
        port = server.ready().port
        status, log = refused("--workers", count, *QUICK, port=port)
    assert (status, log) == (1, refused_port(port))


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="this system has no SO_REUSEPORT")
def test_a_port_in_use_with_sharing_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as foreign:
        port = foreign.getsockname()[1]
        status, log = refused("--workers", "2", *QUICK, port=port)
    assert (status, log) == (1, refused_port(port))


def test_workers_end_without_their_supervisor(seed: str) -> None:
    with Server("--workers", "2", "--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        store = store_pid(server.data_dir)
        family = set(workers(server))
        assert len(family) == 2
        server.kill()
        wait_until(lambda: not family & set(processes()), 10)
        assert not listens(server.port)
        with Server(*QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200
            assert store_pid(again.data_dir) == store


def test_starting_workers_end_without_their_supervisor() -> None:
    with Server("--workers", "8", *QUICK) as server:
        wait_until(lambda: len(children(server.process.pid)) == 9)  # the store is one of them
        family = set(children(server.process.pid))
        server.kill()
        wait_until(lambda: family & set(processes()) == {store_pid(server.data_dir)})


@pytest.mark.parametrize("count", ["1", "2"])
def test_an_embedded_store_that_dies_is_started_again(seed: str, count: str) -> None:
    with Server("--workers", count, "--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        first = store_pid(server.data_dir)
        os.kill(first, signal.SIGKILL)
        statuses: set[int] = set()

        def serves() -> bool:
            status = account(server.port, cookie)
            statuses.add(status)
            return status == 200 and store_pid(server.data_dir) != first

        wait_until(serves, 20)
        assert statuses <= {503, 200}
        server.stop()
        assert "the embedded store runs again" in server.log
        assert "Traceback" not in server.log


def test_during_a_store_outage_new_workers_wait_and_others_continue() -> None:
    with Server("--workers", "2", *QUICK) as server:
        port = server.ready().port
        wait_until(lambda: len(workers(server)) == 2)
        ready = time.monotonic()
        wait_until(lambda: time.monotonic() - ready > INFANCY_SECONDS)  # who dies younger did not die of its work
        store = redis.Redis(unix_socket_path=recorded_socket(Files(server.data_dir.resolve())))
        with store:
            store.config_set("min-replicas-to-write", 1)
            first, second = workers(server)
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: server.log.count("a worker cannot start") > INFANT_DEATHS)
            assert second in workers(server)
            store.config_set("min-replicas-to-write", 0)
        wait_until(lambda: len(workers(server)) == 2)
        with open_requests(port) as connections:
            assert {connection.getresponse().status for connection in connections} == {200}
        assert "keep dying" not in server.log
        assert server.stop() == 0


def test_if_no_worker_can_start_the_server_ends_with_a_message() -> None:
    with Server("--workers", "2", *QUICK) as server:
        server.ready()
        wait_until(lambda: len(workers(server)) == 2)
        with redis.Redis(unix_socket_path=recorded_socket(Files(server.data_dir.resolve()))) as store:
            store.config_set("min-replicas-to-write", 1)
            for pid in workers(server):
                os.kill(pid, signal.SIGKILL)
            assert server.process.wait(30) == 1
        assert "workers keep dying at their start" in server.log


@pytest.mark.parametrize("count", ["1", "2"])
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"], ids=["output", "all"])
def test_closed_standard_streams_do_not_stop_the_server(tmp_path: Path, count: str, closed: str) -> None:
    port = free_port()
    words = ("server.py", "--port", str(port), "--data-dir", str(tmp_path / "d"), "--workers", count, *QUICK)
    with (tmp_path / "log").open("wb") as log:
        command = f"exec {shlex.join([sys.executable, *words])} {closed}"
        process = subprocess.Popen(["bash", "-c", command], cwd=ROOT, stdout=log, stderr=log, env=clean_environment())
    try:
        wait_until(lambda: listens(port) or process.poll() is not None, 60)
        assert {status_of(port, "/readyz") for _ in range(4)} == {200}
    finally:
        process.terminate()
        assert process.wait(30) == 0, (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()
