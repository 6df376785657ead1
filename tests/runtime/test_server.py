"""The server as a process: start, drain, end, kill, and its error messages."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from dev.lab.engines import wait_until
from runtime.starting import STOPPED, STOPPING
from store.crypto.keyring import KeyRing
from store.engine.datadir import Files
from tests.support.http.driver import App
from tests.support.http.http_servers import request
from tests.support.http.raw_http import SECRET, SignIn, account, listens, seed_file, status_of, store_pid, store_runs
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Server, processes, refused, refused_port

# One hash takes some tenths of a second, so that a sign-in can be caught in flight.
SLOW = ("--password-memory", "131072", "--password-iterations", "4")


@pytest.fixture
def seed(tmp_path: Path) -> str:
    """A seed file with a person and an app."""
    return seed_file(tmp_path)


def has_ipv6() -> bool:
    """Whether this host has an IPv6 loopback address."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("url", ["memory", "embedded"])
def test_it_prints_one_line_and_answers_on_both_loopback_addresses(url: str) -> None:
    with Server("--redis-url", url, *QUICK, fresh=True) as server:
        server.ready()
        wait_until(lambda: server.out.endswith("\n"))
        assert server.out == f"Latchkey listening on http://localhost:{server.port}\n"
        assert server.port > 0
        assert status_of(server.port, "/readyz") == 200
        if has_ipv6():
            assert status_of(server.port, "/readyz", "::1") == 200
        assert server.stop() == 0
        assert "Traceback" not in server.log


def test_a_key_file_is_private() -> None:
    with Server("--redis-url", "memory", fresh=True) as server:
        server.ready()
        assert stat.S_IMODE((server.data_dir / "keys").stat().st_mode) == 0o600
        assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
        ring = (server.data_dir / "keys").read_text().strip().partition(":")[2]
        shown = "".join(line for _, line in processes().values())
        assert len(ring) > 40
        assert ring not in shown
        assert ring not in server.out + server.log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "whole_group", "number"),
    [
        pytest.param("1", False, signal.SIGTERM, id="one process, SIGTERM"),
        pytest.param("1", True, signal.SIGINT, id="one process, Ctrl-C in its terminal"),
        pytest.param("2", False, signal.SIGTERM, id="two workers, SIGTERM to the supervisor"),
        pytest.param("2", True, signal.SIGINT, id="two workers, Ctrl-C in their terminal"),
    ],
)
def test_requests_in_flight_are_answered_before_the_store_stops(
    seed: str, workers: str, whole_group: bool, number: signal.Signals
) -> None:
    with Server("--seed", seed, "--workers", workers, *SLOW) as server:
        port, store = server.ready().port, store_pid(server.data_dir)
        sign_in = SignIn(port)
        if whole_group:
            os.killpg(server.process.pid, number)
        else:
            server.process.send_signal(number)
        wait_until(lambda: not listens(port))
        assert sign_in.in_flight(), "the drain came too late to prove anything"
        assert store_runs(server.data_dir, store)
        cookie = sign_in.cookie()
        assert server.wait() == 0
        assert not store_runs(server.data_dir, store)
        assert "Traceback" not in server.log
        stopping, stopped = server.log.index(STOPPING), server.log.index(STOPPED)
        assert stopping < stopped
        assert (server.log.count(STOPPING), server.log.count(STOPPED)) == (1, 1)
        # The answer was no empty promise: the session is in the store.
        with Server(*QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200


def test_a_request_whose_body_is_arriving_is_answered() -> None:
    with Server("--redis-url", "memory", "--http", "fast", *QUICK) as server:
        port = server.ready().port
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(
                request("POST", "/api/oauth/token", "Content-Type: application/json", "Content-Length: 2") + b"{"
            )
            assert [status_of(port), status_of(port)] == [200, 200]  # as in SignIn
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not listens(port))
            client.sendall(b"}")
            assert client.recv(2**16).startswith(b"HTTP/1.1 400 ")
        assert server.wait() == 0


def test_a_drain_has_a_time_limit(seed: str) -> None:
    with Server("--redis-url", "memory", "--seed", seed, *SLOW, "--drain-timeout", "0.05") as server:
        sign_in = SignIn(server.ready().port)
        assert server.stop() == 0
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            sign_in.cookie()


