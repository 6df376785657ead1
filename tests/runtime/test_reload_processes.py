"""SIGHUP to real servers: they take up their file, drop nobody, tell systemd, and outlive mistakes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http.client
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from functools import partial
from pathlib import Path

import pytest

from dev.lab.engines import wait_until
from tests.runtime.test_workers import freeze, workers
from tests.support.http.raw_http import all_serve, status_of
from tests.support.http.steady_clients import Steady
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, ROOT, Server, children
from tests.support.processes.reloaded_service import NEW_RING, OLD_RING

pytestmark = pytest.mark.slow


def config_file(directory: Path, **values: object) -> str:
    """A configuration file."""
    path = directory / "latchkey.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
    return str(path)


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_reload_drops_no_connection(tmp_path: Path, count: str) -> None:
    async def reload() -> None:
        config = config_file(tmp_path, signup="open")
        with Server("--config", config, "--workers", count, *QUICK) as running:
            port = running.ready().port
            family = workers(running)
            assert status_of(port, "/signup") == 200
            load = Steady(port)
            async with load.at_work(6):
                await load.more(50)
                config_file(tmp_path, signup="off", redis_timeout=4, log_format="json")
                running.process.send_signal(signal.SIGHUP)
                wait_until(lambda: all(status_of(port, "/signup") == 403 for _ in range(12)))
                assert running.log.count("changed: log_format, signup") == 1
                assert running.log.count("need a restart: redis_timeout") == 1
                config_file(tmp_path, signup="open", requests="none")
                running.process.send_signal(signal.SIGHUP)
                wait_until(lambda: "reload failed" in running.log)
                assert "requests must be a whole number" in running.log
                await load.more(50)
                assert all(status_of(port, "/signup") == 403 for _ in range(12))
                if count == "2":  # one that is started later knows, too
                    os.kill(family[0], signal.SIGKILL)
                    wait_until(lambda: len(set(workers(running)) - {family[0]}) == 2)
                    load.lost.clear()
                    assert all(status_of(port, "/signup") == 403 for _ in range(12))
                else:
                    assert workers(running) == family
            assert (load.lost, load.refused) == ([], 0)
            assert running.stop() == 0
            assert "Traceback" not in running.log

    asyncio.run(reload())


@pytest.mark.parametrize("later", ["signup = 5", 'signup = "open"'], ids=["a mistake", "something else"])
def test_a_late_worker_gets_the_reloaded_settings(tmp_path: Path, later: str) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--workers", "2", *QUICK) as running:
        all_serve(port := running.ready().port)
        late = workers(running)[0]
        freeze(late)
        config_file(tmp_path, signup="off")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "configuration reloaded" in running.log)
        Path(config).write_text(later)
        os.kill(late, signal.SIGCONT)
        wait_until(lambda: all(status_of(port, "/signup") == 403 for _ in range(24)))
        assert "reload failed" not in running.log
        assert late in workers(running)


@pytest.mark.parametrize("count", ["1", "2"])
def test_an_invalid_file_does_not_stop_the_server(tmp_path: Path, count: str) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--workers", count, *QUICK) as running:
        running.ready()
        for number, text in enumerate(("x = " + "[" * 5000 + "]" * 5000, "port = " + "9" * 5000), start=1):
            Path(config).write_text(text)
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda number=number: running.log.count("reload failed") == number)  # type: ignore[misc]  # mypy and defaults of lambdas
        config_file(tmp_path, signup="off")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: all(status_of(running.port, "/signup") == 403 for _ in range(12)))
        assert "Traceback" not in running.log


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_reload_requested_during_the_start_is_done(tmp_path: Path, count: str) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--workers", count, *QUICK) as running:
        wait_until((running.data_dir / "store.lock").exists)
        config_file(tmp_path, signup="off")
        running.process.send_signal(signal.SIGHUP)
        running.ready()
        wait_until(lambda: all(status_of(running.port, "/signup") == 403 for _ in range(12)))
        config_file(tmp_path, signup="open")
        if count == "2":  # what is asked for once is not done again by those that are started later
            family = workers(running)
            os.kill(family[0], signal.SIGKILL)
            wait_until(lambda: len(set(workers(running)) - {family[0]}) == 2)
            with contextlib.suppress(ConnectionError):  # of the one that was killed
                status_of(running.port)
        assert all(status_of(running.port, "/signup") == 403 for _ in range(24))


@pytest.mark.parametrize("count", ["1", "2"])
def test_keys_are_rotated_without_a_restart(tmp_path: Path, count: str) -> None:
    with valkey() as engine:
        config = config_file(tmp_path, redis_url=engine.url, secret_keys=OLD_RING)
        with Server("--config", config, "--workers", count, *QUICK) as running:
            running.ready()
            config_file(tmp_path, redis_url=engine.url, secret_keys=NEW_RING)  # without the old one
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "reload failed" in running.log)
            assert "none of the configured secret keys opens what this store holds" in running.log
            config_file(tmp_path, redis_url=engine.url, secret_keys=f"{NEW_RING},{OLD_RING}")
            running.process.send_signal(signal.SIGHUP)
            with engine.client() as client:
                wait_until(lambda: any(b"2" in name for name in client.hkeys("{keyring}:state")))
            wait_until(lambda: "changed: secret_keys" in running.log)
            assert status_of(running.port, "/readyz") == 200
            assert running.stop() == 0
            for ring in (OLD_RING, NEW_RING):
                assert ring.partition(":")[2] not in running.log


@pytest.mark.parametrize("count", ["1", "2"])
def test_systemd_is_notified(tmp_path: Path, count: str) -> None:
    config = config_file(tmp_path, signup="open")
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(20)
        options = ("--config", config, "--workers", count, *QUICK)
        with Server(*options, environment={"NOTIFY_SOCKET": address}) as running:
            assert manager.recv(200) == b"READY=1"
            assert status_of(running.ready().port) == 200
            for pid in children(running.process.pid):
                assert b"NOTIFY_SOCKET=" not in store_environ(pid)
            running.process.send_signal(signal.SIGHUP)
            name, _, moment = manager.recv(200).decode().partition("\nMONOTONIC_USEC=")
            assert name == "RELOADING=1"
            assert int(moment) > 0
            assert manager.recv(200) == b"READY=1"
            assert running.stop() == 0
            assert manager.recv(200) == b"STOPPING=1"
            manager.setblocking(False)
            with pytest.raises(BlockingIOError):
                manager.recv(200)


def store_environ(pid: int) -> bytes:
    """The environment that a program was started with; a worker's is the supervisor's of then."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"" if b"server.py" in command else Path(f"/proc/{pid}/environ").read_bytes()


