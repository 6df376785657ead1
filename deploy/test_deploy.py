"""The files of this folder, each checked by the program that it is for; nginx and Caddy in front of a server at work.

`make test-deploy` runs this: it needs Debian's packages nginx-light, caddy, systemd and openssl, and Node. No container
is built or started here: the Dockerfile and the Compose file are checked by linters, and the commands in them are run
without one.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fnmatch
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import redis

from bench.engines import wait_until
from bench.ports import free_port
from settings import Settings
from settings.declared import DAY
from store.keyring import KeyRing
from tests.driver import PASSWORD
from tests.engines import valkey
from tests.fronts import Client, request
from tests.processes import QUICK, Server
from tests.raw_http import EMAIL, SEED
from tests.steady import HEALTH, Steady
from tests.test_ai_processes import CONFIG
from tests.upstream import Plan, ScriptedUpstream

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DCLINT = "dclint@3.1.0"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
MOST_EXPOSED = 15
"""Of 100, as `systemd-analyze security` counts."""


def tool(name: str) -> str:
    """Where a program is; without it nothing is checked, which must not look like a pass."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    assert found, f"{name} is not on this machine: see .ci/run"
    return found


def ran(*command: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """A command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **given)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done


def changed(file: str, **instead: str) -> str:
    """A file of this folder, with what each operator puts in: every name must be there to be replaced."""
    text = (HERE / file).read_text()
    for before, after in PLACES[file].items():
        assert before in text, f"{before} is not in {file}"
        text = text.replace(before, instead[after])
    return text


PLACES = {
    "latchkey.service": {"/opt/latchkey/.venv/bin/python": "python", "/opt/latchkey": "root"},
    "nginx.conf": {
        "127.0.0.1:8080": "backend",
        "listen 80;": "plain",
        "listen [::]:80;": "nothing",
        "listen 443 ssl http2;": "tls",
        "listen [::]:443 ssl http2;": "nothing",
        "id.example.org;": "name",
        "/etc/ssl/certs/id.example.org.pem": "certificate",
        "/etc/ssl/private/id.example.org.key": "key",
    },
    "Caddyfile": {"127.0.0.1:8080": "backend", "id.example.org {": "site"},
}

# systemd.


def unit(tmp_path: Path) -> Path:
    """The unit, for this checkout."""
    path = tmp_path / "latchkey.service"
    path.write_text(changed("latchkey.service", python=sys.executable, root=str(ROOT)))
    return path


def directive(text: str, name: str) -> str:
    """Its value."""
    [found] = re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)
    return str(found)


def test_the_unit_is_one_and_leaves_little_open(tmp_path: Path) -> None:
    path = unit(tmp_path)
    said = ran(tool("systemd-analyze"), "verify", "--man=no", str(path))
    assert path.name not in said.stdout + said.stderr
    threshold = f"--threshold={MOST_EXPOSED}"
    ran(tool("systemd-analyze"), "security", "--offline=true", "--no-pager", threshold, str(path))


def test_the_unit_leaves_time_for_the_drain() -> None:
    text, usual = (HERE / "latchkey.service").read_text(), Settings()
    needed = usual.drain_delay + usual.drain_timeout + 2 * usual.redis_timeout + 10
    assert float(directive(text, "TimeoutStopSec")) >= needed
    assert directive(text, "TimeoutStartSec") == "infinity"  # reading a large store is not cut short
    assert directive(text, "KillMode") == "mixed"
    assert directive(text, "ExecReload") == "/bin/kill -HUP $MAINPID"
    assert directive(text, "User") == "latchkey"


def test_the_command_of_the_unit_starts_and_tells_systemd_without_memory_that_is_written_and_run(
    tmp_path: Path,
) -> None:
    text = unit(tmp_path).read_text()
    config = tmp_path / "latchkey.toml"
    config.write_text('host = "127.0.0.1"\nport = 0\nworkers = 2\n')
    command = directive(text, "ExecStart").replace("/etc/latchkey/latchkey.toml", str(config))
    command = command.replace("/var/lib/latchkey", str(tmp_path / "data"))
    libc = ctypes.CDLL(None, use_errno=True)

    def forbid() -> None:
        os.setsid()
        if libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "MDWE")

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address := str(tmp_path / "notify"))
        manager.settimeout(30)
        environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": address}
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(
                shlex.split(command),
                cwd=directive(text, "WorkingDirectory"),
                env=environment,
                stdout=out,
                stderr=out,
                preexec_fn=forbid,
            )
        try:
            assert manager.recv(100) == b"READY=1", (tmp_path / "out").read_text()
            os.kill(process.pid, 1)
            assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(100) == b"READY=1"
        finally:
            process.terminate()
            status = process.wait(30)
        assert manager.recv(100) == b"STOPPING=1"
    assert status == 0
    assert all(json.loads(line) for line in (tmp_path / "out").read_text().splitlines())


# Proxies.


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost that it signed itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    names = str(folder / "cert.pem"), str(folder / "key.pem")
    ran(
        *(tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        *("-out", names[0], "-keyout", names[1]),
    )
    return names


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


def home(folder: Path) -> dict[str, str]:
    """An environment in which Caddy writes nowhere else."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }


PROXIES: dict[str, Callable[[Path, int, int, tuple[str, str]], list[str]]] = {"nginx": nginx, "caddy": caddy}


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
    models.write_text(CONFIG.replace("PORT", upstream.url.rpartition(":")[2]))
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


def accepts(port: int) -> bool:
    """Whether somebody listens."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize("which", PROXIES)
def test_a_proxy_in_front(which: str, tmp_path: Path, certificate: tuple[str, str]) -> None:
    async def check() -> None:
        async with proxied(which, tmp_path, certificate) as found:
            session = await ids_and_addresses(found)
            await streams(found)
            await large_bodies(found, session)
            assert "Traceback" not in found.server.log

    asyncio.run(check())


@pytest.mark.parametrize("which", PROXIES)
def test_behind_a_proxy_a_server_is_replaced_and_nobody_who_reads_notices(
    which: str, tmp_path: Path, certificate: tuple[str, str]
) -> None:
    async def replace() -> None:
        port, shared = free_port(), ("--redis-url", engine.url, "--reuse-port", *QUICK)
        options = (*shared, "--base-url", f"https://localhost:{port}", "--trusted-proxies", "127.0.0.1")
        keys = {"LATCHKEY_SECRET_KEYS": KeyRing.generate(1)}
        backend = free_port()
        with contextlib.ExitStack() as servers:
            old = servers.enter_context(Server(*options, port=backend, environment=keys))
            await asyncio.to_thread(wait_until, lambda: "listening" in old.out)
            async with in_front(which, tmp_path, backend, port, certificate) as trust:
                load = Steady(port, (("GET", "/signin", {}), HEALTH), trust=trust)
                async with load.at_work():
                    await load.more(100)
                    new = servers.enter_context(Server(*options, port=backend, environment=keys))
                    await asyncio.to_thread(wait_until, lambda: "listening" in new.out)
                    await load.more(50)
                    assert await asyncio.to_thread(old.stop) == 0
                    await load.more(100)
        assert (load.lost, load.refused) == ([], 0)
        assert set(load.statuses) == {200}, (load.statuses, (tmp_path / "log").read_text())

    with valkey() as engine:
        asyncio.run(replace())


@pytest.mark.parametrize("which", PROXIES)
def test_what_meets_a_connection_that_was_just_closed_is_sent_again_where_it_only_reads(
    which: str, tmp_path: Path, certificate: tuple[str, str]
) -> None:
    async def check() -> None:
        seen: list[str] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Answers the first request of a connection, and the next one by closing it."""
            with contextlib.suppress(asyncio.IncompleteReadError):
                for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""):
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    seen.append(head.partition(" ")[0])
                    await reader.readexactly(4 if "Content-Length: 4" in head else 0)
                    writer.write(answer)
            writer.close()

        async def ask(method: str, body: bytes = b"") -> int:
            opened = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
            async with Client(*opened) as client:
                client.write(request(method, body=body))
                return (await client.answer()).status

        port = free_port()
        backend = await asyncio.start_server(serve, "127.0.0.1", 0)
        behind = backend.sockets[0].getsockname()[1]
        async with backend, in_front(which, tmp_path, behind, port, certificate) as trust:
            assert [await ask("GET"), await ask("GET"), await ask("POST", b"once")] == [200, 200, 502]
            assert [await ask("GET"), await ask("PUT", b"once")] == [200, 502]
        assert seen == ["GET", "GET", "GET", "POST", "GET", "PUT"]

    asyncio.run(check())


