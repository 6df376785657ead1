"""nginx, Caddy and HAProxy at work, with the sites of this folder, in front of a server or of anything else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from deploy.programs import ROOT, accepts, changed, ran, tool
from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from tests.ai.test_ai_processes import CONFIG
from tests.support.http.http_servers import Client
from tests.support.http.raw_http import EMAIL, SEED
from tests.support.http.upstream import ScriptedUpstream
from tests.support.processes.processes import QUICK, Server


@dataclass
class Proxied:
    """A proxy that speaks TLS, and the server behind it."""

    port: int
    server: Server
    token: str
    upstream: ScriptedUpstream
    trust: ssl.SSLContext
    which: str

    async def connect(self, source: str = "127.0.0.1") -> Client:
        """A connection to the proxy, from this address of the machine."""
        opened = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.trust, server_hostname="localhost", local_addr=(source, 0)
        )
        return Client(*opened)


def nginx(folder: Path, backend: int, port: int, certificate: tuple[str, str]) -> list[str]:
    """The command of an nginx with our server in it, after nginx itself has found nothing wrong."""
    site = changed(
        "nginx.conf",
        backend=f"127.0.0.1:{backend}",
        plain=f"listen 127.0.0.1:{free_port()};",
        tls=f"listen 127.0.0.1:{port} ssl http2;",
        nothing="",
        name="localhost;",
        certificate=certificate[0],
        key=certificate[1],
    )
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi"))
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary} uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
        f"{site}\n}}\n"
    )
    command = [tool("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(whole)]
    said = ran(*command, "-t")
    assert "warn" not in said.stderr
    return command


def caddy(folder: Path, backend: int, port: int, certificate: tuple[str, str]) -> list[str]:
    """The same of Caddy."""
    tls = f"https://localhost:{port} {{\n\ttls {certificate[0]} {certificate[1]}"
    site = changed("Caddyfile", backend=f"127.0.0.1:{backend}", site=tls)
    whole = folder / "Caddyfile"
    whole.write_text(f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n\n{site}")
    ran(tool("caddy"), "validate", "--config", str(whole), "--adapter", "caddyfile", env=home(folder))
    return [tool("caddy"), "run", "--config", str(whole), "--adapter", "caddyfile"]


def haproxy(folder: Path, backend: int, port: int, certificate: tuple[str, str]) -> list[str]:
    """The same of HAProxy, with one host and no checks: `make two-hosts` has two, and checks."""
    both = folder / "both.pem"
    both.write_text("".join(Path(name).read_text() for name in certificate))
    site = changed(
        "haproxy.cfg",
        socket=f"{folder}/haproxy.sock",
        plain=f"bind 127.0.0.1:{free_port()}\n",
        tls=f"bind 127.0.0.1:{port} ssl crt {both}",
        redirect="http-request redirect scheme https code 308 unless { ssl_fc }",
        first=f"server host1 127.0.0.1:{backend}",
        second="",
        checks="default-server",
    )
    whole = folder / "haproxy.cfg"
    whole.write_text(site)
    said = ran(tool("haproxy"), "-c", "-f", str(whole))
    assert "WARNING" not in said.stderr, said.stderr
    return [tool("haproxy"), "-db", "-f", str(whole)]


def home(folder: Path) -> dict[str, str]:
    """An environment in which Caddy writes nowhere else."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }


PROXIES: dict[str, Callable[[Path, int, int, tuple[str, str]], list[str]]] = {
    "nginx": nginx,
    "caddy": caddy,
    "haproxy": haproxy,
}


def mint(server: Server) -> str:
    """An access token for AI calls."""
    command = [sys.executable, "manage.py", "--json", "--data-dir", str(server.data_dir), "token", "mint"]
    said = ran(*command, "--user", EMAIL, "--client-id", "web", "--scopes", "credits:spend", cwd=ROOT)
    return str(json.loads(said.stdout)["access_token"])


@contextlib.asynccontextmanager
async def proxied(which: str, folder: Path, certificate: tuple[str, str]) -> AsyncIterator[Proxied]:
    """One of the proxies at work."""
    upstream = ScriptedUpstream()
    models, seed = folder / "models.toml", folder / "seed.json"
    config = CONFIG.replace('name = "scripted"', 'name = "scripted"\ntrace = true')
    models.write_text(config.replace("PORT", upstream.url.rpartition(":")[2]))
    person = {**SEED["users"][0], "credits": 5_000_000}
    seed.write_text(json.dumps({"apps": [{**SEED["apps"][0], "scopes": "profile credits:spend"}], "users": [person]}))
    port = free_port()
    options = ("--base-url", f"https://localhost:{port}", "--trusted-proxies", "127.0.0.1", "--seed", str(seed))
    with Server(*options, "--ai-config", str(models), "--log-format", "json", *QUICK) as server:
        await asyncio.to_thread(wait_until, lambda: "listening" in server.out)
        backend = int(re.findall(r"127\.0\.0\.1 port (\d+)", server.log)[0])
        try:
            async with in_front(which, folder, backend, port, certificate) as trust:
                token = await asyncio.to_thread(mint, server)
                yield Proxied(port, server, token, upstream, trust, which)
        finally:
            await upstream.close()


@contextlib.asynccontextmanager
async def in_front(
    which: str, folder: Path, backend: int, port: int, certificate: tuple[str, str]
) -> AsyncIterator[ssl.SSLContext]:
    """One of the proxies at this port, with that one behind it; what its clients trust."""
    command = await asyncio.to_thread(PROXIES[which], folder, backend, port, certificate)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=home(folder))
    try:
        await asyncio.to_thread(wait_until, lambda: accepts(port) or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        yield ssl.create_default_context(cafile=certificate[0])
    finally:
        process.terminate()
        process.wait(20)
