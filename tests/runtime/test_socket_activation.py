"""Listening sockets that systemd passes (sd_listen_fds(3))."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from runtime.socket_activation import check_passed, passed_sockets
from settings.declared import Settings
from store.errors import StartupError
from tests.support.processes.operator_commands import clean_environment
from tests.support.processes.processes import ROOT

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def environ(count: object = 1, pid: object = None) -> dict[str, str]:
    named = os.getpid() if pid is None else pid
    return {"LISTEN_PID": str(named), "LISTEN_FDS": str(count), "LISTEN_FDNAMES": "latchkey.socket", "HOME": "/"}


def test_a_passed_socket_is_used_and_its_variables_removed(listening: socket.socket) -> None:
    given = environ()
    number = os.dup(listening.fileno())
    os.set_inheritable(number, True)
    (found,) = passed_sockets(given, number)
    with found:
        assert found.getsockname() == listening.getsockname()
        assert not found.get_inheritable()
    assert given == {"HOME": "/"}


def test_sockets_of_another_process_are_left_alone() -> None:
    given = environ(pid=os.getpid() + 1)
    assert passed_sockets(given) == []
    assert given == {"HOME": "/"}
    assert passed_sockets({}) == []


@pytest.mark.parametrize("count", ["0", "-1", "x", "65", "1 ", "²"])
def test_an_invalid_number_of_sockets_is_refused(count: str) -> None:
    with pytest.raises(StartupError, match="LISTEN_FDS must be a number from 1 to 64"):
        passed_sockets(environ(count))


def test_anything_but_a_listening_tcp_socket_is_refused(tmp_path: Path) -> None:
    with (
        socket.socket() as bound,
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX) as local,
        (tmp_path / "a").open("wb") as file,
    ):
        bound.bind(("127.0.0.1", 0))
        local.bind(str(tmp_path / "s"))
        local.listen()
        for one in (bound, datagrams, local, file):
            with pytest.raises(StartupError, match=f"descriptor {one.fileno()}, passed by LISTEN_FDS, is no"):
                passed_sockets(environ(), one.fileno())
            os.fstat(one.fileno())  # still open: the descriptor is not ours to close


@pytest.mark.parametrize(
    ("address", "options", "fits"),
    [
        pytest.param("127.0.0.1", {}, True, id="loopback for loopback"),
        pytest.param("0.0.0.0", {}, False, id="everybody, while the settings say loopback"),
        pytest.param("0.0.0.0", {"host": "0.0.0.0"}, True, id="everybody, as the settings say"),
        pytest.param("0.0.0.0", {"base_url": "https://id.example"}, True, id="behind a public address"),
        pytest.param("127.0.0.1", {"reuse_port": True}, False, id="with --reuse-port"),
    ],
)
def test_settings_must_match_the_passed_sockets(address: str, options: dict[str, Any], fits: bool) -> None:
    with socket.create_server((address, 0)) as made:
        settings = Settings(**options)
        if fits:
            check_passed([made], settings)
        else:
            with pytest.raises(StartupError):
                check_passed([made], settings)


def request_sent(port: int) -> socket.socket:
    """A connection that has sent its request."""
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.sendall(HEALTH)
    return client


def status(client: socket.socket) -> int:
    """The status of the answer to a request."""
    with client, client.makefile("rb") as answer:
        return int(answer.readline().split()[1])


def ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(30)


def start(listening: socket.socket, data: Path, *options: str) -> subprocess.Popen[bytes]:
    """A server that gets the socket as systemd passes it."""
    command = ["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", sys.executable, "server.py"]
    return subprocess.Popen(
        [*command, "--data-dir", str(data), *options],
        cwd=ROOT,
        env=clean_environment(),
        pass_fds=(3,),
        preexec_fn=lambda: os.dup2(listening.fileno(), 3),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_clients_wait_while_the_server_is_replaced(listening: socket.socket, tmp_path: Path, workers: str) -> None:
    port = listening.getsockname()[1]
    for _ in range(2):
        waiting = request_sent(port)  # before there is a server
        process = start(listening, tmp_path / "data", "--workers", workers)
        try:
            assert status(waiting) == 200
        finally:
            assert ended(process) == 0


def test_systemds_own_program_starts_the_server_at_the_first_connection(tmp_path: Path) -> None:
    if not shutil.which("systemd-socket-activate"):
        pytest.skip("systemd is not installed")
    port = free_port()
    words = ["systemd-socket-activate", "--listen", f"127.0.0.1:{port}", sys.executable, "server.py", "--data-dir"]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [*words, str(tmp_path / "data")], cwd=ROOT, env=clean_environment(), stdout=said, stderr=said
        )
        try:
            wait_until(lambda: "Listening on" in (tmp_path / "said").read_text())
            assert status(request_sent(port)) == 200
        finally:
            assert ended(process) == 0
    assert f"http://localhost:{port}" in (tmp_path / "said").read_text()