async def ids_and_addresses(found: Proxied) -> str:
    """The proxy's request id is taken, its client's is not; the address is the client's, whatever that makes up.
    Returns the cookie of a session."""
    host = f"Host: localhost:{found.port}"
    made_up = ("X-Request-Id: made-up-by-the-client", "X-Forwarded-For: 203.0.113.77", "X-Real-Ip: 203.0.113.78")
    async with await found.connect("127.0.0.9") as client:
        client.write(request("GET", "/signin", host, *made_up, version="1.1").replace(b"Host: localhost\r\n", b""))
        page = await client.answer()
        assert page.status == 200
        told = page.fields["x-request-id"]
        assert re.fullmatch(r"[0-9a-f]{32}|[0-9a-f-]{36}", told), told
        await asyncio.to_thread(wait_until, lambda: f'"request_id":"{told}"' in found.server.log)
        [line] = [line for line in map(json.loads, found.server.log.splitlines()) if line.get("request_id") == told]
        assert (line["request_id"], line["route"]) == (told, "signin")
        assert page.fields["strict-transport-security"]
        cookie = page.fields["set-cookie"].partition(";")[0]
        assert cookie.startswith("__Host-latchkey_xsrf=")
        [xsrf] = set(re.findall(rb'name="_xsrf" value="([^"]+)"', page.body))
        form = urlencode({"_xsrf": xsrf.decode(), "email": EMAIL, "password": PASSWORD}).encode()
        kind = "Content-Type: application/x-www-form-urlencoded"
        sent = request("POST", "/signin", host, kind, f"Cookie: {cookie}", *made_up, body=form)
        client.write(sent.replace(b"Host: localhost\r\n", b""))
        text = (await client.reader.readuntil(b"\r\n\r\n")).decode()
        assert " 303 " in text.partition("\r\n")[0]
        [session] = re.findall(r"(__Host-latchkey_session=[^;]+)", text)
    async with await found.connect("127.0.0.9") as client:
        sent = request("GET", "/account/security", host, f"Cookie: {session}", "Connection: close")
        client.write(sent.replace(b"Host: localhost\r\n", b""))
        page = await client.answer()
        assert page.status == 200
        assert b"127.0.0.9" in page.body
        assert b"203.0.113" not in page.body
    return str(session)


