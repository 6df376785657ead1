"""Several worker processes: all serve, none is missed for long, and none outlives what it needs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.processes import QUICK, Server, children, processes, wait_until
from tests.raw_http import SignIn, account, listens, seed_file, status_of, store_pid


@pytest.fixture
def seed(tmp_path: Path) -> str:
    """A seed file with a person and an app."""
    return seed_file(tmp_path)


def test_workers_that_are_being_started_are_ended_too() -> None:
    with Server("--workers", "16", *QUICK) as server:
        wait_until(lambda: len(children(server.process.pid)) > 1)  # the store and a worker
        family = {*children(server.process.pid), server.process.pid}
        assert server.stop() == 0
        assert not family & set(processes())
        assert "Traceback" not in server.log


def test_two_workers_both_serve_and_one_that_dies_is_replaced() -> None:
    with Server("--workers", "2", *QUICK) as server:
        port = server.ready().port
        store = store_pid(server.data_dir)

        def workers() -> list[int]:
            return [pid for pid in children(server.process.pid) if pid != store]

        one, other = workers()
        for stopped in (one, other):  # while one is frozen, the other answers
            os.kill(stopped, signal.SIGSTOP)
            assert {status_of(port, "/readyz") for _ in range(5)} == {200}
            os.kill(stopped, signal.SIGCONT)
        os.kill(one, signal.SIGKILL)
        wait_until(lambda: len(set(workers()) - {one}) == 2)
        [new] = set(workers()) - {one, other}
        os.kill(other, signal.SIGSTOP)
        assert status_of(port, "/readyz") == 200, "the new one serves"
        os.kill(other, signal.SIGCONT)
        assert f"worker {one} ended with status -9" in server.log
        assert server.stop() == 0
        assert not {one, other, new, store} & set(processes())


def test_without_their_supervisor_workers_end(seed: str) -> None:
    with Server("--workers", "2", "--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        store = store_pid(server.data_dir)
        workers = set(children(server.process.pid)) - {store}
        assert len(workers) == 2
        server.kill()
        wait_until(lambda: not workers & set(processes()), 10)
        assert not listens(server.port)
        with Server(*QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200
            assert store_pid(again.data_dir) == store


def test_workers_whose_supervisor_is_killed_while_they_start_end() -> None:
    with Server("--workers", "8", *QUICK) as server:
        wait_until(lambda: len(children(server.process.pid)) == 9)  # the store is one of them
        family = set(children(server.process.pid))
        server.kill()
        wait_until(lambda: family & set(processes()) == {store_pid(server.data_dir)})


@pytest.mark.parametrize("workers", ["1", "2"])
def test_without_its_embedded_store_the_server_ends_and_says_so(workers: str) -> None:
    with Server("--workers", workers, *QUICK) as server:
        store = store_pid(server.ready().data_dir)
        family = {*children(server.process.pid), server.process.pid}
        os.kill(store, signal.SIGKILL)
        assert server.wait() == 1
        assert "the embedded store ended" in server.log
        assert "Traceback" not in server.log
        assert not family & set(processes())
