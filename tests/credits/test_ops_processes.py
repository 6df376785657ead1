"""The operations port of real server processes: address, workers, and that a payment is booked once."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from dev.lab.engines import wait_until
from tests.runtime.test_server import has_ipv6
from tests.support.http.driver import json_of, send
from tests.support.http.raw_http import EMAIL, listens, seed_file, status_of, store_pid
from tests.support.processes.processes import (
    QUICK,
    Pair,
    Server,
    at_once,
    children,
    driven,
    pair,
    processes,
    refused,
    refused_port,
)

KEY, OTHER = "operator-key_0123456789-abcdefgh", "B" * 43
OPS = ("--ops-port", "0")
ENVIRONMENT = {"LATCHKEY_OPERATOR_KEYS": f"{KEY},{OTHER}"}


def ops_port(server: Server) -> int:
    """The port that the log names."""
    found = re.search(r" INFO latchkey: operations on http://localhost:(\d+)$", server.log, re.MULTILINE)
    assert found, server.log
    return int(found[1])


def pay(port: int, key: str = "payment-1", amount: int = 500) -> http.client.HTTPConnection:
    """A payment for the person of the seed file whose answer has not been read."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Idempotency-Key": key}
    connection.request("POST", "/ops/credits", json.dumps({"user": EMAIL, "amount": amount}), headers)
    return connection


def answered(connection: http.client.HTTPConnection) -> Any:
    """The answer of a payment that was credited."""
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    assert response.status == 200, body
    return body


@pytest.fixture
def seed(tmp_path: Path) -> str:
    """A seed file with a person."""
    return seed_file(tmp_path)


@pytest.mark.trap(24)
def test_the_log_names_the_port_and_no_key(seed: str) -> None:
    with Server("--seed", seed, *OPS, *QUICK, "--log-level", "debug", environment=ENVIRONMENT, fresh=True) as server:
        port = ops_port(server.ready())
        assert server.out == f"Latchkey listening on {server.url}\n"
        assert port not in (0, server.port)
        assert status_of(port) == 200
        if has_ipv6():
            assert status_of(port, host="::1") == 200
        assert answered(pay(port))["paid"] == 500
        assert status_of(port, "/readyz") == 404
        assert status_of(server.port, "/ops/credits") == 404
        shown = "".join(line for _, line in processes().values())
        assert server.stop() == 0
        assert not listens(port)
        for key in (KEY, OTHER):
            assert key not in server.out + server.log + shown
        assert "Traceback" not in server.log


def test_without_the_setting_the_operations_port_is_closed() -> None:
    with Server("--redis-url", "memory", *QUICK, environment=ENVIRONMENT) as server:
        assert "operations on" not in server.ready().log


def test_without_keys_in_the_settings_the_operations_port_refuses_every_key_that_the_store_lacks() -> None:
    with Server(*OPS, "--redis-url", "memory", *QUICK, environment={"LATCHKEY_OPERATOR_KEYS": ""}) as server:
        port = ops_port(server.ready())
        for shown in ("", KEY):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            body = json.dumps({"user": EMAIL, "amount": 500, "key": "payment-1"})
            headers = {"Authorization": f"Bearer {shown}", "Content-Type": "application/json"}
            connection.request("POST", "/ops/credits", body, headers)
            assert connection.getresponse().status == 401
            connection.close()


def test_a_key_that_is_none_is_refused_at_the_start() -> None:
    status, log = refused(*OPS, "--redis-url", "memory", environment={"LATCHKEY_OPERATOR_KEYS": "short"})
    assert status == 2
    assert log.startswith("latchkey: op")
    assert log.count("\n") == 1


def test_a_port_in_use_is_refused() -> None:
    with Server("--redis-url", "memory", *QUICK) as server:
        taken = server.ready().port
        status, log = refused("--redis-url", "memory", "--ops-port", str(taken), environment=ENVIRONMENT)
    assert (status, log) == (1, refused_port(taken, "--ops-port"))


def test_all_workers_answer_and_finish_requests_in_flight(seed: str) -> None:
    with Server("--seed", seed, *OPS, "--workers", "2", *QUICK, environment=ENVIRONMENT) as server:
        port = ops_port(server.ready())
        store = store_pid(server.data_dir)
        workers = [pid for pid in children(server.process.pid) if pid != store]
        assert len(workers) == 2
        for number, stopped in enumerate(workers):  # while one is frozen, the other answers
            os.kill(stopped, signal.SIGSTOP)
            assert [answered(pay(port, f"payment-{number}"))["replayed"] for _ in range(3)] == [False, True, True]
            os.kill(stopped, signal.SIGCONT)
        os.kill(store, signal.SIGSTOP)  # the store is slow for a moment
        waiting = [pay(port, "the last one") for _ in range(4)]
        assert {status_of(port) for _ in range(8)} == {200}  # both have begun with what they were sent before
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not listens(port) and not listens(server.port))
        os.kill(store, signal.SIGCONT)
        answers = [answered(connection) for connection in waiting]
        assert {one["paid"] for one in answers} == {1500}
        assert sorted(one["replayed"] for one in answers) == [False, True, True, True]
        assert server.wait() == 0
        assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers on one store, with the keys in a configuration file."""
    config = tmp_path_factory.mktemp("ops") / "latchkey.toml"
    config.write_text(f'operator_keys = ["{KEY}", "{OTHER}"]')
    with pair(*OPS, "--config", str(config)) as running:
        yield running


def test_a_payment_sent_to_two_processes_concurrently_is_booked_once(two: Pair, io_loop: IOLoop) -> None:
    with driven(io_loop, two) as service:
        urls = [f"http://127.0.0.1:{ops_port(server)}/ops/credits" for server in two.servers]

        async def pay_all(key: str, count: int) -> list[Any]:
            headers = {"Authorization": f"Bearer {OTHER}", "Idempotency-Key": key}
            form = {"user": two.email, "amount": "700"}
            sent = (send(urls[n % 2], "POST", form=form, headers=headers) for n in range(count))
            answers = await asyncio.wait_for(at_once(sent), 30)
            assert {one.code for one in answers} == {200}
            return [json_of(one) for one in answers]

        first = io_loop.run_sync(lambda: pay_all("payment-1", 60))
        assert sorted(one["replayed"] for one in first) == [False] + [True] * 59
        assert {one["paid"] for one in first} == {700}
        io_loop.run_sync(lambda: pay_all("payment-2", 2))
        account = io_loop.run_sync(lambda: service.store.credits.show(service.ada))
        assert (account.paid, [entry.amount for entry in account.entries]) == (1400, [700, 700])