async def streams(found: Proxied) -> None:
    """A stream is passed on as it comes; its trace and its id go on to the upstream."""
    gate = asyncio.Semaphore(3)
    found.upstream.plan = Plan(gate=gate)
    asked = {"model": "small", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    asked["model"] = tomllib.loads(CONFIG)["upstream"][0]["models"][0]["id"]
    headers = ("Content-Type: application/json", f"Authorization: Bearer {found.token}", "tracestate: rojo=1")
    trace = f"traceparent: 00-{TRACE}-b7ad6b7169203331-01"
    async with await found.connect() as client:
        client.write(request("POST", "/api/v1/ai/messages", *headers, trace, body=json.dumps(asked).encode()))
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10)
        assert b" 200 " in head
        began = b""
        while began.count(b"event: ") < 3:  # what follows waits at the gate
            began += await asyncio.wait_for(client.reader.read(65_536), 10)
        assert b"message_stop" not in began
        for _ in range(100):
            gate.release()
        while b"message_stop" not in began:
            began += await asyncio.wait_for(client.reader.read(65_536), 10)
    [call] = found.upstream.calls
    assert call.request.headers["traceparent"].startswith(f"00-{TRACE}-")
    assert call.request.headers["tracestate"] == "rojo=1"
    told = re.findall(rb"(?i)x-request-id: (\S+)", head)[0].decode()
    assert call.request.headers["X-Request-Id"] == told
    await asyncio.to_thread(wait_until, lambda: f'"trace_id":"{TRACE}"' in found.server.log)
    lines = [json.loads(line) for line in found.server.log.splitlines()]
    assert [line["request_id"] for line in lines if line.get("trace_id") == TRACE] == [told]


async def large_bodies(found: Proxied, session: str) -> None:
    """What is far too large ends at the proxy; what Latchkey refuses, it refuses in its own words."""
    async with await found.connect() as client:
        client.write(request("POST", "/api/oauth/token", "Content-Type: application/json", body=b"x" * 100_000))
        answer = await client.answer()
        assert (answer.status, json.loads(answer.body)["error"]) == (413, "invalid_request")
    async with await found.connect() as client:
        kind = "Content-Type: multipart/form-data; boundary=b"
        client.write(request("POST", "/account/picture", kind, f"Cookie: {session}", body=b"x" * 5_000_000))
        answer = await client.answer()
        assert (answer.status, b"The form is broken" in answer.body) == (400, True)
    async with await found.connect() as client:
        client.write(request("POST", "/api/oauth/token", "Content-Type: application/json", "Content-Length: 5000000"))
        with contextlib.suppress(ConnectionError):
            client.write(b"x" * 5_000_000)
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10)
        # Caddy passes the head on before it has counted. Then it is Latchkey that cuts it off, with a 400 that reaches
        # Caddy or, while that is still sending, does not.
        assert head.split(b" ")[1] in ((b"413",) if found.which == "nginx" else (b"413", b"400", b"502"))


def test_the_caddyfile_is_formatted() -> None:
    said = ran(tool("caddy"), "fmt", "--diff", str(HERE / "Caddyfile"))
    assert not [line for line in said.stdout.splitlines() if line[:1] in ("+", "-")]
    assert not re.search("^\t* +\t", (HERE / "Caddyfile").read_text(), re.MULTILINE)


# Containers: there is no engine here, so nothing is built or started.


