"""HAProxy with `deploy/haproxy.cfg`, on a host of its own."""

from __future__ import annotations

import csv
import socket
from collections.abc import Sequence
from pathlib import Path

from deploy.programs import changed, tool
from dev.bench.measure import Unexpected
from dev.lab.engines import wait_until
from dev.proof.two_hosts.network import Host

OPS_PORT = 8081
_OPS = """
# What payment back ends call.
listen ops
    bind {proxy}:{port}
    balance leastconn
    server host1 {first}:{port} track latchkey/host1
    server host2 {second}:{port} track latchkey/host2
"""


class Proxy:
    """The proxy in front of two hosts. Speaks HTTP without TLS, as the clients here do."""

    def __init__(self, host: Host, behind: Sequence[Host], directory: Path) -> None:
        first, second = (one.address for one in behind)
        self._socket = directory / "haproxy.sock"
        config = directory / "haproxy.cfg"
        site = changed(
            "haproxy.cfg",
            socket=str(self._socket),
            plain=f"bind {host.address}:80\n",
            tls="# bind",
            redirect="",
            first=f"server host1 {first}:8080",
            second=f"server host2 {second}:8080",
            checks="default-server check inter 1s fastinter 500ms fall 2 rise 2",
        )
        config.write_text(site + _OPS.format(proxy=host.address, port=OPS_PORT, first=first, second=second))
        self.url, self.ops = f"http://{host.address}", f"http://{host.address}:{OPS_PORT}"
        with (directory / "haproxy.log").open("ab") as log:
            self._process = host.start([tool("haproxy"), "-db", "-f", str(config)], log, directory)
        wait_until(lambda: self._socket.exists() or self._process.poll() is not None)
        if self._process.poll() is not None:
            raise Unexpected((directory / "haproxy.log").read_text())

    def rows(self) -> list[dict[str, str]]:
        """HAProxy's statistics."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(5)
            asked.connect(str(self._socket))
            asked.sendall(b"show stat\n")
            said = b""
            while piece := asked.recv(65536):
                said += piece
        return list(csv.DictReader(said.decode().removeprefix("# ").strip().splitlines()))

    def serves(self, name: str) -> bool:
        """Whether the proxy sends requests to this host."""
        rows = [row for row in self.rows() if (row["pxname"], row["svname"]) == ("latchkey", name)]
        return bool(rows) and all(row["status"].startswith("UP") for row in rows)

    def sent_again(self) -> int:
        """Requests that were never sent to one host, so went to the other."""
        return sum(
            int(row["wredis"] or 0) + int(row["wretr"] or 0) for row in self.rows() if row["svname"] == "BACKEND"
        )

    def close(self) -> None:
        """Ends the proxy."""
        self._process.kill()
        self._process.wait()


def behind(proxy: Proxy, name: str) -> None:
    """Waits until the proxy sends requests to this host."""
    wait_until(lambda: proxy.serves(name), 60)
