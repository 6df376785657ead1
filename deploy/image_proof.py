"""What is shown of the image: a person and an app against the container, and what the container is and leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from deploy.container import Container, Engine, say
from dev.bench.measure import HOST
from dev.lab.engines import valkey
from dev.lab.ports import free_port
from dev.proof.apps import Backend
from dev.proof.calling import Clients
from dev.proof.history import Recorder
from dev.proof.people import CALLBACK, PASSWORD, SCOPES, App, Person, Stage, Tokens
from settings.declared import Settings
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import Sealer

APP, EMAIL = App("image-proof", "i" * 40), "ada@example.com"
USER = 10001
_MOUNTED = {"/data", "/dev", "/etc", "/etc/mtab", "/etc/hosts", "/etc/resolv.conf", "/etc/latchkey", "/proc", "/run"}
_MOUNTED |= {"/run/.containerenv", "/run/secrets", "/sys", "/tmp"}
"""Paths that an engine makes for its mounts."""
_NOT_NEEDED = ("pip", "pip3", "gcc", "cc", "make", "git", "curl", "sudo")
_UNPACKED = "/var/lib/apt/lists/*_Packages* /var/cache/apt/*.bin /root/.cache /opt/latchkey/tests"
_WRITES = "for place in / /opt/latchkey /usr /var /home; do touch $place/new 2>/dev/null && echo $place; done; true"


async def prove_embedded(engine: Engine, image: str, more: Sequence[str]) -> None:
    """The store inside the container, in its volume; secrets in the environment."""
    ring, port = KeyRing.generate(1), free_port()
    with prepared() as directory:
        flags = ["--publish", f"{HOST}:{port}:8080", "--volume", f"{directory}:/etc/latchkey:ro"]
        environment = directory / "environment"
        environment.write_text(
            f"LATCHKEY_SECRET_KEYS={ring}\nLATCHKEY_BASE_URL=http://localhost:{port}\n"
            "LATCHKEY_SEED=/etc/latchkey/seed.json\n"
        )
        environment.chmod(0o400)
        container = Container(engine, image, f"--env-file={environment}", *flags, *more)
        try:
            say(f"healthy after {container.wait_until_healthy():.1f} s, with the embedded store")
            check_confined(container)
            check_contents(container)
            async with at_work(f"http://localhost:{port}", ring, directory) as app:
                tokens = await whole_flow(app)
                await check_drain(container, port)
                container.start()
                container.wait_until_healthy()
                found = await app.get(tokens, "d1")
                assert found.acked and "digest" in found.result, f"the volume kept nothing: {found}"
                say("started again, it has the document, and the token lives")
            check_root(container)
        finally:
            container.close()


async def prove_external(engine: Engine, image: str, more: Sequence[str]) -> None:
    """A store elsewhere; secrets in a file that only the server's user reads. Nothing but /tmp and /data is writable,
    and both are in memory."""
    ring, port, password = KeyRing.generate(1), free_port(), secrets.token_urlsafe(16)
    with prepared() as directory, external(password) as store_port:
        secret = directory / "latchkey.toml"
        secret.write_text(
            f'secret_keys = "{ring}"\nredis_url = "redis://:{password}@{HOST}:{store_port}"\n'
            f'seed = "/etc/latchkey/seed.json"\nbase_url = "http://localhost:{port}"\n'
        )
        secret.chmod(0o400)
        os.chown(secret, USER, USER)
        flags = ["--network=host", f"--volume={directory}:/etc/latchkey:ro", "--tmpfs=/data:size=16m,mode=1777"]
        flags += [f"--env=LATCHKEY_{name}" for name in ("CONFIG=/etc/latchkey/latchkey.toml", f"HOST={HOST}")]
        container = Container(engine, image, *flags, f"--env=LATCHKEY_PORT={port}", *more)
        try:
            container.wait_until_healthy()
            async with at_work(f"http://localhost:{port}", ring, directory) as app:
                await whole_flow(app)
            assert password not in container.log
            check_root(container)
            took, status = container.stop()
            assert status == 0, container.log
            say(f"the same with a Redis elsewhere and secrets in a file; it ended in {took:.1f} s")
        finally:
            container.close()


@contextlib.contextmanager
def prepared() -> Iterator[Path]:
    """A directory with the seed file, which the user of the container may read."""
    with tempfile.TemporaryDirectory(prefix="image-proof-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        app = {"client_id": APP.client_id, "client_secret": APP.secret, "name": "Proof", "redirect_uris": [CALLBACK]}
        person = {"email": EMAIL, "name": "Ada", "password": PASSWORD}
        seed = {"apps": [{**app, "scopes": SCOPES, "hostedStorage": True}], "users": [person]}
        (directory / "seed.json").write_text(json.dumps(seed))
        yield directory


@contextlib.contextmanager
def external(password: str) -> Iterator[int]:
    """The port of a store that asks for a password."""
    port = free_port()
    with valkey(options=["--port", str(port), "--bind", HOST, "--maxmemory-policy", "noeviction"]) as store:
        with store.client() as client:
            client.config_set("requirepass", password)
        yield port


@contextlib.asynccontextmanager
async def at_work(url: str, ring: str, directory: Path) -> AsyncIterator[Backend]:
    """A person with a browser, and an app with its back end."""
    clients = Clients([url], random.Random(1))
    recorder = Recorder(directory / "history.jsonl")
    try:
        stage = Stage(clients, recorder, Sealer(Keys(KeyRing.parse(ring))), [], "", 0)
        yield Backend(stage, Person(EMAIL), APP, "image", random.Random(2))
    finally:
        recorder.close()
        await clients.close()


async def whole_flow(app: Backend) -> Tokens:
    """Sign-in, consent, tokens, userinfo, a document, a refresh; returns the tokens."""
    assert (signed_in := await app.sign_in()).acked, str(signed_in)
    op, tokens = await app.consent()
    assert op.acked and tokens is not None, str(op)
    ops = [await app.exchange(tokens)]
    ops += [await app.userinfo(tokens), await app.put(tokens, "d1"), await app.get(tokens, "d1")]
    ops += [await app.refresh(tokens, tokens.generation), await app.userinfo(tokens)]
    for op in ops:
        assert op.acked, str(op)
    assert ops[3].result["digest"] == ops[2].args["digest"]
    say("sign-in, consent, tokens, userinfo, a document, a refresh")
    return tokens


def check_confined(container: Container) -> None:
    """The server is not root, has no rights to gain any, and cannot write to its own code."""
    status = container.status
    assert status["Uid"].split() == [str(USER)] * 4, status["Uid"]
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    found = container.inside("sh", "-c", _WRITES)
    assert (found.returncode, found.stdout) == (0, ""), found
    say(f"it runs as {USER} without a capability, with seccomp, and cannot write to /, /usr, /var or its code")


def check_contents(container: Container) -> None:
    """Nothing is left that only the build needed."""
    for name in _NOT_NEEDED:
        found = container.inside("sh", "-c", f"command -v {name}")
        assert found.returncode, f"{name} is in the image: {found.stdout}"
    found = container.inside("sh", "-c", f"ls -d {_UNPACKED}; python -m pip; python -c 'import ensurepip'")
    assert not found.stdout, found.stdout
    assert found.stderr.count("No module named") == 2, found.stderr
    say("no pip, compiler, cache or test is left in it")


def check_root(container: Container) -> None:
    """The root file system is as the image has it, except for what engines mount."""
    written = {path for path in container.changed() if path not in _MOUNTED}
    assert not written, f"written to the root: {written}"
    say("nothing was written to the root file system")


async def check_drain(container: Container, port: int) -> None:
    """A request in progress gets its answer after SIGTERM, then the server ends, well within its time."""
    reader, writer = await asyncio.open_connection(HOST, port)
    form = b"grant_type=refresh_token&refresh_token=none&client_id=none"
    head = f"POST /api/oauth/token HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {len(form)}\r\n"
    writer.write(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode() + form[:10])
    await writer.drain()
    await asyncio.sleep(0.5)  # the engine's forwarder passes the first half on
    stopping = asyncio.create_task(asyncio.to_thread(container.stop))
    await asyncio.sleep(1.0)  # SIGTERM has come; nothing outside the container says so
    assert not stopping.done(), "it ended with a request in progress"
    writer.write(form[10:])
    answer = await asyncio.wait_for(reader.read(), 15)
    assert answer.startswith(b"HTTP/1.1 4"), answer
    took, status = await stopping
    usual = Settings()
    assert status == 0, container.log
    assert took < usual.drain_delay + usual.drain_timeout + 5
    writer.close()
    say(f"after SIGTERM it answered the request in progress and ended in {took:.1f} s")