def test_the_dockerfile_passes_its_linter() -> None:
    ran(tool("hadolint"), "--strict-labels", str(HERE / "Dockerfile"))


def in_the_image(tmp_path: Path) -> Path:
    """The files that the image gets, as `Dockerfile.dockerignore` lets them in."""
    lines = (HERE / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    for name in ran("git", "ls-files", cwd=ROOT).stdout.splitlines():
        if any(fnmatch.fnmatch(name.partition("/")[0], rule) for rule in allowed) and (ROOT / name).exists():
            target = tmp_path / "image" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    return tmp_path / "image"


def dockerfile() -> list[tuple[str, str]]:
    """Its instructions, those in several lines as one."""
    text = re.sub(r"\\\n\s*", "", "\n".join(line for line in lines_without_comments(HERE / "Dockerfile")))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def lines_without_comments(path: Path) -> Iterator[str]:
    """The rest."""
    return (line for line in path.read_text().splitlines() if not line.startswith("#"))


def test_what_the_image_holds_is_enough_to_serve_and_its_health_check_sees_it(tmp_path: Path) -> None:
    instructions = dict(dockerfile())
    assert instructions["USER"] == "10001:10001"
    assert instructions["STOPSIGNAL"] == "SIGTERM"
    command = json.loads(instructions["CMD"])
    assert command == ["python", "server.py"]
    image = in_the_image(tmp_path)
    assert not (image / "tests").exists()
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "LATCHKEY_DATA_DIR": str(tmp_path / "d")}
    port = free_port()
    given = ["--host", "127.0.0.1", "--port", str(port), "--redis-url", "memory"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command[1:], *given], cwd=image, env=environment, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: accepts(port) or process.poll() is not None, 30)
        check = json.loads(instructions["HEALTHCHECK"].partition("CMD ")[2])
        assert check[0] == "python"
        program = check[2].replace(":8080/", f":{port}/")
        ran(sys.executable, "-c", program, cwd=image)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/signin")
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        process.terminate()
        assert process.wait(20) == 0, (tmp_path / "log").read_text()
    assert subprocess.run([sys.executable, "-c", program], cwd=image, capture_output=True, check=False).returncode
    ran(sys.executable, "manage.py", "keys", "generate", cwd=image, env=environment)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The Compose file, after a linter has held it against the schema of the specification and its own rules."""
    npm = tool("npm")
    ran(npm, "exec", "--yes", f"--package={DCLINT}", "--", "dclint", "--max-warnings", "0", str(HERE / "compose.yaml"))
    import yaml

    found: dict[str, Any] = yaml.safe_load((HERE / "compose.yaml").read_text())
    return found


def test_the_compose_file_is_one_and_gives_away_nothing(compose: dict[str, Any]) -> None:
    services: dict[str, dict[str, Any]] = compose["services"]  # type: ignore[assignment]  # what YAML holds
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert services["latchkey"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["redis"]
    environment: dict[str, str] = services["latchkey"]["environment"]
    known = {name for name in environment if name.removeprefix("LATCHKEY_").lower() in vars(Settings())}
    assert known == environment.keys()
    for name in ("LATCHKEY_SECRET_KEYS", "LATCHKEY_BASE_URL"):
        assert environment[name].startswith(f"${{{name}:?")
    assert "${REDIS_PASSWORD:?" in environment["LATCHKEY_REDIS_URL"]
    usual = Settings()
    grace = float(str(services["latchkey"]["stop_grace_period"]).removesuffix("s"))
    assert grace >= usual.drain_delay + usual.drain_timeout + 2 * usual.redis_timeout + 5
    assert usual.session_lifetime == 30 * DAY


def test_the_store_of_the_compose_file_is_one_that_latchkey_takes(compose: dict[str, Any], tmp_path: Path) -> None:
    services: dict[str, dict[str, Any]] = compose["services"]
    shell, option, script = services["redis"]["command"]
    port, password = free_port(), "a-password-of-the-store"
    script = re.sub("/[a-z]+/redis.conf", f"{tmp_path}/redis.conf", str(script).replace("$$", "$"))
    script = script.replace("--appendonly yes", f"--appendonly yes --port {port} --dir {tmp_path}")
    process = subprocess.Popen(
        [shell, option, script], env={"PATH": os.environ["PATH"], "REDIS_PASSWORD": password}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: accepts(port))
        with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        assert password not in Path(f"/proc/{process.pid}/cmdline").read_text()
        environment = {
            "LATCHKEY_REDIS_URL": f"redis://:{password}@127.0.0.1:{port}",
            "LATCHKEY_SECRET_KEYS": "1:" + "A" * 43,
        }
        with Server(*QUICK, environment=environment) as server:
            assert server.ready().stop() == 0
    finally:
        process.terminate()
        assert process.wait(20) == 0