def at_a_terminal(*options: str, ignoring: bool = False) -> tuple[subprocess.Popen[bytes], int]:
    """A server whose terminal can be hung up, and the other end of that. `ignoring`: as with nohup."""
    master, slave = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignoring else signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, "server.py", "--port", "0", "--redis-url", "memory", *QUICK, *options],
        cwd=ROOT,
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=take_terminal,
    )
    os.close(slave)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"Latchkey listening")
    return process, master


def test_sighup_reloads_with_a_terminal_and_ends_without_one(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path), "--drain-delay", "0")
    process, master = at_a_terminal(*options)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    os.close(master)
    assert process.wait(15) == 0
    assert process.stdout is not None
    process.stdout.close()
    process, master = at_a_terminal(*options, ignoring=True)
    os.close(master)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.terminate()
    assert process.wait(15) == 0
    assert process.stdout is not None
    process.stdout.close()


def test_keep_alive_connections_survive_a_reload(tmp_path: Path) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--redis-url", "memory", *QUICK) as running:
        kept = http.client.HTTPConnection("127.0.0.1", running.ready().port, timeout=10)
        kept.connect()
        port = kept.sock.getsockname()[1]

        def answers(status: int) -> bool:
            return status_of(running.port, "/signup") == status

        for signup, status in (("open", 200), ("off", 403)):
            config_file(tmp_path, signup=signup)
            running.process.send_signal(signal.SIGHUP)
            wait_until(partial(answers, status))
            kept.request("GET", "/signup")
            answer = kept.getresponse()
            answer.read()
            assert answer.status == status
            assert kept.sock.getsockname()[1] == port
        kept.close()