def test_an_interrupted_start_leaves_no_store_behind() -> None:
    with Server(*QUICK) as server:
        pid = Files(server.data_dir).pid
        wait_until(lambda: pid.exists() and pid.read_text() != "")
        store = store_pid(server.data_dir)
        status = server.stop()
        assert status in (0, 130), server.log
        wait_until(lambda: not store_runs(server.data_dir, store))
        assert "Traceback" not in server.log


def test_after_kill_9_the_next_start_adopts_the_store(seed: str) -> None:
    with Server("--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        store = store_pid(server.data_dir)
        server.kill()
        assert store_runs(server.data_dir, store)
        with Server("--seed", seed, *QUICK, data_dir=server.data_dir) as again:
            assert store_pid(again.ready().data_dir) == store
            assert account(again.port, cookie) == 200
            assert again.stop() == 0
        assert not store_runs(server.data_dir, store)


def test_a_second_server_on_the_directory_is_refused() -> None:
    with Server(*QUICK) as server:
        server.ready()
        status, log = refused(data_dir=server.data_dir)
        assert status == 1
        assert f"A server (process {server.process.pid}) runs on the data directory" in log
        assert "Traceback" not in log
        assert status_of(server.port, "/readyz") == 200


def test_a_port_in_use_is_refused() -> None:
    with Server("--redis-url", "memory") as server:
        port = server.ready().port
        status, log = refused("--redis-url", "memory", port=port)
    assert (status, log) == (1, refused_port(port))


@pytest.mark.skipif(not has_ipv6(), reason="this host has no IPv6 loopback address")
def test_a_port_in_use_on_the_other_loopback_address_is_refused() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        status, log = refused("--redis-url", "memory", port=port)
    assert (status, log) == (1, refused_port(port))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--workers", "none"), "workers must be a whole number from 1 to 256", id="a word for a number"),
        pytest.param(("--redis-url", "http://localhost"), "redis_url must be embedded, memory", id="another scheme"),
        pytest.param(("--config", "/nonexistent"), "config cannot be read", id="no configuration file"),
    ],
)
def test_an_unusable_setting_is_reported_in_one_line(options: tuple[str, ...], said: str) -> None:
    status, log = refused(*options)
    assert status == 2
    assert log.startswith(f"latchkey: {said}")
    assert log.count("\n") == 1


def test_an_unreachable_store_is_reported_in_one_line() -> None:
    environment = {
        "LATCHKEY_SECRET_KEYS": KeyRing.generate(1),
        "LATCHKEY_REDIS_URL": "redis://:a-store-password@127.0.0.1:1",
    }
    status, log = refused(environment=environment, fresh=True)
    assert status == 1
    assert log.startswith("latchkey: The store at redis://127.0.0.1:1 cannot be reached")
    assert log.count("\n") == 1
    assert "a-store-password" not in log


def test_a_seed_file_may_be_given_at_every_start(seed: str) -> None:
    with Server("--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        assert server.stop() == 0
        with Server("--seed", seed, *QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200
            SignIn(again.port).cookie()

            async def revoke() -> int:
                app = App(again.here, "web", SECRET)
                return (await app.revoke("invented", client_id="web", client_secret=SECRET)).code

            assert asyncio.run(revoke()) == 200


def test_no_command_line_contains_a_secret() -> None:
    ring = KeyRing.generate(1)
    with valkey() as engine, engine.client() as client:
        client.config_set("requirepass", "a-store-password")
        url = engine.url.replace("unix://", "unix://:a-store-password@")
        environment = {"LATCHKEY_SECRET_KEYS": ring, "LATCHKEY_REDIS_URL": url}
        with Server(environment=environment, fresh=True) as server:
            server.ready()
            shown = {pid: line for pid, (_, line) in processes().items()}
            assert server.process.pid in shown
            for secret in (ring.partition(":")[2], "a-store-password"):
                assert secret not in "\n".join(shown.values())
                assert secret not in server.out + server.log
    # The embedded store is a child that could inherit them.
    with Server(environment={"LATCHKEY_SECRET_KEYS": ring}, fresh=True) as server:
        server.ready()
        environ = Path(f"/proc/{store_pid(server.data_dir)}/environ")
        if environ.exists():
            assert ring.partition(":")[2].encode() not in environ.read_bytes()
        assert not (server.data_dir / "keys").exists()
