"""The HTTP server of a process and its limits: the settings, on real processes."""

from __future__ import annotations

import http.client
import socket
from contextlib import ExitStack

import pytest

from tests.support.http.http_servers import request
from tests.support.http.raw_http import status_of
from tests.support.processes.processes import QUICK, Server

MEMORY = ("--redis-url", "memory", *QUICK)


def raw(port: int, sent: bytes) -> bytes:
    """The first piece of what comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        return connection.recv(2**16)


@pytest.mark.parametrize(
    ("options", "environment", "status"),
    [
        pytest.param((), {"LATCHKEY_HTTP": ""}, b"400", id="by default the strict one"),
        pytest.param(("--http", "fast"), {}, b"400", id="fast"),
        pytest.param(("--http", "tornado"), {}, b"200", id="tornado"),
    ],
)
def test_the_setting_says_which_server_answers(
    options: tuple[str, ...], environment: dict[str, str], status: bytes
) -> None:
    with Server(*MEMORY, *options, environment=environment) as server:
        port = server.ready().port
        assert status_of(port) == 200
        in_lf = request("GET", "/healthz").replace(b"\r\n", b"\n")
        assert raw(port, in_lf).startswith(b"HTTP/1.1 " + status)


def test_connections_beyond_the_limit_are_served_later() -> None:
    with Server(*MEMORY, "--http", "fast", "--connections", "16") as server, ExitStack() as idle:
        port = server.ready().port
        for _ in range(40):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            idle.callback(connection.close)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
        assert server.stop() == 0
